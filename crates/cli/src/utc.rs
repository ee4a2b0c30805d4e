//! Wall-clock time as the names of folders have it.

const SECONDS_OF_DAY: u64 = 86_400;

/// `YYYYMMDDThhmmssZ` of a time in nanoseconds since 1970 UTC.
pub(crate) fn stamp(unix_nanos: u64) -> String {
    let seconds = unix_nanos / 1_000_000_000;
    let (year, month, day) = civil(seconds / SECONDS_OF_DAY);
    let of_day = seconds % SECONDS_OF_DAY;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Year, month and day of a number of days since 1970-01-01, in the proleptic Gregorian calendar.
///
/// The year is taken to begin in March, so that the leap day is its last: the lengths of the months before it then
/// follow the line `(153 m + 2) / 5`, rounded down.
const fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_ERA: u64 = 146_097; // 400 years
    let since_march = days + 719_468; // since 0000-03-01
    let (era, day) = (since_march / DAYS_OF_ERA, since_march % DAYS_OF_ERA);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values by `date -u -d @N +%Y%m%dT%H%M%SZ`.
    #[test]
    fn times_are_written_as_dates() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_709_208_000, "20240229T120000Z"),
            (1_798_761_599, "20261231T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(stamp(seconds * 1_000_000_000 + 999), text);
        }
    }
}
