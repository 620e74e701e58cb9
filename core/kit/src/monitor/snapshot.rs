//! The state of the budget after a reply, for a status line (docs/sources/openoxide.md
//! §2.8).

use ctxbench_core::{Millis, Usage};

/// State of window, cost and totals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetSnapshot {
    /// Context window, tokens.
    pub window: u64,
    /// Input tokens of the last reply's prompt, cached ones included.
    pub used: u64,
    /// Window less `used`, tokens; 0 when the prompt was larger.
    pub remaining: u64,
    /// `used` as a percentage of the window.
    pub percentage: f64,
    /// USD so far, side requests included.
    pub cost_usd: f64,
    /// Virtual time since the start, ms.
    pub duration_ms: Millis,
    /// Input tokens of all requests together; may exceed the window.
    pub total_input: u64,
    /// Output tokens of all requests together.
    pub total_output: u64,
    /// Usage of the last normal reply; `None` before the first.
    pub last_call: Option<Usage>,
}

impl BudgetSnapshot {
    /// Creates a snapshot of a window after a reply.
    pub fn of_window(window: u64, last_call: Option<Usage>) -> Self {
        let used = last_call.map_or(0, |u| u.prompt());
        let percentage = if window == 0 { 0.0 } else { 100.0 * used as f64 / window as f64 };
        BudgetSnapshot {
            window,
            used,
            remaining: window.saturating_sub(used),
            percentage,
            last_call,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_equals_the_input_of_the_last_call() {
        let usage = Usage {
            input: 1_000,
            output: 500,
            cache_read: 40_000,
            cache_write: 9_000,
            ..Usage::default()
        };
        let s = BudgetSnapshot::of_window(200_000, Some(usage));
        assert_eq!((s.used, s.remaining, s.percentage), (50_000, 150_000, 25.0));
        assert_eq!(BudgetSnapshot::of_window(0, None).percentage, 0.0);
        assert_eq!(BudgetSnapshot::of_window(10, Some(usage)).remaining, 0);
    }
}
