//! Writes and reads Aider's chat history file.
//!
//! Reading loses information: a reply line that looks like a heading is dropped, becomes a user
//! message, or splits the reply (docs/sources/aider.md §1.5, versions 0.86).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::persist::jsonl::{self, Appender};
use crate::persist::{
    JournalEntry, PersistFormat, Persistence, ReopenedSession, Result, StoredMessage,
};
use ctxbench_core::prelude::*;

/// Appends the lines at the start of a session.
pub fn append_start(file: &mut String, time: &str) {
    // Writing to a string never fails.
    let _ = write!(file, "\n# aider chat started at {time}\n\n");
}

/// Appends a passage: of the user in lines with `#### `, of the model unchanged, and of the program in
/// lines with `> `.
pub fn append(file: &mut String, who: Role, text: &str) {
    match who {
        Role::User => {
            let lines: Vec<&str> = if text.is_empty() {
                vec!["<blank>"]
            } else {
                lines(text).map(without_end).collect()
            };
            let joined = format!("\n#### {}", lines.join("  \n#### "));
            file.push_str(joined.trim_end_matches(is_space));
            file.push_str("  \n");
        }
        Role::Assistant => {
            file.push('\n');
            file.push_str(text.trim_matches(is_space));
            file.push_str("\n\n");
        }
        _ => {
            let text = text.trim_matches(is_space);
            // Only a text with a line feed is split into lines. Then every kind of line end counts.
            if text.contains('\n') {
                lines(text).for_each(|l| quote(file, l));
            } else {
                quote(file, text);
            }
        }
    }
}

/// Writes a line of program output.
fn quote(file: &mut String, line: &str) {
    let quoted = format!("> {}", line.trim_matches(is_space));
    file.push_str(quoted.trim_end_matches(is_space));
    file.push_str("  \n");
}

/// Reads a file as messages; program output has the role of a tool. It is never returned at the end of
/// the file, not even with `include_tool`.
pub fn split_chat_history_markdown(text: &str, include_tool: bool) -> Vec<(Role, String)> {
    use Role::{Assistant, Tool, User};
    let mut out: Vec<(Role, String)> = Vec::new();
    for line in lines(text).filter(|l| !l.starts_with("# ")) {
        let quoted = line.strip_prefix("> ").map(|rest| (Tool, rest));
        let asked = line.strip_prefix("#### ").map(|rest| (User, rest));
        let (who, rest) = quoted.or(asked).unwrap_or((Assistant, line));
        match out.last_mut() {
            Some((last, text)) if *last == who => text.push_str(rest),
            _ => out.push((who, rest.into())),
        }
    }
    out.pop_if(|(who, _)| *who == Tool);
    // Messages of only white space are dropped.
    out.retain(|(who, text)| (include_tool || *who != Tool) && !text.chars().all(is_space));
    out
}

/// Returns whether Python's `str.strip` treats a character as white space.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Returns whether a character ends a line in Python's `str.splitlines`.
fn ends_line(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Splits a text like Python's `str.splitlines(keepends=True)`.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().find(|(_, c)| ends_line(*c)).map_or(rest.len(), |(i, c)| {
            let after = i + c.len_utf8();
            if c == '\r' && rest[after..].starts_with('\n') { after + 1 } else { after }
        });
        let (line, next) = rest.split_at(end);
        rest = next;
        Some(line)
    })
}

fn without_end(line: &str) -> &str {
    match line.strip_suffix("\r\n") {
        Some(l) => l,
        None => line.strip_suffix(ends_line).unwrap_or(line),
    }
}

pub(crate) const FORMAT: PersistFormat =
    PersistFormat { name: "aider-markdown", open: |dir, _| Ok(Box::new(Markdown::open(dir)?)) };

struct Markdown {
    path: PathBuf,
    file: Appender,
}

impl Markdown {
    fn open(dir: &Path) -> Result<Markdown> {
        let path = dir.join(".aider.chat.history.md");
        let mut file = Appender::open(&path)?;
        let mut start = String::new();
        append_start(&mut start, "2023-11-14 22:13:20");
        file.text(&start)?;
        Ok(Markdown { path, file })
    }

    fn messages(&self) -> Result<Vec<StoredMessage>> {
        let all = split_chat_history_markdown(&jsonl::text(&self.path)?, false).into_iter();
        Ok(all.map(|(role, text)| StoredMessage::text(role, &text)).collect())
    }
}

impl Persistence for Markdown {
    fn append(&mut self, entry: &JournalEntry) -> Result<()> {
        let JournalEntry::Message(said) = entry else { return Ok(()) };
        let mut text = String::new();
        let who = if said.role == Role::Assistant { said.role } else { Role::User };
        for p in &said.parts {
            match p {
                Part::Text(t) | Part::Summary(t) => append(&mut text, who, t),
                Part::Result { output, .. } => append(&mut text, Role::Tool, output),
                _ => {}
            }
        }
        self.file.text(&text)
    }

