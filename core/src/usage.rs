//! Tokens of replies, and lifetimes of cache entries.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// Lifetime of a cache entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ttl {
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    OneHour,
}

impl Ttl {
    /// Returns the lifetime in ms.
    pub fn millis(self) -> Millis {
        match self {
            Ttl::FiveMinutes => 300_000,
            Ttl::OneHour => 3_600_000,
        }
    }
}

/// Tokens of one reply, as the provider reports them. The four input kinds add up to the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was neither read from nor written to the prompt cache.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Reasoning within the output.
    pub reasoning: u64,
    /// Input read from the prompt cache.
    pub cache_read: u64,
    /// Input written to the prompt cache for five minutes.
    pub cache_write: u64,
    /// Input written to the prompt cache for one hour.
    pub cache_write_1h: u64,
    /// The provider's total, if it differs from the sum.
    pub reported_total: Option<u64>,
}

impl Usage {
    /// Returns all input tokens: uncached, read and written.
    pub fn prompt(&self) -> u64 {
        [self.cache_read, self.cache_write, self.cache_write_1h]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }

    /// Returns the provider's total, or the sum of prompt and output.
    pub fn total(&self) -> u64 {
        self.reported_total.unwrap_or(self.prompt().saturating_add(self.output))
    }

    pub fn add(&mut self, o: &Usage) {
        *self = self.combined(o, |a, b| a + b);
    }

    /// Returns what these tokens have beyond others.
    pub fn minus(&self, o: &Usage) -> Usage {
        self.combined(o, u64::saturating_sub)
    }

    fn combined(&self, o: &Usage, of: fn(u64, u64) -> u64) -> Usage {
        Usage {
            input: of(self.input, o.input),
            output: of(self.output, o.output),
            reasoning: of(self.reasoning, o.reasoning),
            cache_read: of(self.cache_read, o.cache_read),
            cache_write: of(self.cache_write, o.cache_write),
            cache_write_1h: of(self.cache_write_1h, o.cache_write_1h),
            reported_total: None,
        }
    }
}
