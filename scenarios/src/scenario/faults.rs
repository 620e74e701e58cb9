//! Faults of the simulated provider, the `[[fault]]` tables of a scenario.

use ctxbench_core::Millis;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use toml::Spanned;

use super::ScenarioReader;
use crate::bounds;
use crate::error::InputError;

/// Which requests a fault is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultOn {
    /// The agent's own requests.
    #[default]
    Sample,
    /// Requests for a summary, in the foreground or in the background.
    Summary,
}

/// Request that the provider answers in an unusual way: a refusal (`status`, with `code` and
/// `message`), or a given reply (`text`, or `tokens` of filler). Exactly one of `status`, `text`,
/// `tokens`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderFault {
    /// Which requests are counted.
    pub on: FaultOn,
    /// The first request that it hits, counted from 1.
    #[serde(default = "default_times")]
    pub nth: u64,
    /// Number of requests in a row.
    #[serde(default = "default_times")]
    pub times: u64,
    /// HTTP status of a refusal.
    pub status: Option<u16>,
    /// The provider's code.
    pub code: Option<String>,
    /// Message of the provider; its interpretation is up to the client.
    pub message: Option<String>,
    /// The whole reply; empty = a reply without a text.
    pub text: Option<String>,
    /// A reply of this many tokens.
    pub tokens: Option<u64>,
    /// Time until a refusal comes, ms: a timeout is a late refusal.
    #[serde(default)]
    pub after_ms: Millis,
}

fn default_times() -> u64 {
    1
}

impl ProviderFault {
    /// Creates a fault of one request, still without an answer.
    pub fn new(on: FaultOn, nth: u64) -> ProviderFault {
        ProviderFault { on, nth, times: 1, ..ProviderFault::default() }
    }

    /// Returns whether it applies to the `n`-th request of a kind, counted from 1.
    pub fn hits(&self, on: FaultOn, n: u64) -> bool {
        self.on == on && (self.nth..self.nth.saturating_add(self.times)).contains(&n)
    }
}

impl ScenarioReader<'_> {
    pub(super) fn faults(
        &self,
        faults: Vec<Spanned<ProviderFault>>,
    ) -> Result<Vec<ProviderFault>, InputError> {
        let check = |fault: Spanned<ProviderFault>| {
            let line = self.lines.line_at(fault.span().start);
            let mut fault = fault.into_inner();
            let answers = [fault.status.is_some(), fault.text.is_some(), fault.tokens.is_some()];
            if answers.iter().filter(|given| **given).count() != 1 {
                let (what, fix) = ("a fault without its answer", "give the provider's answer");
                let expected = "exactly one of \"status\", \"text\", \"tokens\"";
                return Err(InputError::new(line, what, expected, fix));
            }
            let is_refusal = fault.status.is_none_or(|s| (400..600).contains(&s));
            if fault.nth == 0 || fault.times == 0 || !is_refusal {
                let expected = "\"nth\" and \"times\" from 1, \"status\" from 400 to 599";
                let what = "a fault out of range";
                return Err(InputError::new(line, what, expected, "correct the number"));
            }
            let tokens = bounds::given(("tokens", &mut fault.tokens, 0..=bounds::FILLER_TOKENS));
            let after = ("after_ms", &mut fault.after_ms, 0..=bounds::MS);
            bounds::check(tokens.into_iter().chain([after]).collect(), line)?;
            Ok(fault)
        };
        faults.into_iter().map(check).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_refusals_and_replies() {
        let text = "id = \"x\"\n[[step]]\ntype = \"user\"\ntext = \"hello\"\n[[fault]]\non = \"summary\"\n\
            nth = 2\ntimes = 3\nstatus = 529\nmessage = \"busy\"\n[[fault]]\non = \"sample\"\ntext = \"\"\n";
        let read = crate::parse(text.as_bytes(), "x.toml").unwrap().faults;
        assert_eq!(
            (read[0].nth, read[0].times, read[0].status, read[0].message.as_deref()),
            (2, 3, Some(529), Some("busy"))
        );
        let hit: Vec<u64> = (1..8).filter(|n| read[0].hits(FaultOn::Summary, *n)).collect();
        assert_eq!(hit, [2, 3, 4]);
        assert!(!read[0].hits(FaultOn::Sample, 2) && read[1].hits(FaultOn::Sample, 1));
    }
}
