//! Readers for recordings of real programs. A format is a folder with a [`Format`] and a line in
//! [`ALL`].
//!
//! A format has one reader, which converts a [`Source`], a file or a folder, to [`Recording`]s, one
//! at a time. Import and validation both use this result.

use std::path::PathBuf;

mod actions;
mod aider;
mod amp;
mod atif;
mod blocks;
mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod copilot_vscode;
mod counters;
mod crush;
mod cursor;
#[cfg(test)]
mod damage_tests;
mod database;
mod droid;
pub mod exchanges;
mod foreign;
mod format;
mod gemini_cli;
mod gemini_stream;
mod goose;
mod inspect_ai;
mod json;
mod kimi_cli;
mod kimi_code;
pub(crate) mod lines;
mod messages;
mod mini_swe_agent;
mod opencode;
mod openhands;
#[cfg(test)]
mod packed_tests;
mod pi;
mod plausible;
mod prelude;
mod qwen_code;
#[cfg(test)]
pub(crate) mod reading_tests;
mod recording;
mod session;
pub(crate) mod source;
mod swe_agent;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod time;
mod unpack;
mod zed;

pub use counters::Counters;
pub use foreign::program as foreign_program;
pub use format::Format;
pub use lines::is_about_damage;
pub(crate) use messages::definition;
pub use recording::{
    ContextPlace, Input, MessagePart, NoteKind, ProviderRoute, Recording, RecordingCompaction,
    RecordingReply, RecordingStep, StepKind, View,
};
pub use source::{Archive, Head, SearchedFolders, Source};
pub use time::millis;

/// All recording formats, in the order in which they are tried.
pub static ALL: &[&Format] = &[
    &exchanges::FORMAT,
    &qwen_code::FORMAT,
    &claude_code::FORMAT,
    &codex::FORMAT,
    &copilot_cli::FORMAT,
    &copilot_vscode::FORMAT,
    &gemini_stream::FORMAT,
    &kimi_code::FORMAT,
    &kimi_cli::FORMAT,
    &droid::FORMAT,
    &amp::FORMAT,
    &pi::OPENCLAW,
    &pi::FORMAT,
    &inspect_ai::FORMAT,
    &swe_agent::FORMAT,
    &mini_swe_agent::FORMAT,
    &cursor::FORMAT,
    &goose::FORMAT,
    &crush::FORMAT,
    &zed::FORMAT,
    &opencode::FORMAT,
    &openhands::FORMAT,
    &gemini_cli::FORMAT,
    &atif::FORMAT,
    &aider::FORMAT,
    &cline::FORMAT,
    &messages::ANTHROPIC,
    &messages::RESPONSES,
    &messages::CHAT,
];

/// Returns the format of a source, or `None` if no format of [`ALL`] recognises it.
pub fn detect(source: &Source<'_>) -> Option<&'static Format> {
    detect_head(&source.head().ok()?)
}

/// Returns the companion files of a source that are recordings themselves.
pub fn parts(source: &Source<'_>) -> Vec<PathBuf> {
    // Most files have no companions, and finding that out is cheaper than recognising the format.
    if ALL.iter().all(|format| (format.parts)(source).is_empty()) {
        return Vec::new();
    }
    detect(source).map(|format| (format.parts)(source)).unwrap_or_default()
}

/// Returns the format that recognises a beginning. Files of programs that are not read have none.
pub fn detect_head(head: &Head) -> Option<&'static Format> {
    if foreign::program(head).is_some() {
        return None;
    }
    ALL.iter().copied().find(|f| (f.sniff)(head))
}

pub fn by_name(name: &str) -> Option<&'static Format> {
    ALL.iter().copied().find(|f| f.name == name)
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|f| f.name).collect()
}

/// Returns the titles of all formats as text: "A, B or C".
pub fn titles() -> String {
    let titles: Vec<&str> = ALL.iter().map(|f| f.title).collect();
    let (last, others) = titles.split_last().expect("there are formats");
    format!("{} or {last}", others.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_says_of_each_format_what_it_cannot_tell() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recordings.md");
        let page = std::fs::read_to_string(path).unwrap();
        for Format { title, name, untold, .. } in ALL {
            let row = page.lines().find(|l| l.starts_with(&format!("| {title} | `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("no row for {name}"));
            assert!(row.ends_with(&format!("| {untold} |")), "{name}: {row}");
        }
        let (_, calls) = page.split_once("| what identifies a call |").unwrap();
        let calls: String = calls.lines().skip(2).take_while(|l| l.starts_with('|')).collect();
        for title in ALL.iter().flat_map(|f| f.title.split_whitespace().next()) {
            assert!(calls.contains(title), "what identifies a call of {title}?");
        }
    }
}
