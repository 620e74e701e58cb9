//! Allocation of the window in the blueprint's seven steps (docs/sources/openoxide.md §2.2).

use super::error::{BudgetError, BudgetPart};

/// Shares and limits of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetConfig {
    /// System prompt with tools, tokens; measured once when the session starts.
    pub system_prompt_reserve: u64,
    /// Maximum share of the repository map in the space without the system prompt, 0 to 1.
    pub repo_map_fraction: f64,
    /// Lower bound of the map's budget, tokens.
    pub repo_map_min: u64,
    /// Upper bound of the map's budget, tokens.
    pub repo_map_max: u64,
    /// Maximum share of finished turns in the window, 0 to 1.
    pub chat_history_fraction: f64,
    /// Upper bound for finished turns, tokens.
    pub chat_history_max: u64,
    /// Share of the window without the output reserve that remains free for counting errors, 0 to 1.
    pub safety_margin_fraction: f64,
    /// Tokens reserved for the reply.
    pub output_reserve: u64,
}

/// The blueprint's figures (docs/sources/openoxide.md §2.2).
impl Default for BudgetConfig {
    fn default() -> Self {
        BudgetConfig {
            system_prompt_reserve: 0,
            repo_map_fraction: 0.125,
            repo_map_min: 1_024,
            repo_map_max: 8_192,
            chat_history_fraction: 0.0625,
            chat_history_max: 8_192,
            safety_margin_fraction: 0.05,
            output_reserve: 32_000,
        }
    }
}

/// The demand of each part, tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    pub repo_map: u64,
    /// Files for reference.
    pub read_only_files: u64,
    /// Files being worked on.
    pub chat_files: u64,
    /// Finished turns.
    pub chat_history: u64,
    /// The turn under way; always included.
    pub current: u64,
    /// The reminder at the end; always included.
    pub reminder: u64,
}

/// The allocation of each part, tokens. The fields add up to the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Reserved for the reply.
    pub output_reserve: u64,
    /// Reserved for counting errors.
    pub safety_margin: u64,
    pub system: u64,
    pub repo_map: u64,
    /// Files for reference.
    pub read_only_files: u64,
    /// Files being worked on.
    pub chat_files: u64,
    /// Finished turns.
    pub chat_history: u64,
    /// The turn under way.
    pub current: u64,
    /// The reminder at the end.
    pub reminder: u64,
    /// Tokens that were not allocated.
    pub left: u64,
}

fn share(of: u64, fraction: f64) -> u64 {
    ((of as f64 * fraction) as u64).min(of)
}

impl BudgetConfig {
    /// Returns the maximum prompt in tokens: window − output reserve − safety margin, at least 0.
    pub fn limit(&self, window: u64) -> u64 {
        let effective = window.saturating_sub(self.output_reserve);
        effective - share(effective, self.safety_margin_fraction)
    }

    /// Returns the budget of the repository map in tokens: its share of `remaining` within its bounds,
    /// at most `remaining`. The upper bound wins over a larger lower bound.
    pub fn repo_map_budget(&self, remaining: u64) -> u64 {
        let least = self.repo_map_min.min(self.repo_map_max);
        share(remaining, self.repo_map_fraction).clamp(least, self.repo_map_max).min(remaining)
    }

    /// Returns the maximum tokens of finished turns before they are summarised: a share of the whole
    /// window, as in Aider, up to a cap.
    pub fn history_cap(&self, window: u64) -> u64 {
        share(window, self.chat_history_fraction).min(self.chat_history_max)
    }

