//! Times as rollouts write them: UTC with milliseconds, and the path of a session by day.

use std::path::PathBuf;

use ctxbench_core::calendar::civil;

const MS_PER_DAY: u64 = 86_400_000;

/// A time as ISO 8601 in UTC, such as `2026-05-11T08:27:17.490Z`.
pub fn iso(ms: u64) -> String {
    let (year, month, day) = civil(ms / MS_PER_DAY);
    let (hour, minute, second, ms) = clock(ms);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Where a session that began at a time is kept, below the program's folder:
/// `sessions/YYYY/MM/DD/rollout-YYYY-MM-DDTHH-MM-SS-ID.jsonl` (docs/sources/codex.md §4). The day
/// is that of UTC.
pub fn rollout_path(began_ms: u64, session: &str) -> PathBuf {
    let (year, month, day) = civil(began_ms / MS_PER_DAY);
    let (hour, minute, second, _) = clock(began_ms);
    let name = format!(
        "rollout-{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}-{session}.jsonl"
    );
    ["sessions", &format!("{year:04}"), &format!("{month:02}"), &format!("{day:02}"), &name]
        .iter()
        .collect()
}

fn clock(ms: u64) -> (u64, u64, u64, u64) {
    let s = ms / 1_000;
    (s / 3_600 % 24, s / 60 % 60, s % 60, ms % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        // `date -u -d @N`.
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(iso(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso(1_778_488_037_490), "2026-05-11T08:27:17.490Z");
    }

    #[test]
    fn sessions_are_kept_by_day() {
        let path = rollout_path(1_778_488_037_490, "019e1625");
        assert_eq!(
            path.to_string_lossy(),
            "sessions/2026/05/11/rollout-2026-05-11T08-27-17-019e1625.jsonl"
        );
    }
}
