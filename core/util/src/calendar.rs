//! Dates and times of the Gregorian calendar, in UTC.

use jiff::Timestamp;
use jiff::tz::Offset;

/// Formats a time in ms since 1970 as ISO 8601 in UTC, such as `2026-05-11T08:27:17.490Z`; times
/// after the year 9999 become its end.
pub fn iso(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}Z", Offset::UTC.to_datetime(time.unwrap_or(Timestamp::MAX)))
}

/// Returns milliseconds since 1970 for a time in RFC 3339 such as `2026-01-08T20:53:23.476Z` or
/// `…+01:00`.
pub fn millis(stamp: &str) -> Option<i64> {
    stamp.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_formats_known_times() {
        // `date -u -d @N`.
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(iso(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso(1_778_488_037_490), "2026-05-11T08:27:17.490Z");
        assert!(iso(u64::MAX).starts_with("9999-12-3"));
    }

    #[test]
    fn millis_reads_stamps_and_rejects_dates_that_do_not_exist() {
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
