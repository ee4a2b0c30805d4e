//! Wall-clock times as text.

use std::time::{Duration, UNIX_EPOCH};

/// A time in nanoseconds since 1970 UTC as RFC 3339 with milliseconds, such as
/// `2026-11-22T18:05:00.250Z`.
pub(crate) fn rfc3339(unix: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_nanos(unix)).to_string()
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
