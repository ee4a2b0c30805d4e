//! Points in time as the Azure traces write them.

const NANOS: u64 = 1_000_000_000;

/// Nanoseconds since 1970 UTC of `2023-11-16 18:15:46.6805900`, with up to 9 digits after the point,
/// or none and no point; the later traces write `+00:00` behind it. `None` for anything else, and for
/// days that no calendar has.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.strip_suffix("+00:00").unwrap_or(text);
    let (date, time) = text.split_once(' ')?;
    let (clock, fraction) = time.split_once('.').map_or((time, None), |(c, f)| (c, Some(f)));
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = fields(clock, ':', [2, 2, 2])?;
    let in_day = hour < 24 && minute < 60 && second < 60;
    let days = days(year, month, day).filter(|_| in_day)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * NANOS + fraction.map_or(Some(0), nanos)?)
}

/// Three numbers of fixed width.
fn fields(text: &str, separator: char, widths: [usize; 3]) -> Option<[u64; 3]> {
    let mut fields = text.split(separator);
    let mut next = |width| number(fields.next()?, width);
    let values = [next(widths[0])?, next(widths[1])?, next(widths[2])?];
    fields.next().is_none().then_some(values)
}

fn number(digits: &str, width: usize) -> Option<u64> {
    let plain = digits.len() == width && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn nanos(fraction: &str) -> Option<u64> {
    let width = fraction.len();
    if !(1..=9).contains(&width) {
        return None;
    }
    number(fraction, width).map(|digits| (width..9).fold(digits, |digits, _| digits * 10))
}

/// Days from 1970-01-01 in the Gregorian calendar; years 1970 to 2500, which fit 64-bit nanoseconds.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let known = (1970..=2500).contains(&year) && (1..=12).contains(&month);
    if !known || day < 1 || day > days_in(year, month) {
        return None;
    }
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    let months: u64 = (1..month).map(|month| days_in(year, month)).sum();
    Some(years + months + day - 1)
}

const fn days_in(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from `date -u -d '...' +%s%N`.
    #[test]
    fn times_are_nanoseconds_since_1970() {
        for (text, nanos) in [
            ("1970-01-01 00:00:00", 0),
            ("2023-11-16 18:15:46.6805900", 1_700_158_546_680_590_000),
            ("2023-11-16 18:15:46.6805900+00:00", 1_700_158_546_680_590_000),
            ("2000-02-29 23:59:59.999999999", 951_868_799_999_999_999),
            ("2000-03-01 00:00:00", 951_868_800_000_000_000),
            ("2100-03-01 00:00:00.5", 4_107_542_400_500_000_000),
            ("2023-12-31 23:59:59", 1_704_067_199_000_000_000),
            ("2024-01-01 00:00:00", 1_704_067_200_000_000_000),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "2023-11-16",
            "2023-11-16T18:15:46",
            "2023-11-16 18:15",
            "2023-11-16 18:15:46.",
            "2023-11-16 18:15:46.1234567890",
            "2023-11-16 18:15:46+01:00",
            "2023-11-16 24:00:00",
            "2023-11-16 18:60:00",
            "2023-11-16 18:15:60",
            "2023-02-29 00:00:00",
            "2100-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-00-01 00:00:00",
            "2023-01-00 00:00:00",
            "2023-04-31 00:00:00",
            "1969-12-31 23:59:59",
            "9999-01-01 00:00:00",
            "2023-1-16 18:15:46",
            "+023-11-16 18:15:46",
            "2023-11-16 18:15:46 ",
            "2023-11-16-1 18:15:46",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
