//! The figures of the last second, on one line.

use plimsoll_engine::Progress;
use plimsoll_measure::Nanos;
use plimsoll_metrics::{Distribution, Edges, Metric, Rates};
use plimsoll_report::format::{self, digits, or_dash};

/// The line: throughput, requests in flight, failed and rejected requests, and the time that the
/// report of the run has, by its name.
pub(super) fn line(progress: &Progress<'_>, time: Metric) -> String {
    let (counters, seconds) =
        (progress.interval.counters(), progress.interval_length.as_secs_f64());
    let rates = Rates::compute(counters, &Edges::default(), seconds);
    let times = progress.interval.distribution(time);
    let so_far = progress.total.counters();
    let rejected = match so_far.rejected {
        0 => String::new(),
        count => format!("  {count} rejected"),
    };
    format!(
        "{} done/s  {} in flight  {} {}  {} failed{rejected}",
        digits(rates.throughput_per_s.unwrap_or_default()),
        progress.in_flight,
        time.title(),
        spread(times),
        so_far.failed + so_far.timed_out,
    )
}

/// The median, and the 99th percentile where a second has values enough for one; else the largest.
fn spread(times: Option<&Distribution>) -> String {
    let p50 = times.and_then(|times| times.nearest_rank(0.5));
    let (name, upper) = match times.and_then(|times| times.quantile(0.99)) {
        Some(p99) => ("p99", Some(p99)),
        None => ("max", times.and_then(Distribution::max)),
    };
    format!("p50 {}  {name} {}", or_dash(p50, time), or_dash(upper, time))
}

/// A duration with three significant digits.
pub(crate) fn time(duration: Nanos) -> String {
    format::time(duration.as_millis_f64())
}

/// Minutes and seconds, rounded up, so that 0:00 means the end.
pub(super) fn clock(duration: Nanos) -> String {
    let seconds = duration.as_u64().div_ceil(1_000_000_000);
    match seconds / 3_600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (nanos, text) in [
            (0, "0ns"),
            (7, "7.00ns"),
            (41_234, "41.2us"),
            (41_250_000, "41.2ms"),
            (999_600_000, "1.00s"),
            (1_234_000_000, "1.23s"),
            (61_400_000_000, "61.4s"),
        ] {
            assert_eq!(time(Nanos::new(nanos)), text, "{nanos}");
        }
    }

    #[test]
    fn a_second_of_few_requests_has_no_p99() {
        let second = |count: u64| {
            let mut times = Distribution::default();
            (1..=count).for_each(|us| times.record(Nanos::from_micros(us)));
            spread(Some(&times))
        };
        // The histogram has steps of some percent.
        let few = second(10);
        assert!(few.starts_with("p50 5.") && few.ends_with("us  max 10.0us"), "{few}");
        let many = second(1_000);
        assert!(many.starts_with("p50 5") && many.contains("us  p99 9"), "{many}");
        assert_eq!(spread(None), "p50 -  max -");
    }

    #[test]
    fn the_time_left_is_rounded_up() {
        for (millis, text) in [(0, "0:00"), (1, "0:01"), (59_001, "1:00"), (3_600_000, "1:00:00")] {
            assert_eq!(clock(Nanos::from_millis(millis)), text, "{millis} ms");
        }
    }
}
