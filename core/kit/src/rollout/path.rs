//! Paths of rollout files.

use std::path::PathBuf;

use ctxbench_core::calendar::{MS_PER_DAY, civil, clock};

/// Returns the path of a session's rollout below Codex's folder:
/// `sessions/YYYY/MM/DD/rollout-YYYY-MM-DDTHH-MM-SS-ID.jsonl` in UTC (docs/sources/codex.md §4).
pub fn rollout_path(start_ms: u64, session: &str) -> PathBuf {
    let (year, month, day) = civil(start_ms / MS_PER_DAY);
    let (hour, minute, second, _) = clock(start_ms);
    let name = format!(
        "rollout-{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}-{session}.jsonl"
    );
    ["sessions", &format!("{year:04}"), &format!("{month:02}"), &format!("{day:02}"), &name]
        .iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollout_path_contains_day_and_time() {
        let path = rollout_path(1_778_488_037_490, "019e1625");
        assert_eq!(
            path.to_string_lossy(),
            "sessions/2026/05/11/rollout-2026-05-11T08-27-17-019e1625.jsonl"
        );
    }
}
