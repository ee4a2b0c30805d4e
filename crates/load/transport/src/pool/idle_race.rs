//! Decides whether the close of an idle connection explains a request without a response: the
//! target closed it before the request arrived, and therefore did not process it. ADR 0095 has the
//! reasons.

use plimsoll_measure::Nanos;

/// Minimum idle time for a close by an idle timeout; no server closes sooner. A shorter pause is a
/// gap between two requests of a busy connection, where a close aborts the request.
const LEAST_IDLE: Nanos = Nanos::from_millis(100);
/// Allowance for both hosts to wake up. The news of the close was in transit or comes back at once:
/// at most a round trip after the request.
const WAKING_UP: Nanos = Nanos::from_millis(2);

/// Whether the close explains it. `idle`: time for which the connection had been idle; `waited`:
/// time from the request to the news of the close.
pub(super) fn explains(idle: Nanos, waited: Nanos, round_trip: Nanos) -> bool {
    idle >= LEAST_IDLE.max(round_trip) && waited <= round_trip + WAKING_UP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_within_a_round_trip_of_an_idle_connection_is_a_race() {
        for (sentence, idle_us, waited_us, round_trip_us, expected) in [
            ("on one host, after five seconds", 5_000_000, 40, 50, true),
            ("the news came before the request was sent", 5_000_000, 0, 50, true),
            ("far away, within a round trip", 60_000_000, 79_000, 80_000, true),
            ("far away, later than that", 60_000_000, 83_000, 80_000, false),
            ("the target worked for five milliseconds", 5_000_000, 5_000, 50, false),
            ("the target worked for most of a second", 5_000_000, 800_000, 50, false),
            ("the connection was in use until now", 25, 40, 50, false),
            ("the connection was idle for a moment", 99_000, 40, 50, false),
            ("not even a round trip", 150_000, 100_000, 200_000, false),
        ] {
            let [idle, waited, round_trip] =
                [idle_us, waited_us, round_trip_us].map(Nanos::from_micros);
            assert_eq!(explains(idle, waited, round_trip), expected, "{sentence}");
        }
    }
}
