//! The quantiles that reports show, and how many samples each of them needs.

/// One quantile that reports show.
#[derive(Clone, Copy, Debug)]
pub struct Quantile {
    /// Key in JSON and CSV.
    pub key: &'static str,
    /// Heading in tables.
    pub label: &'static str,
    /// The quantile, from 0 to 1.
    pub q: f64,
}

/// The quantiles that reports show.
pub const QUANTILES: [Quantile; 5] = [
    Quantile { key: "p50", label: "p50", q: 0.5 },
    Quantile { key: "p90", label: "p90", q: 0.9 },
    Quantile { key: "p95", label: "p95", q: 0.95 },
    Quantile { key: "p99", label: "p99", q: 0.99 },
    Quantile { key: "p99_9", label: "p99.9", q: 0.999 },
];

/// Samples that must lie beyond a quantile, on the rarer side.
const BEYOND: f64 = 10.0;

/// Samples needed before quantile `q` is given: `ceil(10 / (1 - q))` above the median and
/// `ceil(10 / q)` below it, so that about ten samples lie beyond. With fewer, the figure is one
/// arbitrary sample of the tail.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate: q = 0 or 1 needs more samples than there can be"
)]
pub fn samples_needed(q: f64) -> u64 {
    let rarer = q.min(1.0 - q);
    // 1 - 0.999 is a little less than 0.001: without the slack, p99.9 would need 10,001 samples.
    (BEYOND / rarer * (1.0 - 1e-9)).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_samples_must_lie_beyond_a_quantile() {
        for (q, needed) in [
            (0.5, 20),
            (0.9, 100),
            (0.95, 200),
            (0.99, 1_000),
            (0.999, 10_000),
            (0.9999, 100_000),
            (0.1, 100),
            (1.0, u64::MAX),
        ] {
            assert_eq!(samples_needed(q), needed, "q = {q}");
        }
    }
}
