//! State of facts at their needs, and their history over a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use ctxbench_session::fact::{FactKind, Match};

/// Kind of block that contains a fact. If there are several, the last one in this list counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactPlace {
    #[default]
    Nowhere,
    Summary,
    /// Memory files, the system prompt, a repo map.
    Memory,
    /// A file that was shown again.
    Restored,
    /// Unchanged part of the history.
    Verbatim,
}

/// A (fact, need) pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FactRecord {
    pub fact: String,
    pub kind: FactKind,
    /// Id of the message that needs the fact.
    pub need: String,
    /// Number of replies since a tool or a user last showed the fact; `None` if only the agent
    /// stated it in this window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<u64>,
    /// True if the last showing of the fact belongs to an earlier session of the project; if it was
    /// never shown, the reply in which it arises counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub across: bool,
    /// True if the need asks for memory: a user message needs the fact, or a reply that comes long
    /// after the last showing.
    #[serde(default)]
    pub counts: bool,
    /// True if a request before the need had removed or changed the block that showed the fact
    /// last; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed: Option<bool>,
    /// Number of the request at the need; `None` if the run did not reach it.
    pub request: Option<u64>,
    /// Quality of the match in the context.
    pub found: Match,
    /// Share of the fact's literals that the context showed, 0 to 1.
    #[serde(default)]
    pub share: f64,
    /// Kind of block that contained the fact.
    pub place: FactPlace,
    /// True if the context contained an older value that the fact had replaced, but not the fact.
    pub stale: bool,
    /// True if the context contained the fact and an older value that it had replaced.
    #[serde(default)]
    pub both: bool,
    /// True if the fact arises in another window than the need and was never stated in the window
    /// of the need. No strategy could show it, so it is not counted in any share.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undelivered: bool,
    /// Number of compactions before the need.
    pub compactions_before: u64,
}

impl FactRecord {
    /// Returns true if the need asks for memory and some strategy could have answered it.
    pub fn is_need(&self) -> bool {
        self.counts && !self.undelivered
    }

    /// Returns true if the fact had to survive: the run had removed or changed what showed it last,
    /// or the agent fetches it again.
    pub fn is_at_risk(&self) -> bool {
        self.is_need() && (self.exposed == Some(true) || self.kind == FactKind::Content)
    }
}

/// Share of needed facts that the context still showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Recall {
    /// Mean over the events, per cent; `None` without events.
    pub pct: Option<f64>,
    /// Number of messages with such needs. All needs of one message are one event, whose share is
    /// their mean.
    pub events: u64,
}

impl Recall {
    /// Returns the recall over some needs.
    pub fn over<'a>(needs: impl Iterator<Item = &'a FactRecord>) -> Recall {
        let mut events: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
        for need in needs {
            let (sum, n) = events.entry(&need.need).or_default();
            *sum += need.share;
            *n += 1;
        }
        let sum: f64 = events.values().map(|(sum, n)| sum / f64::from(*n)).sum();
        let n = events.len() as f64;
        Recall { pct: (n > 0.0).then(|| 100.0 * sum / n), events: events.len() as u64 }
    }

    /// Returns the recall over the events of several runs.
    pub fn pooled(all: impl Iterator<Item = Recall>) -> Recall {
        let (sum, events) = all.fold((0.0, 0), |(sum, events), r| {
            (sum + r.pct.unwrap_or_default() * r.events as f64, events + r.events)
        });
        Recall { pct: (events > 0).then(|| sum / events as f64), events }
    }
}

/// Returns the ends of Wilson's interval of 95 % for a mean share of `n` cases, 0 to 1.
pub(crate) fn wilson(share: f64, n: f64) -> [f64; 2] {
    let square = 1.96 * 1.96 / n;
    let half = (share * (1.0 - share) * square + square * square / 4.0).sqrt();
    [-half, half].map(|half| ((share + square / 2.0 + half) / (1.0 + square)).clamp(0.0, 1.0))
}

/// Maximum length of a text in a [`FactLife`], characters.
pub const EXCERPT: usize = 200;

/// History of a fact. Texts are cut to [`EXCERPT`] characters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FactLife {
    pub fact: String,
    /// Literals of the fact; if it has none, the stems of its text.
    pub tokens: Vec<String>,
    /// Id of the message or call that first states the fact.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arises: String,
    /// Excerpt of the source of the fact.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub text: Arc<str>,
    /// Number of the first request that showed the fact; `None` if no request did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_shown: Option<u64>,
    /// Compactions that moved the fact from one place to another, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<FactMove>,
}

/// A compaction that moved a fact from one place to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FactMove {
    /// Number of the compaction in the run.
    pub compaction: u64,
    pub from: FactPlace,
    pub to: FactPlace,
    /// Excerpt from before the compaction.
    pub before: Arc<str>,
    /// Excerpt around the fact after the compaction. If the fact was removed, the line of a summary
    /// that is nearest to `before`; empty if there is none.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub after: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 0.5 ± √(0.25 · 0.38416 + 0.38416² ÷ 4) ÷ 1.38416 for five of ten.
    #[test]
    fn intervals() {
        for (share, n, expected) in [
            (0.5, 10.0, "0.2366–0.7634"),
            (0.0, 10.0, "0.0000–0.2775"),
            (1.0, 1.0, "0.2065–1.0000"),
        ] {
            let [low, high] = wilson(share, n);
            assert_eq!(format!("{low:.4}–{high:.4}"), expected);
        }
    }
}
