//! Waiting, for tasks beside a load.

use std::thread;
use std::time::Duration;

use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};

/// Blocks the thread for a length of time.
#[expect(clippy::disallowed_methods, reason = "no worker waits here")]
pub fn sleep(length: impl Into<Nanos>) {
    thread::sleep(length.into().to_duration());
}

/// Asks `ready` again and again until it gives a value, with a pause after each `None`; `None`
/// after the time limit. It is asked at least once.
pub fn poll<T>(
    limit: Duration,
    pause: Duration,
    mut ready: impl FnMut() -> Option<T>,
) -> Option<T> {
    let clock = MonotonicClock::start();
    let end = clock.now() + Nanos::from(limit);
    loop {
        let found = ready();
        if found.is_some() || clock.now() >= end {
            return found;
        }
        sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Moment;

    #[test]
    fn a_sleep_is_never_short_even_if_the_thread_was_unparked() {
        let clock = MonotonicClock::start();
        thread::current().unpark();
        sleep(Duration::from_millis(20));
        sleep(Nanos::ZERO);
        assert!(clock.now().since(Moment::EPOCH) >= Nanos::from_millis(20));
    }

    #[test]
    fn a_poll_ends_with_the_first_value_or_at_its_limit() {
        let mut asked = 0;
        let found = poll(Duration::from_mins(1), Duration::ZERO, || {
            asked += 1;
            (asked == 3).then_some(asked)
        });
        assert_eq!(found, Some(3));
        let mut asked = 0;
        let never = poll(Duration::ZERO, Duration::ZERO, || {
            asked += 1;
            None::<()>
        });
        assert_eq!((never, asked), (None, 1));
    }
}
