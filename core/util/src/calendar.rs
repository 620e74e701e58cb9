//! Dates and times of the Gregorian calendar, in UTC.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;

/// Formats a time in ms since 1970 as ISO 8601 in UTC, such as `2026-05-11T08:27:17.490Z`; times
/// after the year 9999 become its end.
pub fn iso(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}Z", Offset::UTC.to_datetime(time.unwrap_or(Timestamp::MAX)))
}

/// Returns the number of days from 1970-01-01 to a date, or `None` if the date does not exist.
pub fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?);
    Some(Offset::UTC.to_timestamp(date.ok()?.at(0, 0, 0, 0)).ok()?.as_second() / 86_400)
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
    fn days_rejects_dates_that_do_not_exist() {
        assert_eq!(days(1970, 1, 1), Some(0));
        assert_eq!(days(2000, 2, 29), Some(11_016));
        assert_eq!(days(1969, 12, 31), Some(-1));
        for (year, month, day) in [(2026, 2, 29), (2026, 2, 30), (2026, 4, 31), (2026, 13, 1)] {
            assert_eq!(days(year, month, day), None, "{year}-{month}-{day}");
        }
    }
}
