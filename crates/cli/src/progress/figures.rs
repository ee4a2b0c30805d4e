//! The figures of the last second, on one line.

use plimsoll_engine::Progress;
use plimsoll_measure::Nanos;
use plimsoll_metrics::{Distribution, Metric, Rates};
use plimsoll_report::format::{self, digits, or_dash};

/// The line: throughput, requests in flight, response times, failed and rejected requests.
pub(super) fn line(progress: &Progress<'_>) -> String {
    let rates =
        Rates::compute(progress.interval.counters(), progress.interval_length.as_secs_f64());
    let times = progress.interval.distribution(Metric::ResponseTime);
    let so_far = progress.total.accounting();
    let rejected = match so_far.rejected {
        0 => String::new(),
        count => format!("  {count} rejected"),
    };
    format!(
        "{} done/s  {} in flight  p50 {}  p99 {}  {} failed{rejected}",
        digits(rates.throughput_per_s.unwrap_or_default()),
        progress.in_flight,
        quantile(times, 0.5),
        quantile(times, 0.99),
        so_far.failed + so_far.timed_out,
    )
}

fn quantile(times: Option<&Distribution>, q: f64) -> String {
    or_dash(times.and_then(|times| times.nearest_rank(q)), time)
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
    fn the_time_left_is_rounded_up() {
        for (millis, text) in [(0, "0:00"), (1, "0:01"), (59_001, "1:00"), (3_600_000, "1:00:00")] {
            assert_eq!(clock(Nanos::from_millis(millis)), text, "{millis} ms");
        }
    }
}
