//! The quantiles that reports show.

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
