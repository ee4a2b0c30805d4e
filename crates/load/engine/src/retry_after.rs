//! How long a response asks to wait: `Retry-After` (RFC 9110, 10.2.3), and `retry-after-ms` of
//! `OpenAI`'s and Azure's services, which is more exact.

use plimsoll_measure::Nanos;
use plimsoll_transport::ResponseHead;

/// The wait that a response asks for, if it does.
pub(crate) fn asked(head: &ResponseHead<'_>) -> Option<Nanos> {
    let exact = head.header("retry-after-ms").and_then(|asked| decimal(asked, 1e6));
    exact.or_else(|| wait(head.header("retry-after")?, head.header("date")))
}

/// A number of units of so many nanoseconds. RFC 9110 has whole seconds; some services are more
/// exact.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn decimal(asked: &str, unit: f64) -> Option<Nanos> {
    let digits = asked.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let nanos = asked.trim().parse::<f64>().ok().filter(|_| digits)? * unit;
    Some(Nanos::new(nanos.min(f64::from(u32::MAX) * 1e9) as u64))
}

/// Seconds, or until a date. The date and the `Date` of the response both use the target's clock,
/// so their difference is independent of this host's clock. A date without a `Date` is ignored.
fn wait(asked: &str, date: Option<&str>) -> Option<Nanos> {
    let asked = asked.trim();
    decimal(asked, 1e9).or_else(|| {
        let [until, now] = [asked, date?.trim()].map(httpdate::parse_http_date);
        // A date that has passed asks for no wait.
        let wait = until.ok()?.duration_since(now.ok()?).unwrap_or_default();
        let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
        Some(Nanos::from_secs(seconds.into()))
    })
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
            ("1e3", now, None),
            ("inf", now, None),
            ("", now, None),
            (".", now, None),
        ] {
            let expected = seconds.map(|seconds: u32| Nanos::from_secs(seconds.into()));
            assert_eq!(wait(asked, date), expected, "{asked} at {date:?}");
        }
        assert_eq!(wait("1.5", None), Some(Nanos::from_millis(1_500)));
        assert_eq!(decimal("250", 1e6), Some(Nanos::from_millis(250)));
        assert_eq!(decimal("99999999999999999999", 1e9), Some(Nanos::from_secs(u32::MAX.into())));
    }
}
