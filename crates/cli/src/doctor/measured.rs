//! What is better tried than read.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use plimsoll_metrics::{Distribution, Environment};

use super::finding::{Finding, State, at_most};
use crate::progress::time;
use crate::sleep::sleep;

const NAPS: u32 = 100;
const NAP: Nanos = Nanos::from_millis(1);
const READINGS: u32 = 10_000;
const ROUND_TRIPS: u32 = 200;
const PATIENCE: Duration = Duration::from_secs(1);

/// How late a short sleep ends: what the kernel's timers and the scheduler make of it.
pub(super) fn timer() -> Finding {
    let clock = MonotonicClock::start();
    let mut lateness = Distribution::default();
    for _ in 0..NAPS {
        let due = clock.now() + NAP;
        sleep(NAP);
        lateness.record(clock.now().since(due));
    }
    let fix = "idle states, throttling or other work delay timers: see the other lines";
    shown("timer lateness", &lateness, [Nanos::from_micros(200), Nanos::from_millis(2)], fix)
}

/// What one reading of the clock costs; a clock source that the processor cannot read by itself
/// costs a system call.
pub(super) fn clock(machine: &Environment) -> Finding {
    let clock = MonotonicClock::start();
    for _ in 0..READINGS {
        std::hint::black_box(clock.now());
    }
    let cost = Nanos::new(clock.now().as_nanos() / u64::from(READINGS));
    let source = machine.clock_source.as_deref().unwrap_or("unknown");
    let state = at_most(cost, Nanos::new(250), Nanos::from_micros(2));
    let fix = "choose `tsc` (or `kvm-clock`) in /sys/devices/system/clocksource/clocksource0/current_clocksource";
    Finding::new(state, "clock", format!("{source}, {} a reading", time(cost)), fix)
}

/// Does loopback carry bytes, and how long does it take?
pub(super) fn loopback() -> Finding {
    const ABOUT: &str = "loopback round trip";
    let fix = "bring the interface up: ip link set lo up";
    match round_trips() {
        Ok(times) => shown(ABOUT, &times, [Nanos::from_micros(300), Nanos::from_millis(5)], fix),
        Err(error) => Finding::new(State::Bad, ABOUT, error.to_string(), fix),
    }
}

fn round_trips() -> io::Result<Distribution> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut near = TcpStream::connect_timeout(&listener.local_addr()?, PATIENCE)?;
    let (mut far, _) = listener.accept()?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(PATIENCE))?;
    }
    let (clock, mut times, mut byte) = (MonotonicClock::start(), Distribution::default(), [0]);
    for _ in 0..ROUND_TRIPS {
        let start = clock.now();
        near.write_all(&byte)?;
        far.read_exact(&mut byte)?;
        far.write_all(&byte)?;
        near.read_exact(&mut byte)?;
        times.record(clock.now().since(start));
    }
    Ok(times)
}

/// Judged by the median: one slow try of many is the scheduler's daily business.
fn shown(
    about: &'static str,
    times: &Distribution,
    [good, bearable]: [Nanos; 2],
    fix: &'static str,
) -> Finding {
    let quantile = |q| times.nearest_rank(q).unwrap_or_default();
    let seen = format!("median {}, p99 {}", time(quantile(0.5)), time(quantile(0.99)));
    Finding::new(at_most(quantile(0.5), good, bearable), about, seen, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides() {
        let judge = |micros: [u64; 3]| {
            let mut times = Distribution::default();
            for micros in micros {
                times.record(Nanos::from_micros(micros));
            }
            shown("x", &times, [Nanos::from_micros(100), Nanos::from_micros(1_000)], "y").state
        };
        assert_eq!(judge([10, 20, 900_000]), State::Ok);
        assert_eq!(judge([10, 500, 500]), State::Warn);
        assert_eq!(judge([2_000, 2_000, 2_000]), State::Bad);
    }

    #[test]
    fn loopback_works_where_tests_run() {
        assert_eq!(round_trips().unwrap().count(), u64::from(ROUND_TRIPS));
    }
}
