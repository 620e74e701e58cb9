//! Time stamps of recordings: RFC 3339 into milliseconds.

/// Milliseconds since 1970 of a stamp such as `2026-01-08T20:53:23.476Z` or `…+01:00`.
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

/// Days since 1970 of a date in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let leaps = |y: i64| y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before =
        [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][usize::try_from(month - 1).ok()?];
    let leap_day = i64::from(is_leap && month > 2);
    Some((year - 1970) * 365 + leaps(year - 1) - leaps(1969) + before + leap_day + day - 1)
}

#[cfg(test)]
mod tests {
    use super::millis;

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
            "2026-01-08T20:53:23",
            "2026-01-08T20:53:23.5+1:00",
        ] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }
}
