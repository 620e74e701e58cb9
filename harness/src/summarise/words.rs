//! Words that the summariser recognises, from `words.toml`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::cues::Cue;
use super::topic::Topic;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    /// Words of each cue, separated by white space.
    pub cues: HashMap<Cue, String>,
    /// Phrases of each cue, in scripts without spaces.
    pub phrases: HashMap<Cue, Vec<String>>,
    /// Stems of terms in headings, with their weights.
    pub headings: HashMap<Topic, Vec<(String, f32)>>,
    /// Plurals that request a kind of content.
    pub topics: HashMap<Topic, Vec<String>>,
    /// Requests for a summary.
    pub asks: Vec<String>,
    /// Requests to leave all texts unchanged.
    pub verbatim: Vec<String>,
    /// Requests for more weight of recent text.
    pub recent: Vec<String>,
    /// Phrases before the subject of a summary.
    pub focus: Vec<String>,
    /// Introductions of an earlier summary.
    pub earlier: Vec<String>,
    /// Terms that do not identify a subject.
    pub stop: Vec<String>,
}

pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    toml::from_str(include_str!("words.toml"))
        .expect("the file is part of the program, and every test of a summary reads it")
});

/// Returns whether a text contains one of these words.
pub(super) fn has_any(text: &str, words: &[String]) -> bool {
    words.iter().any(|word| text.contains(word))
}