    /// Allocates a window: output reserve, safety margin, system prompt, repository map, files,
    /// history, then the current turn and the reminder. The last two are always included, so their
    /// tokens are reserved before the optional parts. Fails only if they do not fit next to the system
    /// prompt.
    pub fn allocate(&self, window: u64, demand: &Demand) -> Result<Allocation, BudgetError> {
        let Some(effective) = window.checked_sub(self.output_reserve).filter(|n| *n > 0) else {
            return Err(BudgetError::NoRoom { window, reserve: self.output_reserve });
        };
        let limit = self.limit(window);
        let required = self.system_prompt_reserve + demand.current + demand.reminder;
        let Some(mut left) = limit.checked_sub(required) else {
            let parts = [
                (BudgetPart::System, self.system_prompt_reserve),
                (BudgetPart::Current, demand.current),
                (BudgetPart::Reminder, demand.reminder),
            ];
            return Err(BudgetError::overflow(required, limit, parts));
        };
        let mut take = |wanted: u64| {
            let given = wanted.min(left);
            left -= given;
            given
        };
        let repo_map = take(demand.repo_map.min(self.repo_map_budget(limit - required)));
        let read_only_files = take(demand.read_only_files);
        let chat_files = take(demand.chat_files);
        let chat_history = take(demand.chat_history.min(self.history_cap(window)));
        Ok(Allocation {
            output_reserve: self.output_reserve,
            safety_margin: effective - limit,
            system: self.system_prompt_reserve,
            repo_map,
            read_only_files,
            chat_files,
            chat_history,
            current: demand.current,
            reminder: demand.reminder,
            left,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_blueprint_on_200k() {
        let c = BudgetConfig { system_prompt_reserve: 9_600, ..BudgetConfig::default() };
        let d = Demand {
            repo_map: 50_000,
            chat_files: 20_000,
            chat_history: 30_000,
            current: 1_000,
            ..Demand::default()
        };
        let a = c.allocate(200_000, &d).unwrap();
        assert_eq!((a.output_reserve, a.safety_margin, a.system), (32_000, 8_400, 9_600));
        assert_eq!(
            (a.repo_map, a.chat_files, a.chat_history, a.current),
            (8_192, 20_000, 8_192, 1_000)
        );
        assert_eq!(a.left, 159_600 - 9_600 - 8_192 - 20_000 - 8_192 - 1_000);
        assert_eq!(c.history_cap(64_000), 4_000);
        assert_eq!(
            [c.repo_map_budget(4_000), c.repo_map_budget(40_000), c.repo_map_budget(500)],
            [1_024, 5_000, 500]
        );
    }

    #[test]
    fn the_current_turn_comes_before_all_optional_parts() {
        let c = BudgetConfig { system_prompt_reserve: 1_000, ..BudgetConfig::default() };
        let d =
            Demand { repo_map: 9_000, chat_files: 90_000, current: 26_000, ..Demand::default() };
        let a = c.allocate(62_000, &d).unwrap();
        assert_eq!((a.current, a.repo_map, a.chat_files, a.left), (26_000, 1_024, 476, 0));
        let e = c.allocate(62_000, &Demand { current: 28_000, ..d }).unwrap_err();
        assert_eq!(e.over(), 500);
        assert_eq!(
            c.allocate(32_000, &d),
            Err(BudgetError::NoRoom { window: 32_000, reserve: 32_000 })
        );
    }

    fn config() -> impl Strategy<Value = BudgetConfig> {
        let shares = (0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0);
        (shares, 0u64..9_000, 0u64..9_000, 0u64..9_000, 0u64..40_000, 0u64..20_000).prop_map(
            |((r, h, m), min, max, hist, out, sys)| BudgetConfig {
                system_prompt_reserve: sys,
                repo_map_fraction: r,
                repo_map_min: min,
                repo_map_max: max,
                chat_history_fraction: h,
                chat_history_max: hist,
                safety_margin_fraction: m,
                output_reserve: out,
            },
        )
    }

    fn demand() -> impl Strategy<Value = Demand> {
        let n = || 0u64..60_000;
        (n(), n(), n(), n(), 0u64..9_000, 0u64..2_000).prop_map(
            |(repo_map, read_only_files, chat_files, chat_history, current, reminder)| Demand {
                repo_map,
                read_only_files,
                chat_files,
                chat_history,
                current,
                reminder,
            },
        )
    }

    proptest! {
        #[test]
        fn conserves_the_window_and_respects_every_clamp(c in config(), d in demand(), window in 0u64..300_000) {
            let Ok(a) = c.allocate(window, &d) else { return Ok(()) };
            let fixed = a.output_reserve + a.safety_margin + a.system + a.current + a.reminder;
            let parts = a.repo_map + a.read_only_files + a.chat_files + a.chat_history;
            prop_assert_eq!(fixed + parts + a.left, window);
            prop_assert!(window - a.left <= window);
            prop_assert!(a.repo_map <= c.repo_map_max && a.repo_map <= d.repo_map);
            prop_assert!(a.chat_history <= c.history_cap(window) && a.chat_history <= d.chat_history);
            prop_assert_eq!((a.output_reserve, a.system, a.current, a.reminder), (c.output_reserve, c.system_prompt_reserve, d.current, d.reminder));
            prop_assert!(a.system + a.repo_map + a.read_only_files + a.chat_files + a.chat_history + a.current + a.reminder <= c.limit(window));
        }

        #[test]
        fn a_larger_window_never_gives_less(c in config(), d in demand(), window in 0u64..300_000, more in 0u64..50_000) {
            let Ok(a) = c.allocate(window, &d) else { return Ok(()) };
            let b = c.allocate(window + more, &d).unwrap();
            prop_assert!(b.repo_map >= a.repo_map && b.read_only_files >= a.read_only_files && b.chat_files >= a.chat_files);
            prop_assert!(b.safety_margin >= a.safety_margin);
            prop_assert!(b.chat_history >= a.chat_history);
            let parts = |x: &Allocation| x.repo_map + x.read_only_files + x.chat_files + x.chat_history;
            prop_assert!(parts(&b) >= parts(&a));
        }
    }
}