    fn load(&self) -> Result<ReopenedSession> {
        let (context, bytes_read) = (self.messages()?, self.size());
        Ok(ReopenedSession { context, bytes_read, notes: Vec::new() })
    }

    fn log(&self) -> Result<Vec<StoredMessage>> {
        self.messages()
    }

    fn size(&self) -> u64 {
        jsonl::size(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Assistant, Tool, User};
    use proptest::prelude::*;

    fn written(who: Role, text: &str) -> String {
        let mut file = String::new();
        append(&mut file, who, text);
        file
    }

    fn read(text: &str, tool: bool) -> Vec<(Role, String)> {
        split_chat_history_markdown(text, tool)
    }

    fn round_trip(list: &[(Role, &str)]) -> Vec<(Role, String)> {
        list.iter().map(|(w, t)| (*w, (*t).to_string())).collect()
    }

    #[test]
    fn lines_end_where_python_ends_them() {
        // All line ends of str.splitlines, and three other characters. A marker after one of the
        // others is read as a marker (docs/sources/aider.md §1.5).
        for end in [
            '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}',
            '\u{2029}',
        ] {
            assert_eq!(
                read(&format!("a{end}# gone{end}b"), false),
                round_trip(&[(Assistant, &format!("a{end}b"))]),
                "{end:?}"
            );
            let lines = written(User, &format!("x{end}y{end}"));
            assert_eq!(lines, "\n#### x  \n#### y  \n", "{end:?}");
        }
        for other in ['\u{1f}', '\u{a0}', '\t'] {
            let text = format!("a{other}# stays");
            assert_eq!(read(&text, false), round_trip(&[(Assistant, &text)]), "{other:?}");
        }
        assert_eq!(read("a\n\r# gone", false), round_trip(&[(Assistant, "a\n\r")]));
    }

    #[test]
    fn headings_in_fences_and_between_markers() {
        // A dropped heading does not end a message, so the user's lines around it stay one message.
        assert_eq!(
            read("#### one\n# gone\n#### two\n", false),
            round_trip(&[(User, "one\ntwo\n")])
        );
        let t = "#### q\n```sh\n# comment\nls\n```\n# aider chat started at X\n#### r\n";
        assert_eq!(
            read(t, false),
            round_trip(&[(User, "q\n"), (Assistant, "```sh\nls\n```\n"), (User, "r\n")])
        );
        // Program output in the middle is returned on request, but never at the end. Blank output
        // is dropped.
        let t = "> t1\n#### q\n>  \nreply\n> t2\n";
        assert_eq!(
            read(t, true),
            round_trip(&[(Tool, "t1\n"), (User, "q\n"), (Assistant, "reply\n")])
        );
        assert_eq!(read(t, false), round_trip(&[(User, "q\n"), (Assistant, "reply\n")]));
        // The reply ends the user's message, so the file never ends with both. A blank question
        // before it is dropped.
        assert_eq!(read("####  \nreply", false), round_trip(&[(Assistant, "reply")]));
        assert_eq!(read("\u{1f}\u{a0}\u{3000}\n", false), []);
    }

    #[test]
    fn blank_and_odd_contents_are_written_as_python_strips_them() {
        assert_eq!(written(User, "\n"), "\n####  \n");
        assert_eq!(written(User, "a\n\nb"), "\n#### a  \n####   \n#### b  \n");
        assert_eq!(written(User, "a \r\n b\n"), "\n#### a   \n####  b  \n");
        assert_eq!(written(Assistant, ""), "\n\n\n");
        assert_eq!(written(Assistant, "\u{1c} x \u{a0}"), "\nx\n\n");
        assert_eq!(written(Tool, ""), ">  \n");
    }

    #[test]
    fn every_line_of_program_output_is_quoted() {
        // docs/sources/aider.md §1.5: each line is stripped, marked, and ended with two blanks.
        assert_eq!(written(Tool, " a\n  b \n\nc\n"), "> a  \n> b  \n>  \n> c  \n");
        assert_eq!(written(Tool, "a\r\nb\u{c}c"), "> a  \n> b  \n> c  \n");
        assert_eq!(written(Tool, "a\rb"), "> a\rb  \n");
        // No part of the text is read back as a reply.
        let file = format!("{}#### q  \n", written(Tool, "a\n# b\n#### c"));
        let all = [(Tool, "a  \n# b  \n#### c  \n"), (User, "q  \n")];
        assert_eq!(read(&file, true), round_trip(&all));
        assert_eq!(read(&file, false), round_trip(&all[1..]));
    }

    proptest! {
        #[test]
        fn user_text_survives_the_file(text in "[a-z#> ]{1,20}(\n[a-z#> ]{1,20}){0,4}") {
            let back = read(&written(User, &text), false);
            let lines = |t: &str| t.trim_end().lines().map(|l| l.trim_end().to_string()).collect::<Vec<_>>();
            if !text.trim().is_empty() {
                prop_assert_eq!(back.len(), 1);
                prop_assert_eq!(lines(&back[0].1), lines(&text));
            }
        }
    }
}
