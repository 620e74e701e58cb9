//! Topics of sentences, and assignment of topics to headings.

use super::cues::Cues;

/// Topic of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
            Topic::Value => cues.has(Cues::NUMBER),
            Topic::Error => cues.has(Cues::ERROR),
            Topic::Decision => cues.has(Cues::DECISION),
            Topic::Constraint => cues.has(Cues::RULE) && !cues.has(Cues::QUESTION),
            Topic::File => cues.has(Cues::PATH),
            Topic::Next => cues.has(Cues::TODO),
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

/// Stems of terms in headings, with their topic and its weight.
const STEMS: &[(&str, Topic, f32)] = &[
    ("goal", Topic::Request, 3.0),
    ("objective", Topic::Request, 3.0),
    ("request", Topic::Request, 3.0),
    ("intent", Topic::Request, 2.0),
    ("aim", Topic::Request, 2.0),
    ("overview", Topic::Request, 2.0),
    ("asked", Topic::Request, 1.0),
    ("task", Topic::Request, 1.0),
    ("message", Topic::Message, 4.0),
    ("constraint", Topic::Constraint, 4.0),
    ("preference", Topic::Constraint, 3.0),
    ("prefers", Topic::Constraint, 3.0),
    ("instruction", Topic::Constraint, 3.0),
    ("wish", Topic::Constraint, 2.5),
    ("rule", Topic::Constraint, 2.5),
    ("requirement", Topic::Constraint, 2.0),
    ("limit", Topic::Constraint, 1.0),
    ("detail", Topic::Constraint, 1.0),
    ("context", Topic::Constraint, 1.0),
    ("decision", Topic::Decision, 4.0),
    ("discover", Topic::Decision, 3.0),
    ("finding", Topic::Decision, 3.0),
    ("solving", Topic::Decision, 2.0),
    ("approach", Topic::Decision, 2.0),
    ("choice", Topic::Decision, 2.0),
    ("why", Topic::Decision, 1.0),
    ("detail", Topic::Decision, 0.9),
    ("concept", Topic::Decision, 0.5),
    ("progress", Topic::Progress, 3.0),
    ("done", Topic::Progress, 3.0),
    ("complet", Topic::Progress, 3.0),
    ("accomplish", Topic::Progress, 3.0),
    ("finished", Topic::Progress, 2.0),
    ("status", Topic::Progress, 2.0),
    ("state", Topic::Progress, 2.0),
    ("work", Topic::Progress, 0.5),
    ("active", Topic::Current, 3.0),
    ("current", Topic::Current, 3.0),
    ("ongoing", Topic::Current, 3.0),
    ("error", Topic::Error, 4.0),
    ("block", Topic::Error, 2.0),
    ("bug", Topic::Error, 2.0),
    ("problem", Topic::Error, 1.5),
    ("issue", Topic::Error, 1.5),
    ("fix", Topic::Error, 1.0),
    ("file", Topic::File, 4.0),
    ("artifact", Topic::File, 2.0),
    ("path", Topic::File, 1.0),
    ("code", Topic::File, 1.0),
    ("value", Topic::Value, 4.0),
    ("data", Topic::Value, 2.5),
    ("reference", Topic::Value, 2.5),
    ("technical", Topic::Value, 2.0),
    ("exact", Topic::Value, 1.0),
    ("preserve", Topic::Value, 1.0),
    ("detail", Topic::Value, 0.9),
    ("pending", Topic::Next, 4.0),
    ("todo", Topic::Next, 4.0),
    ("remaining", Topic::Next, 3.0),
    ("next", Topic::Next, 3.0),
    ("plan", Topic::Next, 1.0),
    ("step", Topic::Next, 0.5),
];

/// Returns how strongly a heading indicates a topic. Its name counts six times as much as its
/// explanation.
pub(super) fn affinity(name: &str, note: &str, topic: Topic) -> f32 {
    let score = |text: &str| {
        let low = text.to_lowercase();
        let words: Vec<&str> = low.split(|c: char| !c.is_alphanumeric()).collect();
        STEMS
            .iter()
            .filter(|(stem, t, _)| *t == topic && words.iter().any(|w| w.starts_with(stem)))
            .map(|(_, _, w)| w)
            .sum::<f32>()
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
