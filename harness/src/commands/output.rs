//! Standard output and standard error.
//!
//! Names and texts of sessions are untrusted, so this module escapes all text that is printed for
//! people.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use ctxbench_reports::{ReportError, printable};
use serde::Serialize;

/// Removes control characters and invisible marks from a text, except line breaks and tabs.
pub(crate) fn escape(text: &str) -> String {
    let line = |l: &str| l.split('\t').map(printable).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses notes on standard error from now on.
pub(crate) fn set_quiet(quiet: bool) {
    IS_QUIET.store(quiet, Ordering::Relaxed);
}

/// Writes a line to standard error, escaped. Ignores a closed standard error, where `eprintln!`
/// would panic.
pub(crate) fn write_stderr(line: &str) {
    if !(IS_QUIET.load(Ordering::Relaxed) && line.starts_with("note: ")) {
        let _ = writeln!(io::stderr(), "{}", escape(line));
    }
}

/// Prints text for people to standard output, escaped.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_data(&escape(text))
}

/// Prints text to standard output without changes, such as JSON, sessions, and tables with colours.
/// Adds a final newline if there is none.
pub(crate) fn print_data(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let printed = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()))
        .and_then(|()| out.flush());
    check_printed(printed)
}

/// Prints a value as JSON to standard output.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_data(&serde_json::to_string_pretty(value)?)
}

/// Prints a value as JSON, or else the text for people.
pub(crate) fn print_either(
    as_json: bool,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if as_json { print_json(value) } else { print(&text()) }
}

/// Prints data while `write` produces it. `write` must end the last line itself.
pub(crate) fn print_with(
    write: impl FnOnce(&mut dyn Write) -> Result<(), ReportError>,
) -> anyhow::Result<()> {
    match write(&mut io::BufWriter::new(io::stdout().lock())) {
        Err(ReportError::Io(e)) => check_printed(Err(e)),
        other => Ok(other?),
    }
}

/// Returns an error if standard output could not be written. A closed pipe is not an error.
pub(crate) fn check_printed(printed: io::Result<()>) -> anyhow::Result<()> {
    match printed {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("failed to write to stdout"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_of_terminal_sequences_keeps_lines_and_tabs() {
        assert_eq!(
            escape("a\u{1b}]0;title\u{7}b\n\tc\u{9b}31m\u{202e}d"),
            "a ]0;title b\n\tc 31m d"
        );
    }
}
