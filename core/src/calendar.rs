//! Days and times of the Gregorian calendar, in UTC.

pub const MS_PER_DAY: u64 = 86_400_000;

/// Year, month and day of a day since 1970, counted in eras of 400 years that begin in March.
pub fn civil(days: u64) -> (u64, u64, u64) {
    /// Days from 0000-03-01 to 1970-01-01, and days in 400 years.
    const TO_1970: u64 = 719_468;
    const ERA: u64 = 146_097;
    let z = days + TO_1970;
    let (era, of_era) = (z / ERA, z % ERA);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_year - (153 * march + 2) / 5 + 1)
}

/// A time in ms since 1970 as ISO 8601 in UTC, such as `2026-05-11T08:27:17.490Z`.
pub fn iso(ms: u64) -> String {
    let (year, month, day) = civil(ms / MS_PER_DAY);
    let (hour, minute, second, ms) = clock(ms);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Hour, minute, second and millisecond of the day of a time in ms since 1970.
pub fn clock(ms: u64) -> (u64, u64, u64, u64) {
    let s = ms / 1_000;
    (s / 3_600 % 24, s / 60 % 60, s % 60, ms % 1_000)
}

/// The beginning of a day since 1970, such as `2000-02-29T00:00:00Z`.
pub fn midnight(days: u64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T00:00:00Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        // `date -u -d @N`.
        assert_eq!(midnight(0), "1970-01-01T00:00:00Z");
        assert_eq!(midnight(11_015), "2000-02-28T00:00:00Z");
        assert_eq!(midnight(11_016), "2000-02-29T00:00:00Z");
        assert_eq!(midnight(20_584), "2026-05-11T00:00:00Z");
    }

    #[test]
    fn known_times() {
        // `date -u -d @N`.
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(iso(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso(1_778_488_037_490), "2026-05-11T08:27:17.490Z");
    }
}
