//! Recorded times: RFC 3339, and seconds or milliseconds since 1970.

use ctxbench_util::calendar::iso;
pub use ctxbench_util::calendar::millis;

/// Converts a stamp to the form that [`millis`] reads. Some programs write no zone, which is taken
/// as UTC. Intervals between stamps remain correct.
pub(super) fn normal(stamp: &str) -> Option<String> {
    let stamp = stamp.trim();
    [stamp.to_string(), format!("{stamp}Z")].into_iter().find(|s| millis(s).is_some())
}

/// Formats a time since 1970 in seconds, or in milliseconds if the number is large.
pub(crate) fn of_epoch(time: f64) -> Option<String> {
    // The limit is the year 5138 in seconds and 1973 in milliseconds.
    let ms = if time.abs() < 1e11 { time * 1e3 } else { time };
    if ms.is_finite() { of_millis(ms.round() as i64) } else { None }
}

/// Formats a time in ms since 1970, up to the year 5138.
pub(crate) fn of_millis(ms: i64) -> Option<String> {
    if !(0..100_000_000_000_000).contains(&ms) {
        return None;
    }
    u64::try_from(ms).ok().map(iso)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_times_become_stamps() {
        for (time, stamp) in [
            ("2025-04-30T16:32:54.707474", Some("2025-04-30T16:32:54.707474Z")),
            ("2026-01-08T21:53:23+01:00", Some("2026-01-08T21:53:23+01:00")),
            ("yesterday", None),
        ] {
            assert_eq!(normal(time).as_deref(), stamp);
        }
        for (time, ms) in [
            (0.0, 0),
            (951_825_600.0, 951_825_600_000),
            (1_767_905_603.476, 1_767_905_603_476),
            (1_767_905_603_476.0, 1_767_905_603_476),
        ] {
            assert_eq!(millis(&of_epoch(time).unwrap()), Some(ms), "{time}");
        }
        assert_eq!(of_epoch(951_825_600.0).as_deref(), Some("2000-02-29T12:00:00.000Z"));
        for bad in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            assert_eq!(of_epoch(bad), None);
        }
    }
}
