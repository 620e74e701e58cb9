//! Replacement text of a tool result that moves to a file: a cut version or a preview
//! (docs/sources/gemini-cli.md §2, §5).

use std::borrow::Cow;

use ctxbench_core::prelude::*;
use serde_json::json;

/// Tags around a masked result, as sent to the provider (docs/sources/gemini-cli.md §5).
pub(super) const MASKED: &str = "<tool_output_masked>";
const MASKED_END: &str = "</tool_output_masked>";
/// Tool with a preview that shows the sections of its output (docs/sources/gemini-cli.md §5).
const SHELL: &str = "run_shell_command";
/// Maximum length of a result that is shown in full, and the length of each end of a longer one,
/// both in characters (docs/sources/gemini-cli.md §5).
const MIN_CUT_CHARS: u64 = 500;
const END: usize = 250;
/// Maximum number of lines of a section that are shown in full, and the number of lines of each end
/// of a longer one (docs/sources/gemini-cli.md §5).
const LINES: usize = 20;
const END_LINES: usize = 10;

/// Sections of the output of a command.
const SECTIONS: [&str; 6] =
    ["Output", "Error", "Exit Code", "Signal", "Background PIDs", "Process Group PGID"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutSizes {
    pub head: usize,
    pub tail: usize,
    pub omitted: usize,
}

impl CutSizes {
    /// Calculates a cut to `most` characters: the first fifth from the beginning of the text, the
    /// rest from its end. `None` = the text fits.
    pub(super) fn new(text: &str, most: usize) -> Option<CutSizes> {
        let all = utf16_len(text) as usize;
        let head = most / 5;
        (all > most).then(|| CutSizes { head, tail: most - head, omitted: all - most })
    }

    /// Formats the cut text after a note that names the file.
    pub(super) fn render(self, text: &str, note: &str, file: &str) -> String {
        let CutSizes { head, tail, omitted } = self;
        let start = head_cut(text, head).unwrap_or(text);
        let end = tail_cut(text, tail);
        format!(
            "{note}: first {head} and last {tail} characters. All of it is in the file {file}\n\
             {start}\n\n... [{omitted} characters omitted] ...\n\n{end}"
        )
    }

    /// Parses the sizes of a cut from its text.
    pub fn found_in(text: &str, note: &str) -> Option<CutSizes> {
        let rest = text.strip_prefix(note)?.strip_prefix(": first ")?;
        let (head, rest) = rest.split_once(" and last ")?;
        let (tail, rest) = rest.split_once(" characters.")?;
        let (_, rest) = rest.split_once("\n\n... [")?;
        let (omitted, _) = rest.split_once(" characters omitted] ...")?;
        let number = |t: &str| t.parse().ok();
        Some(CutSizes { head: number(head)?, tail: number(tail)?, omitted: number(omitted)? })
    }
}

/// Returns the last `max` UTF-16 units of a text, without splitting a character.
fn tail_cut(text: &str, max: usize) -> &str {
    let mut units = 0;
    let is_beyond = |(_, c): &(usize, char)| {
        units += c.len_utf16();
        units > max
    };
    text.char_indices().rev().find(is_beyond).map_or(text, |(i, c)| &text[i + c.len_utf8()..])
}

/// Formats the replacement of a masked result. `pretty` is the result's object as indented JSON.
pub(super) fn masked(tool: &str, output: &str, pretty: &str, note: &str, file: &str) -> String {
    let preview = if tool == SHELL {
        sections(output)
    } else if utf16_len(pretty) > MIN_CUT_CHARS {
        let head = head_cut(pretty, END).unwrap_or(pretty);
        format!("{head}\n... [TRUNCATED] ...\n{}", tail_cut(pretty, END))
    } else {
        pretty.to_string()
    };
    format!("{MASKED}\n{preview}\n\n{note}: {file}\n{MASKED_END}")
}

/// Returns the text of a result that a compression writes to a file.
pub(super) fn full_text(result: &Block) -> Cow<'_, str> {
    match result.is_error {
        true => pretty(&result.text, true).into(),
        false => Cow::Borrowed(&result.text),
    }
}

