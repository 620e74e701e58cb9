//! Needs of content: a call reads again what an earlier call showed, and what has not changed since.
//! A command that is run again, such as a test run, is no need of its output.

use std::collections::VecDeque;

use rapidhash::{RapidHashMap as HashMap, RapidHashSet as HashSet};

use ctxbench_core::compaction::tools::without_line_number;
use ctxbench_session::fact::FactKind;

use super::events::{FactReply, ShownText, ToolUse, leaves};
use super::{Need, said, words};

/// Minimum number of lines of a content. Fewer may be equal by chance.
const FEWEST: usize = 5;

/// Number of lines that represent a content, evenly spread over it.
const MOST: usize = 40;

/// Number of results that are compared for each file.
const NEWEST: usize = 8;

/// Length of a line that is specific to its content, bytes.
const LINE: std::ops::RangeInclusive<usize> = 12..=200;

/// Names of arguments that hold a command line.
const COMMAND: [&str; 3] = ["command", "cmd", "script"];

/// Programs, and commands of git, that print what is in files.
const READERS: [&str; 20] = [
    "awk", "bat", "blame", "cat", "diff", "egrep", "find", "grep", "head", "jq", "less", "log",
    "ls", "more", "nl", "rg", "sed", "show", "tail", "wc",
];

/// Files that an agent's window has shown so far.
#[derive(Default)]
pub(super) struct ContentWindow<'a> {
    /// Calls that read files: number and id of the reply, names of the files.
    calls: HashMap<&'a str, (usize, &'a str, Vec<String>)>,
    /// Newest results of calls that name a file, by the name, oldest first.
    shown: HashMap<String, VecDeque<FileResult<'a>>>,
}

#[derive(Clone)]
struct FileResult<'a> {
    /// Id of the call, and the number of its reply.
    call: &'a str,
    at: usize,
    lines: HashSet<&'a str>,
}

impl<'a> ContentWindow<'a> {
    pub(super) fn note_reply(&mut self, at: usize, reply: &'a FactReply<'a>) {
        for call in &reply.calls {
            let files = files(call);
            if !files.is_empty() {
                self.calls.insert(&call.id, (at, reply.id, files));
            }
        }
    }

    /// Returns the need of the reply whose call fetched this, if at least four fifths of its lines are
    /// in an earlier result for the same file.
    pub(super) fn note_result(&mut self, shown: &'a ShownText<'a>) -> Option<Need> {
        let (at, reply, files) = self.calls.remove(shown.key)?;
        let lines = shown.texts.iter().flat_map(|t| own_lines(t));
        let mut seen = HashSet::default();
        let distinct: Vec<&str> = lines.into_iter().filter(|l| seen.insert(*l)).collect();
        let same = |earlier: &FileResult<'_>| -> Vec<&str> {
            distinct.iter().copied().filter(|l| earlier.lines.contains(l)).collect()
        };
        let is_again =
            |lines: &[&str]| lines.len() >= FEWEST && lines.len() * 5 >= distinct.len() * 4;
        let earlier = files.iter().filter_map(|file| self.shown.get(file)).flatten();
        let again = earlier.filter(|e| e.at < at).map(|e| (e, same(e)));
        let newest = again.filter(|(_, lines)| is_again(lines)).max_by_key(|(e, _)| e.at);
        let again = newest.map(|(earlier, lines)| {
            let step = lines.len().div_ceil(MOST);
            let tokens = lines.into_iter().step_by(step).map(str::to_string).collect();
            let need = Need::literal("", earlier.call, reply, at - earlier.at);
            Need { kind: FactKind::Content, tokens, ..need }
        });
        let result = FileResult { call: shown.key, at, lines: seen };
        for file in files {
            let results = self.shown.entry(file).or_default();
            if results.len() == NEWEST {
                results.pop_front();
            }
            results.push_back(result.clone());
        }
        again
    }
}

/// Returns the names of the files that a call reads; none if it writes. A command line reads the files
/// that it names behind a program of [`READERS`].
fn files(call: &ToolUse) -> Vec<String> {
    let leaves = leaves(&call.arguments);
    if leaves.iter().any(|(name, value)| said::is_written(name, value)) {
        return Vec::new();
    }
    let lines: Vec<&str> =
        leaves.iter().filter(|l| COMMAND.contains(&l.0)).map(|l| &*l.1).collect();
    let texts = match lines.is_empty() {
        true => leaves.iter().map(|(_, value)| value.as_str()).collect(),
        false => lines.into_iter().flat_map(reading).collect::<Vec<&str>>(),
    };
    let paths = texts.iter().flat_map(|text| text.split([' ', '\n', '"', '\'']));
    let names = paths.filter(|w| words::is_path(w)).filter_map(|path| path.rsplit('/').next());
    let mut names: Vec<String> = names.map(str::to_string).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the commands of a command line that read files.
fn reading(line: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let commands = line.split(move |c: char| {
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        quote.is_none() && matches!(c, '&' | '|' | ';' | '\n')
    });
    commands.map(str::trim).filter(|command| {
        let mut words = command.split(' ').filter(|w| !w.is_empty());
        let program = words.next().map(|program| match program {
            "git" => words.clone().find(|w| !w.starts_with('-')).unwrap_or(program),
            program => program,
        });
        let in_place = program == Some("sed") && words.any(|w| w.starts_with("-i"));
        let is_output = |w: &str| w.starts_with('>') && !w.starts_with(">/dev/null") && w != ">&2";
        let unquoted: String = command.split(['"', '\'']).step_by(2).collect();
        let writes = in_place || unquoted.split(' ').any(is_output);
        program.is_some_and(|program| READERS.contains(&program)) && !writes
    })
}

/// Returns the lines of a result that are specific to it, without line numbers and indentation, and
/// without the notices that a program adds.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    let own = text.split("\n<system-reminder>").enumerate().map(|(n, part)| {
        let end = part.split_once("</system-reminder>").filter(|_| n > 0);
        end.map_or(part, |(_, after)| after)
    });
    own.flat_map(str::lines)
        .map(|l| without_line_number(l).trim())
        .filter(|l| LINE.contains(&l.len()))
}
