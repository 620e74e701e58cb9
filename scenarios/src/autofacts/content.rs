//! Needs of content: a call fetches again what an earlier call showed, and what has not changed since.

use rapidhash::{RapidHashMap as HashMap, RapidHashSet as HashSet};

use ctxbench_session::fact::FactKind;

use super::events::{FactReply, ShownText, ToolUse, leaves};
use super::{Need, said, words};

/// Minimum number of lines of a content. Fewer may be equal by chance.
const FEWEST: usize = 5;

/// Number of lines that represent a content, evenly spread over it.
const MOST: usize = 40;

/// Length of a line that is specific to its content, bytes.
const LINE: std::ops::RangeInclusive<usize> = 12..=200;

/// Files that an agent's window has shown so far.
#[derive(Default)]
pub(super) struct ContentWindow<'a> {
    /// Calls that name files and do not write them: number and id of the reply, names of the files.
    calls: HashMap<&'a str, (usize, &'a str, Vec<String>)>,
    /// Last result of a call that names a file, by the name.
    shown: HashMap<String, LastResult<'a>>,
}

#[derive(Clone)]
struct LastResult<'a> {
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

    /// Returns the need of the reply whose call fetched this, if at least four fifths of its lines
    /// are in the last result for the same file.
    pub(super) fn note_result(&mut self, shown: &'a ShownText<'a>) -> Option<Need> {
        let (at, reply, files) = self.calls.remove(shown.key)?;
        let lines: Vec<&str> = shown.texts.iter().flat_map(|t| own_lines(t)).collect();
        let last = files.iter().filter_map(|file| self.shown.get(file)).max_by_key(|last| last.at);
        let mut seen = HashSet::default();
        let distinct: Vec<&str> = lines.iter().copied().filter(|l| seen.insert(*l)).collect();
        let again = last.filter(|last| last.at < at).and_then(|last| {
            let same = || distinct.iter().filter(|l| last.lines.contains(*l));
            let n = same().count();
            if n < FEWEST || n * 5 < distinct.len() * 4 {
                return None;
            }
            let step = n.div_ceil(MOST);
            let tokens = same().step_by(step).map(ToString::to_string).collect();
            let need = Need::literal("", last.call, reply, at - last.at);
            Some(Need { kind: FactKind::Content, tokens, ..need })
        });
        let result = LastResult { call: shown.key, at, lines: distinct.into_iter().collect() };
        self.shown.extend(files.into_iter().map(|file| (file, result.clone())));
        again
    }
}

/// Returns the names of the files in a call's arguments; none if it writes.
fn files(call: &ToolUse) -> Vec<String> {
    let leaves = leaves(&call.arguments);
    if leaves.iter().any(|(name, value)| said::is_written(name, value)) {
        return Vec::new();
    }
    let paths = leaves.iter().flat_map(|(_, value)| value.split([' ', '\n', '"', '\'']));
    let names = paths.filter(|w| words::is_path(w)).filter_map(|path| path.rsplit('/').next());
    let mut names: Vec<String> = names.map(str::to_string).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the lines of a result that are specific to it, without line numbers and indentation.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|l| words::without_number(l).trim()).filter(|l| LINE.contains(&l.len()))
}
