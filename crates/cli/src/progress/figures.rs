//! The figures of the last second, short enough for one line.

use plimsoll_engine::Progress;
use plimsoll_measure::Nanos;
use plimsoll_metrics::{Metric, Rates};

/// The line: throughput, requests under way, response times, what did not complete.
pub(super) fn line(progress: &Progress<'_>) -> String {
    let rates = Rates::of(progress.interval.counters(), progress.interval_length.as_secs_f64());
    let times = progress.interval.distribution(Metric::ResponseTime);
    let quantile =
        |q| times.and_then(|times| times.nearest_rank(q)).map_or_else(|| "-".to_owned(), time);
    let so_far = progress.total.accounting();
    let rejected = match so_far.rejected {
        0 => String::new(),
        count => format!("  {count} rejected"),
    };
    format!(
        "{} done/s  {} in flight  p50 {}  p99 {}  {} failed{rejected}",
        rate(rates.throughput_per_s.unwrap_or_default()),
        progress.in_flight,
        quantile(0.5),
        quantile(0.99),
        so_far.failed + so_far.timed_out,
    )
}

/// A length of time with three significant digits.
pub(crate) fn time(length: Nanos) -> String {
    let nanos = length.as_u64();
    let step = nanos.checked_ilog10().map_or(1, |digits| 10_u64.pow(digits.saturating_sub(2)));
    Nanos::new((nanos + step / 2) / step * step).to_string()
}

/// A rate per second: whole from ten on.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second < 9.95 { format!("{per_second:.1}") } else { format!("{per_second:.0}") }
}

/// Minutes and seconds, rounded up, so that zero means over.
pub(super) fn clock(length: Nanos) -> String {
    let seconds = length.as_u64().div_ceil(1_000_000_000);
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
            (0, "0s"),
            (7, "7ns"),
            (41_234, "41.2us"),
            (41_250_000, "41.3ms"),
            (999_600_000, "1s"),
            (1_234_000_000, "1.23s"),
            (61_400_000_000, "61.4s"),
        ] {
            assert_eq!(time(Nanos::new(nanos)), text, "{nanos}");
        }
    }

    #[test]
    fn what_is_left_is_rounded_up() {
        for (millis, text) in [(0, "0:00"), (1, "0:01"), (59_001, "1:00"), (3_600_000, "1:00:00")] {
            assert_eq!(clock(Nanos::from_millis(millis)), text, "{millis} ms");
        }
    }

    #[test]
    fn small_rates_keep_a_decimal() {
        assert_eq!(
            (rate(0.25).as_str(), rate(9.94).as_str(), rate(1234.5).as_str()),
            ("0.2", "9.9", "1234")
        );
    }
}
