//! Conversion of recorded RFC 3339 time stamps to milliseconds.

use ctxbench_util::calendar::{days, iso};

/// Returns milliseconds since 1970 for a stamp such as `2026-01-08T20:53:23.476Z` or `…+01:00`.
pub fn millis(stamp: &str) -> Option<i64> {
    let b = stamp.as_bytes();
    if !stamp.is_ascii()
        || b.len() < 20
        || b[4] != b'-'
        || b[7] != b'-'
        || !matches!(b[10], b'T' | b't' | b' ')
    {
        return None;
    }
    let number = |from: usize, to: usize| stamp[from..to].parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = &stamp[19..];
    let digits =
        rest.strip_prefix('.').map_or(0, |r| r.bytes().take_while(u8::is_ascii_digit).count());
    let (fraction, zone) =
        if digits > 0 { (&rest[1..1 + digits], &rest[1 + digits..]) } else { ("", rest) };
    let ms = format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?;
    let offset = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let minutes = zone[1..3].parse::<i64>().ok()? * 60 + zone[4..6].parse::<i64>().ok()?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    Some(
        (days(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second - offset * 60)
            * 1_000
            + ms,
    )
}

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
        assert_eq!(
            normal("2025-04-30T16:32:54.707474").as_deref(),
            Some("2025-04-30T16:32:54.707474Z")
        );
        assert_eq!(
            normal("2026-01-08T21:53:23+01:00").as_deref(),
            Some("2026-01-08T21:53:23+01:00")
        );
        assert_eq!(normal("yesterday"), None);
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

    #[test]
    fn stamps_become_milliseconds() {
        assert_eq!(millis("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(millis("2000-02-29T12:00:00Z"), Some(951_825_600_000));
        assert_eq!(millis("2026-01-08T20:53:23.476Z"), Some(1_767_905_603_476));
        assert_eq!(millis("2026-01-08T21:53:23.4+01:00"), Some(1_767_905_603_400));
        for bad in [
            "",
            "2026-01-08",
            "2026-13-08T20:53:23Z",
            "2026-02-30T20:53:23Z",
            "2025-02-29T20:53:23Z",
            "2026-01-08T20:53:23",
            "2026-01-08T20:53:23.5+1:00",
        ] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }
}
