//! Recorded counters, compactions, and calls with replies outside the session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use ctxbench_core::Millis;
use ctxbench_core::usage::Usage;

/// Tokens as the provider counted them for one reply.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedUsage {
    /// Input tokens that were neither read from nor written to the prompt cache.
    #[serde(default)]
    pub input: u64,
    /// Output tokens.
    #[serde(default)]
    pub output: u64,
    /// Input tokens read from the prompt cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Input tokens written to the prompt cache for the short lifetime, or for an unknown lifetime.
    #[serde(default)]
    pub cache_write: u64,
    /// Input tokens written to the prompt cache for the long lifetime.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
    /// Estimated output tokens from the visible reply, if the provider's counter is known to be the
    /// incomplete one from the start of a stream.
    pub output_estimate: Option<u64>,
    #[serde(flatten)]
    pub billing: Billing,
}

/// Identity of a recorded call, and what changes its price besides its tokens.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Billing {
    /// Name of the call, the same wherever a recording repeats it. A call is billed once. Absent if
    /// the recording does not identify it.
    pub call_id: Option<Arc<str>>,
    /// Another name of the call, which is the only one that some copies have.
    pub call_alias: Option<Arc<str>>,
    /// Thread or request of the call. Calls with one name in two threads or requests are different
    /// calls. Absent if the recording does not tell it.
    pub call_in: Option<Arc<str>>,
    /// Speed that the provider reported, such as `fast`; absent for the standard speed.
    pub speed: Option<Arc<str>>,
    /// Service tier that the provider reported, such as `batch`; absent for the standard tier.
    pub tier: Option<Arc<str>>,
    /// Region that the inference was bound to, such as `us`; absent if none.
    pub region: Option<Arc<str>>,
    /// Searches of the web by the provider, which are billed per search.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub web_searches: u64,
    /// Cost of the call in USD as the recording program computed it.
    pub told_usd: Option<f64>,
}

impl RecordedUsage {
    pub fn prompt(&self) -> u64 {
        [self.cache_read, self.cache_write, self.cache_write_1h]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }

    /// Returns whether only the cost is known, by the recording program's own sum. Such a call covers
    /// the replies without counters.
    pub fn is_cost_only(&self) -> bool {
        self.billing.told_usd.is_some() && self.prompt() == 0 && self.output == 0
    }
}

/// Tokens by kind. The estimate of an incomplete output is left out.
impl From<&RecordedUsage> for Usage {
    fn from(u: &RecordedUsage) -> Usage {
        Usage {
            input: u.input,
            output: u.output,
            cache_read: u.cache_read,
            cache_write: u.cache_write,
            cache_write_1h: u.cache_write_1h,
            ..Usage::default()
        }
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The initiator of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The program, because the context was nearly full.
    Auto,
    /// The user.
    Manual,
}

/// A compaction by the original program.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedCompaction {
    /// Context size before, in tokens.
    pub pre_tokens: Option<u64>,
    /// Context size after, in tokens.
    pub post_tokens: Option<u64>,
    pub summary: Option<String>,
    /// The initiator; absent if not recorded. A manual compaction is replayed as the user's command.
    pub trigger: Option<Trigger>,
    /// The user's instructions for the summary.
    pub instructions: Option<String>,
    /// Model that wrote the summary.
    pub model: Option<String>,
    /// The provider's counters of the summary request.
    pub usage: Option<RecordedUsage>,
    /// ms since session start.
    pub at: Option<Millis>,
}

/// A billed request with a reply outside the session.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The provider's counters.
    pub usage: RecordedUsage,
    /// Model that answered.
    pub model: Option<String>,
    /// ms since session start.
    pub at: Option<Millis>,
    /// Name of the subagent; absent means the main conversation.
    pub agent: Option<String>,
}
