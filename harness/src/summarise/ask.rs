//! Instruction for a summary: headings, tags, opening, focus, and texts to copy exactly.

use std::collections::HashSet;

use super::sentences::{fold_key, heading, numbered, pieces};
use super::topic::{self, Topic};
use super::words::{WORDS, has_any};

/// Extent to which texts may be shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quote {
    /// Long sentences are cut.
    Shorten,
    /// Sentences with paths, names, numbers or errors stay whole.
    Literals,
    /// All texts stay unchanged.
    All,
}

/// A requested heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heading {
    /// Line in the summary.
    pub line: String,
    pub name: String,
    /// Explanation of the heading in the instruction.
    pub note: String,
    /// Depth of the heading: 1 = `#`. Numbered headings all have the same depth.
    level: usize,
}

/// A parsed instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// Headings in order. None = a plain list.
    pub headings: Vec<Heading>,
    /// True if the answer is between `<summary>` tags.
    pub summary_tag: bool,
    /// True if thoughts between `<analysis>` tags come first.
    pub analysis_tag: bool,
    /// Texts to copy exactly.
    pub quote: Quote,
    /// Terms that the summary must focus on.
    pub focus: HashSet<String>,
    /// Topics that the summary must focus on, such as "focus on the errors".
    pub topics: Vec<Topic>,
    /// First line of the summary.
    pub opening: Option<String>,
    /// Weight of recent text.
    pub recency: f32,
    /// Keys of the instruction's own sentences, which must not appear in the summary.
    pub own: HashSet<u64>,
}

impl Instruction {
    /// Reads an instruction and the wishes of memory files.
    pub fn parse(instruction: &str, wishes: &str) -> Self {
        let low = instruction.to_lowercase();
        let quote = if has_any(&low, &WORDS.verbatim) {
            Quote::All
        } else if low.contains("quote")
            || low.contains("as they are")
            || (low.contains("exact")
                && ["copy", "keep", "preserve"].iter().any(|w| low.contains(w)))
        {
            Quote::Literals
        } else {
            Quote::Shorten
        };
        let mut own = HashSet::new();
        for text in [instruction, wishes] {
            for line in text.lines().filter(|l| l.len() >= 12) {
                own.insert(fold_key(line));
            }
            pieces(text, |p| {
                if p.text.len() >= 12 {
                    own.insert(fold_key(p.text));
                }
            });
        }
        let asked = focus(instruction, "");
        let wanted =
            WORDS.topics.iter().filter(|(_, words)| words.iter().any(|w| asked.contains(w)));
        Instruction {
            headings: headings(instruction),
            topics: wanted.map(|(topic, _)| *topic).collect(),
            summary_tag: low.contains("<summary>"),
            analysis_tag: low.contains("<analysis>"),
            quote,
            focus: focus(instruction, wishes),
            opening: opening(instruction),
            recency: if has_any(&low, &WORDS.recent) { 1.5 } else { 1.0 },
            own,
        }
    }

    /// Returns the heading for each topic, in the order of [`Topic::ALL`].
    pub fn places(&self) -> [usize; 10] {
        // Each strength is used often, and computing it reads the heading's text.
        let of = |h: usize| Topic::ALL.map(|t| (t, self.strength(h, t)));
        let all: Vec<[(Topic, f32); 10]> = (0..self.headings.len()).map(of).collect();
        let strength =
            |h: usize, t: Topic| all[h].iter().find(|(o, _)| *o == t).map_or(0.0, |s| s.1);
        topic::places(all.len(), strength)
    }

    /// Returns another heading about the next step, after `first`.
    pub fn second_next(&self, first: usize) -> Option<usize> {
        (0..self.headings.len())
            .find(|&h| h != first && topic::of_heading(&self.headings[h].name) == Some(Topic::Next))
    }

    fn strength(&self, h: usize, t: Topic) -> f32 {
        let heading = &self.headings[h];
        // A heading before deeper headings is only their title.
        let title = self.headings.get(h + 1).is_some_and(|n| n.level > heading.level);
        topic::affinity(&heading.name, &heading.note, t) * if title { 0.1 } else { 1.0 }
    }
}

