//! Checks that measure: timer, clock and loopback.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use plimsoll_metrics::{Distribution, Environment};
use plimsoll_runner::time::sleep;

use super::{Severity, at_most};
use crate::progress::time;

const SLEEPS: u32 = 100;
const SLEEP: Nanos = Nanos::from_millis(1);
const CLOCK_READS: u32 = 10_000;
const ROUND_TRIPS: u32 = 200;
const TIMEOUT: Duration = Duration::from_secs(1);

/// How late a sleep of 1 ms ends, because of the kernel's timers and the scheduler.
pub(super) fn timer() -> (Severity, String) {
    let clock = MonotonicClock::start();
    let mut lateness = Distribution::default();
    for _ in 0..SLEEPS {
        let due = clock.now() + SLEEP;
        sleep(SLEEP);
        lateness.record(clock.now().since(due));
    }
    judge_median(&lateness, [Nanos::from_micros(200), Nanos::from_millis(2)])
}

/// The time to read the clock. Some clock sources need a system call.
pub(super) fn clock(machine: &Environment) -> (Severity, String) {
    let clock = MonotonicClock::start();
    for _ in 0..CLOCK_READS {
        std::hint::black_box(clock.now());
    }
    let cost = Nanos::new(clock.now().as_nanos() / u64::from(CLOCK_READS));
    let source = machine.clock_source.as_deref().unwrap_or("unknown");
    let severity = at_most(cost, Nanos::new(250), Nanos::from_micros(2));
    (severity, format!("{source}, {} per read", time(cost)))
}

/// The round-trip time of one byte over loopback.
pub(super) fn loopback() -> (Severity, String) {
    match round_trips() {
        Ok(times) => judge_median(&times, [Nanos::from_micros(300), Nanos::from_millis(5)]),
        Err(error) => (Severity::Bad, error.to_string()),
    }
}

fn round_trips() -> io::Result<Distribution> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect_timeout(&listener.local_addr()?, TIMEOUT)?;
    let (mut server, _) = listener.accept()?;
    for end in [&client, &server] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(TIMEOUT))?;
    }
    let (clock, mut times, mut byte) = (MonotonicClock::start(), Distribution::default(), [0]);
    for _ in 0..ROUND_TRIPS {
        let start = clock.now();
        client.write_all(&byte)?;
        server.read_exact(&mut byte)?;
        server.write_all(&byte)?;
        client.read_exact(&mut byte)?;
        times.record(clock.now().since(start));
    }
    Ok(times)
}

/// A finding judged by the median, because a single slow try is normal.
fn judge_median(times: &Distribution, [good, acceptable]: [Nanos; 2]) -> (Severity, String) {
    let median = times.nearest_rank(0.5).unwrap_or_default();
    let p99 = times.nearest_rank(0.99).unwrap_or_default();
    let value = format!("median {}, p99 {}", time(median), time(p99));
    (at_most(median, good, acceptable), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides_the_severity() {
        let judge = |micros: [u64; 3]| {
            let mut times = Distribution::default();
            for micros in micros {
                times.record(Nanos::from_micros(micros));
            }
            judge_median(&times, [Nanos::from_micros(100), Nanos::from_micros(1_000)]).0
        };
        assert_eq!(judge([10, 20, 900_000]), Severity::Ok);
        assert_eq!(judge([10, 500, 500]), Severity::Warn);
        assert_eq!(judge([2_000, 2_000, 2_000]), Severity::Bad);
    }

    #[test]
    fn loopback_works_where_tests_run() {
        assert_eq!(round_trips().unwrap().count(), u64::from(ROUND_TRIPS));
    }
}
