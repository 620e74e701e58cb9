//! Integrity failures: requests that no provider would answer and no user would accept.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::word;

/// A broken rule, with the request that shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntegrityFailure {
    /// Number of the request that shows it.
    pub request: u64,
    pub rule: Rule,
    pub detail: String,
}

/// Broken rule, ordered by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rule {
    #[serde(rename = "a compaction stop not handled")]
    CompactionStop,
    #[serde(rename = "compaction loop")]
    CompactionLoop,
    #[serde(rename = "dangling compaction marker")]
    DanglingMarker,
    #[serde(rename = "history uncut after a failed compaction")]
    HistoryUncut,
    #[serde(rename = "orphaned tool call")]
    OrphanedCall,
    #[serde(rename = "orphaned tool result")]
    OrphanedResult,
    #[serde(rename = "prompt over the window")]
    OverTheWindow,
    #[serde(rename = "reasoning of an unfinished tool cycle removed")]
    ReasoningRemoved,
    #[serde(rename = "roles the provider rejects")]
    Roles,
    #[serde(rename = "summary larger than what it replaced")]
    LargerSummary,
    #[serde(rename = "the user's last request dropped")]
    RequestDropped,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&word(self))
    }
}

impl Rule {
    /// Describes what the strategy did, for a sentence that begins with its name.
    pub(crate) fn deed(self) -> &'static str {
        match self {
            Rule::CompactionStop => "did not handle a compaction stop",
            Rule::CompactionLoop => "compacted in a loop",
            Rule::DanglingMarker => "left a dangling compaction marker",
            Rule::HistoryUncut => "left the history uncut after a failed compaction",
            Rule::OrphanedCall => "sent a tool call without its result",
            Rule::OrphanedResult => "sent a tool result without its call",
            Rule::OverTheWindow => "sent an over-long prompt",
            Rule::ReasoningRemoved => "removed the reasoning of an unfinished tool cycle",
            Rule::Roles => "sent roles that the provider rejects",
            Rule::LargerSummary => "wrote a summary larger than what it replaced",
            Rule::RequestDropped => "dropped the user's last request",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_as_their_words_are() {
        use Rule::*;
        let all = [
            CompactionStop,
            CompactionLoop,
            DanglingMarker,
            HistoryUncut,
            OrphanedCall,
            OrphanedResult,
            OverTheWindow,
            ReasoningRemoved,
            Roles,
            LargerSummary,
            RequestDropped,
        ];
        let words = all.map(|r| r.to_string());
        assert!(words.is_sorted() && all.is_sorted(), "{words:?}");
    }
}