/// Returns the headings in an instruction: `#` lines, inside `<template>` if there is one, or else
/// a numbered list of short names.
fn headings(instruction: &str) -> Vec<Heading> {
    let template = instruction
        .split_once("<template>")
        .and_then(|(_, t)| t.split_once("</template>"))
        .map(|(t, _)| t);
    let hashed = collect(template.unwrap_or(instruction), hashed);
    let listed = collect(instruction, listed);
    if template.is_some() || hashed.len() >= 2 || listed.len() < 2 { hashed } else { listed }
}

fn collect(text: &str, parse: fn(&str) -> Option<Heading>) -> Vec<Heading> {
    let mut out: Vec<Heading> = Vec::new();
    for line in text.lines().map(str::trim) {
        match parse(line) {
            // An example below repeats the names.
            Some(h) if out.iter().any(|o| o.name == h.name) => {}
            Some(h) => out.push(h),
            None => {
                if let Some(o) = out.last_mut().filter(|o| o.note.len() < 400) {
                    o.note.push(' ');
                    o.note.push_str(line);
                }
            }
        }
    }
    if let Some(o) = out.last_mut() {
        // Text after the last heading is usually about the whole answer.
        o.note = o.note.lines().next().unwrap_or("").split(". ").next().unwrap_or("").to_string();
    }
    out
}

fn split_note(text: &str) -> (&str, &str) {
    let at = [": ", " - ", " – ", " — ", ". "]
        .iter()
        .filter_map(|s| text.find(s).map(|i| (i, i + s.len())))
        .min();
    let (name, note) = at.map_or((text, ""), |(i, j)| (&text[..i], &text[j..]));
    (name.trim_matches(['*', ':', ' ', '_', '[', ']']), note)
}

fn hashed(line: &str) -> Option<Heading> {
    let level = line.bytes().take_while(|&b| b == b'#').count();
    if !(1..=6).contains(&level) {
        return None;
    }
    let (name, note) = split_note(heading(line)?);
    let fits = !name.is_empty() && name.len() <= 80;
    fits.then(|| Heading {
        line: format!("{} {name}", "#".repeat(level)),
        name: name.into(),
        note: note.into(),
        level,
    })
}

fn listed(line: &str) -> Option<Heading> {
    let (name, note) = split_note(numbered(line)?);
    let number = line.split(['.', ')']).next().unwrap_or("");
    let fits = !name.is_empty() && name.len() <= 60 && name.split_whitespace().count() <= 8;
    fits.then(|| Heading {
        line: format!("{number}. {name}:"),
        name: name.into(),
        note: note.into(),
        level: 1,
    })
}

/// Returns the terms after cues such as "focus on", and all terms of the wishes.
fn focus(instruction: &str, wishes: &str) -> HashSet<String> {
    let low = instruction.to_lowercase();
    let mut out = HashSet::new();
    let mut add = |text: &str| {
        let words =
            text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.')));
        out.extend(
            words
                .map(|w| w.trim_matches('.'))
                .map(str::to_string)
                .filter(|w| w.len() >= 4 && !WORDS.stop.contains(w)),
        );
    };
    for cue in &WORDS.focus {
        for (at, _) in low.match_indices(cue.as_str()) {
            let rest = &low[at + cue.len()..];
            // A cue with a colon announces a paragraph, and other cues a clause.
            let end = if cue.ends_with(':') {
                rest.trim_start().find("\n\n").map(|e| e + rest.len() - rest.trim_start().len())
            } else {
                rest.find(['\n', '。'])
            };
            add(&rest[..end.unwrap_or(rest.len())]);
        }
    }
    add(&wishes.to_lowercase());
    out
}

/// Returns the text after "Begin with:" or "Start with:" up to the end of the line.
fn opening(instruction: &str) -> Option<String> {
    let low = instruction.to_ascii_lowercase();
    let at = ["begin with:", "start with:", "begin with \"", "start with \""]
        .iter()
        .find_map(|c| low.find(c).map(|i| i + c.len()))?;
    let text = instruction[at..].trim_start().split(['\n', '"', '.']).next().unwrap_or("").trim();
    (!text.is_empty() && text.len() <= 60).then(|| text.to_string())
}
