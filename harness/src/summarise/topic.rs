//! Topics of sentences, and assignment of topics to headings.

use serde::Deserialize;

use super::cues::{Cue, Cues};
use super::words::WORDS;

/// Topic of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Topic {
    /// Request of the user.
    Request,
    /// Other text of the user.
    Message,
    /// Rules and preferences of the user.
    Constraint,
    /// Decisions, causes and findings.
    Decision,
    /// Work that is finished.
    Progress,
    /// Most recent activity.
    Current,
    /// Errors and failures.
    Error,
    /// Files and their changes.
    File,
    /// Numbers, names and results.
    Value,
    /// Work that remains.
    Next,
}

impl Topic {
    /// All topics, in the order of a summary without headings.
    pub const ALL: [Topic; 10] = [
        Topic::Request,
        Topic::Message,
        Topic::Constraint,
        Topic::Decision,
        Topic::Progress,
        Topic::Error,
        Topic::File,
        Topic::Value,
        Topic::Current,
        Topic::Next,
    ];

    /// Returns the largest share of the budget while other topics have candidates. Text of the user
    /// and findings weigh most, and no topic can crowd out the rest.
    pub fn share(self) -> f64 {
        match self {
            Topic::Request | Topic::Constraint | Topic::Decision => 0.35,
            Topic::Message | Topic::Progress | Topic::Current => 0.25,
            Topic::Error | Topic::File | Topic::Next => 0.18,
            Topic::Value => 0.14,
        }
    }

    /// Returns whether a sentence has this topic in addition to its own: "94 passed" is a value
    /// also in a report of progress.
    pub fn is_in(self, cues: Cues) -> bool {
        match self {
            Topic::Value => cues.has(Cue::Number),
            Topic::Error => cues.has(Cue::Error),
            Topic::Decision => cues.has(Cue::Decision),
            Topic::Constraint => cues.has(Cue::Rule) && !cues.has(Cue::Question),
            Topic::File => cues.has(Cue::Path),
            Topic::Next => cues.has(Cue::Todo),
            Topic::Request | Topic::Message | Topic::Progress | Topic::Current => false,
        }
    }

    /// Returns the topics under which its sentences appear if it has no heading.
    fn instead(self) -> &'static [Topic] {
        use Topic::*;
        match self {
            Request => &[Message, Constraint, Current, Progress],
            Message => &[Request, Constraint],
            Constraint => &[Message, Value, Request, Decision],
            Decision => &[Value, Progress, Constraint, Error],
            Progress => &[Current, Decision],
            Current => &[Progress, Next],
            Error => &[Decision, Progress],
            File => &[Progress, Value],
            Value => &[Constraint, Decision, File],
            Next => &[Current, Request],
        }
    }
}

/// Returns how strongly a heading indicates a topic. Its name counts six times as much as its
/// explanation.
pub(super) fn affinity(name: &str, note: &str, topic: Topic) -> f32 {
    let score = |text: &str| {
        let low = text.to_lowercase();
        let words: Vec<&str> = low.split(|c: char| !c.is_alphanumeric()).collect();
        let stems = WORDS.headings.get(&topic).into_iter().flatten();
        let found = stems.filter(|(stem, _)| words.iter().any(|w| w.starts_with(stem)));
        found.map(|(_, weight)| weight).sum::<f32>()
    };
    6.0 * score(name) + score(note)
}

/// Returns the topic that fits a heading's name best.
pub(super) fn of_heading(name: &str) -> Option<Topic> {
    let best = Topic::ALL
        .into_iter()
        .map(|t| (t, affinity(name, "", t)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    best.filter(|b| b.1 > 0.0).map(|b| b.0)
}

/// Returns the heading of each topic, in the order of [`Topic::ALL`]. `strength(heading, topic)` is
/// their affinity.
pub(super) fn places(headings: usize, strength: impl Fn(usize, Topic) -> f32) -> [usize; 10] {
    let best = |t: Topic| {
        let mut best = None;
        let mut most = 0.0;
        for h in 0..headings {
            let s = strength(h, t);
            if s > most {
                (best, most) = (Some(h), s);
            }
        }
        best
    };
    Topic::ALL.map(|t| best(t).or_else(|| t.instead().iter().find_map(|&i| best(i))).unwrap_or(0))
}
