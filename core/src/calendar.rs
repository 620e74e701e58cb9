//! Dates and times of the Gregorian calendar, in UTC.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

pub const MS_PER_DAY: u64 = 86_400_000;

/// Converts a time in ms since 1970; times after the year 9999 become its end.
fn utc(ms: u64) -> DateTime {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    Offset::UTC.to_datetime(time.unwrap_or(Timestamp::MAX))
}

/// Returns year, month and day of a day since 1970.
pub fn civil(days: u64) -> (i16, i8, i8) {
    let date = utc(days.saturating_mul(MS_PER_DAY)).date();
    (date.year(), date.month(), date.day())
}

/// Formats a time in ms since 1970 as ISO 8601 in UTC, such as `2026-05-11T08:27:17.490Z`.
pub fn iso(ms: u64) -> String {
    format!("{:.3}Z", utc(ms))
}

/// Returns hour, minute, second and millisecond of a time in ms since 1970.
pub fn clock(ms: u64) -> (i8, i8, i8, i16) {
    let time = utc(ms);
    (time.hour(), time.minute(), time.second(), time.millisecond())
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
    fn civil_and_clock_split_a_time() {
        assert_eq!(civil(20_584), (2026, 5, 11));
        assert_eq!(clock(1_778_488_037_490), (8, 27, 17, 490));
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