/// Returns the member that contains the text of a result.
pub(super) fn response_key(is_error: bool) -> &'static str {
    if is_error { "error" } else { "output" }
}

/// Formats the object of a result as indented JSON, the form that the program measures.
pub(super) fn pretty(output: &str, is_error: bool) -> String {
    format!("{:#}", json!({ response_key(is_error): output }))
}

/// Formats the output of a command by sections. Only the `Output` section and text before the first
/// section are shortened.
fn sections(output: &str) -> String {
    let starts: Vec<(usize, &str)> = line_starts(output)
        .filter_map(|at| {
            let name = SECTIONS.iter().find(|s| {
                output[at..].strip_prefix(**s).is_some_and(|rest| rest.starts_with(": "))
            })?;
            Some((at, *name))
        })
        .collect();
    let Some((first, _)) = starts.first() else { return lines(output) };
    let mut out = Vec::new();
    let before = output[..*first].trim();
    if !before.is_empty() {
        out.push(lines(before));
    }
    for (i, (at, name)) in starts.iter().enumerate() {
        let end = starts.get(i + 1).map_or(output.len(), |(next, _)| *next);
        let text = output[at + name.len() + 2..end].trim();
        let shown = if *name == "Output" { lines(text) } else { text.to_string() };
        out.push(format!("{name}: {shown}"));
    }
    out.join("\n")
}

fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1))
}

/// Returns the first and last lines of a text.
fn lines(text: &str) -> String {
    let all: Vec<&str> = text.split('\n').collect();
    if all.len() <= LINES {
        return text.to_string();
    }
    let (head, tail) = (&all[..END_LINES], &all[all.len() - END_LINES..]);
    let omitted = all.len() - 2 * END_LINES;
    format!("{}\n\n... [{omitted} lines omitted] ...\n\n{}", head.join("\n"), tail.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_a_cut_is_its_beginning() {
        let text = format!("{}{}{}", "a".repeat(8_000), "b".repeat(26_492), "c".repeat(32_000));
        let cut = CutSizes::new(&text, 40_000).unwrap();
        assert_eq!(cut, CutSizes { head: 8_000, tail: 32_000, omitted: 26_492 });
        let shown = cut.render(&text, "Note", "f.txt");
        assert_eq!(CutSizes::found_in(&shown, "Note"), Some(cut));
        assert!(!shown.contains('b') || !shown.contains("bb"));
        assert!(shown.ends_with(&"c".repeat(32_000)));
        assert_eq!(CutSizes::new(&"a".repeat(40_000), 40_000), None);
        // A cut does not split a character.
        let shown = CutSizes::new(&"😀".repeat(10), 5).unwrap().render(&"😀".repeat(10), "N", "f");
        assert!(shown.ends_with("\n\n😀😀"), "{shown}");
    }

    #[test]
    fn previews_show_both_ends() {
        let short = masked("read_file", "x", &pretty("x", false), "In", "f");
        let want =
            "<tool_output_masked>\n{\n  \"output\": \"x\"\n}\n\nIn: f\n</tool_output_masked>";
        assert_eq!(short, want);
        let long = pretty(&"y".repeat(600), false);
        let shown = masked("read_file", "", &long, "In", "f");
        assert!(shown.contains("\n... [TRUNCATED] ...\n"));
        assert_eq!(shown.matches('y').count(), 250 - 15 + 250 - 3);
    }

    #[test]
    fn commands_are_shown_by_their_sections() {
        let output: Vec<String> = (0..30).map(|i| format!("row {i}")).collect();
        let text = format!("Output: {}\nExit Code: 1\nError: bad", output.join("\n"));
        let shown = sections(&text);
        assert!(shown.starts_with("Output: row 0\n"), "{shown}");
        assert!(shown.contains("row 9\n\n... [10 lines omitted] ...\n\nrow 20\n"), "{shown}");
        assert!(shown.ends_with("row 29\nExit Code: 1\nError: bad"), "{shown}");
        assert_eq!(sections("plain"), "plain");
    }
}
