//! Wall-clock times as text.

/// A time in nanoseconds since 1970 UTC as RFC 3339 with milliseconds, like
/// `2026-11-22T18:05:00.250Z`.
///
/// The date follows the algorithm of Howard Hinnant's `civil_from_days`, whose years begin on
/// 1 March: <https://howardhinnant.github.io/date_algorithms.html>.
pub(crate) fn rfc3339(unix: u64) -> String {
    let (seconds, millis) = (unix / 1_000_000_000, unix / 1_000_000 % 1_000);
    let (days, of_day) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        // From `date -u -d @SECONDS`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_735_689_599, "2024-12-31T23:59:59"),
            (1_795_370_700, "2026-11-22T18:05:00"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000 + 7_999_999), format!("{text}.007Z"));
        }
    }
}
