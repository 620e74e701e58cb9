//! A row without requests, compactions, facts and texts, but with the totals that reports over many
//! sessions need. It takes about three kilobytes instead of a hundred.

use std::hash::{DefaultHasher, Hash, Hasher};

use ctxbench_core::request::Purpose;

use super::{RequestRecord, RunRecord};
use crate::{recorded, spend};

/// Totals of a digested row; see [`RunRecord::digested`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Digest {
    sent: RequestDigest,
    summaries: SummaryCalls,
    /// Replies of the main conversation before each compaction.
    pub(crate) replies: Vec<usize>,
    /// Rows of the table of costs.
    pub(crate) spend: Vec<Vec<String>>,
}

/// Hash of the figures of all requests: equal for two runs that sent the same requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestDigest {
    pub(crate) requests: usize,
    figures: u64,
}

/// The requests that wrote summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SummaryCalls {
    /// Sum of input and output tokens.
    pub(crate) tokens: u64,
    pub(crate) cost_usd: f64,
}

impl RunRecord {
    /// Removes requests, facts and texts, and adds the totals that reports over all sessions need.
    /// Compactions are kept where a table lists them: in recorded rows and in rows of the recorded
    /// product.
    pub fn digested(mut self) -> RunRecord {
        if self.digest.is_some() {
            return self;
        }
        let listed = recorded::is_of_product(&self);
        let replies =
            |r: &RunRecord| r.compactions.iter().map(|c| recorded::before_reply(r, c)).collect();
        self.digest = Some(Box::new(Digest {
            sent: self.sent(),
            summaries: self.summary_calls(),
            replies: if listed { replies(&self) } else { vec![] },
            spend: spend::rows(&self),
        }));
        self.requests = vec![];
        self.facts = vec![];
        self.lives = vec![];
        self.triggers = vec![];
        self.strategy.settings.clear();
        match listed {
            true => self.compactions.iter_mut().for_each(|c| {
                c.went = vec![];
                c.came = vec![];
            }),
            false => self.compactions = vec![],
        }
        self
    }

    pub(crate) fn sent(&self) -> RequestDigest {
        if let Some(d) = &self.digest {
            return d.sent;
        }
        let mut hash = DefaultHasher::new();
        for q in &self.requests {
            (q.input_tokens, q.cache_read, q.cache_write, q.output_tokens).hash(&mut hash);
            q.cost_usd.to_bits().hash(&mut hash);
        }
        RequestDigest { requests: self.requests.len(), figures: hash.finish() }
    }

    /// Tokens and cost of summaries: those that a strategy requested, and those that the provider
    /// wrote within a request.
    pub(crate) fn summary_calls(&self) -> SummaryCalls {
        if let Some(d) = &self.digest {
            return d.summaries;
        }
        let own = |q: &RequestRecord| match q.purpose {
            Purpose::Summary => (q.input_tokens + q.output_tokens, q.cost_usd),
            // Compaction by the provider within the request.
            _ => (q.compaction_tokens, q.compaction_usd),
        };
        SummaryCalls {
            tokens: self.requests.iter().map(|q| own(q).0).sum(),
            cost_usd: self.requests.iter().map(|q| own(q).1).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::Results;
    use crate::table::{TableOptions, table};
    use crate::{stats, testing};

    /// Several sessions, one with a recorded row next to its product, and several seeds.
    fn results() -> Results {
        let mut results = testing::results();
        for id in ["second", "third"] {
            results.runs.extend(testing::LABELS.iter().map(|l| testing::run(id, l, 3)));
        }
        for r in results.runs.iter_mut().filter(|r| r.scenario.id == "third") {
            r.scenario.product = Some("codex".into());
        }
        results
    }

    #[test]
    fn what_is_said_of_all_sessions_is_the_same_of_digests() {
        let whole = results();
        let digested = Results {
            runs: whole.runs.iter().map(|r| r.clone().digested()).collect(),
            ..whole.clone()
        };
        assert!(digested.runs.iter().all(|r| r.requests.is_empty() && r.facts.is_empty()));
        assert_eq!(stats::over_sessions(&digested), stats::over_sessions(&whole));
        let options = TableOptions { details: true, ..TableOptions::default() };
        let shown = |results| table(results, &options);
        assert_eq!(shown(&digested), shown(&whole));
        for (a, b) in digested.runs.iter().zip(&whole.runs) {
            assert!(a.columns().eq(b.columns()), "{}", a.strategy.label);
        }
    }
}
