//! Time stamps of the Azure traces.

use std::time::UNIX_EPOCH;

/// The date and time of a time stamp; `0` stands for any digit.
const DATE_AND_TIME: &[u8] = b"0000-00-00 00:00:00";

/// Nanoseconds since 1970 UTC of `2023-11-16 18:15:46.6805900`. The point and its 1 to 9 digits may
/// be left out; the later traces append `+00:00`. `None` for anything else, and for dates that do
/// not exist.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.strip_suffix("+00:00").unwrap_or(text);
    let time = humantime::parse_rfc3339_weak(text).ok().filter(|_| is_exact(text))?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Whether every character is as in the traces. `humantime` alone also accepts other time zones
/// after a fraction, as if they were UTC, leap seconds, and fractions of no or more than nine
/// digits.
fn is_exact(text: &str) -> bool {
    let (time, fraction) =
        text.split_once('.').map_or((text, None), |(time, digits)| (time, Some(digits)));
    time.len() == DATE_AND_TIME.len()
        && time.bytes().zip(DATE_AND_TIME).all(|(byte, known): (u8, &u8)| match known {
            b'0' => byte.is_ascii_digit(),
            separator => byte == *separator,
        })
        && !time.ends_with(":60")
        && fraction.is_none_or(|digits| {
            (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
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
    fn anything_else_is_refused() {
        for text in [
            "",
            "2023-11-16",
            "2023-11-16T18:15:46",
            "2023-11-16 18:15",
            "2023-11-16 18:15:46.",
            "2023-11-16 18:15:46.1234567890",
            "2023-11-16 18:15:46+01:00",
            "2023-11-16 18:15:46.5+01:00",
            "2023-11-16 18:15:46Z",
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
