//! How long a response asks to wait: `Retry-After` (RFC 9110, 10.2.3).

use plimsoll_measure::Nanos;
use plimsoll_transport::ResponseHead;

/// The wait that a response asks for, if it does.
pub(crate) fn asked(head: &ResponseHead<'_>) -> Option<Nanos> {
    wait(head.header("retry-after")?, head.header("date"))
}

/// Seconds, or until a date. The date is that of the target's clock, and so is the `Date` of the
/// response: their difference holds whatever this host's clock says. Without a `Date` a date is
/// not honoured.
fn wait(asked: &str, date: Option<&str>) -> Option<Nanos> {
    let asked = asked.trim();
    let seconds = asked.parse::<u32>().ok().or_else(|| {
        let [until, now] = [asked, date?.trim()].map(httpdate::parse_http_date);
        // A date that has passed asks for no wait.
        let wait = until.ok()?.duration_since(now.ok()?).unwrap_or_default();
        Some(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX))
    })?;
    Some(Nanos::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_in_seconds_or_until_a_date_by_the_targets_own_clock() {
        let now = Some("Fri, 31 Dec 1999 23:59:58 GMT");
        for (asked, date, seconds) in [
            ("2", None, Some(2)),
            (" 120 ", now, Some(120)),
            ("0", None, Some(0)),
            ("Sat, 01 Jan 2000 00:00:00 GMT", now, Some(2)),
            // The obsolete forms, which a recipient must read too.
            ("Saturday, 01-Jan-00 00:00:00 GMT", now, Some(2)),
            ("Sat Jan  1 00:00:00 2000", now, Some(2)),
            ("Fri, 31 Dec 1999 23:59:58 GMT", now, Some(0)),
            ("Fri, 31 Dec 1999 12:00:00 GMT", now, Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", now, Some(u32::MAX)),
            ("Sat, 01 Jan 2000 00:00:00 GMT", None, None),
            ("Sat, 01 Jan 2000 00:00:00 GMT", Some("soon"), None),
            ("soon", now, None),
            ("-1", now, None),
            ("1.5", now, None),
            ("", now, None),
        ] {
            let expected = seconds.map(|seconds: u32| Nanos::from_secs(seconds.into()));
            assert_eq!(wait(asked, date), expected, "{asked} at {date:?}");
        }
    }
}
