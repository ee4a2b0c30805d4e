//! Units, as headers and cells write them.

/// What a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Seconds.
    Time,
    /// Per second.
    Rate,
    /// Parts of one.
    Share,
    /// Bytes per second.
    DataRate,
    /// Bytes.
    Size,
    /// Times.
    Factor,
}

/// A unit and its size in the base unit of its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) dimension: Dimension,
    pub(crate) scale: f64,
}

/// The unit of this name.
pub(crate) fn named(name: &str) -> Option<Unit> {
    use Dimension::{DataRate, Factor, Rate, Share, Size, Time};
    let (dimension, scale) = match name {
        "M" => return None,
        "\u{d7}" | "x" | "X" => (Factor, 1.0),
        _ => match name.to_lowercase().as_str() {
            "ns" | "nanoseconds" => (Time, 1e-9),
            "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "microseconds" | "microsecond" => (Time, 1e-6),
            "ms" | "msec" | "millis" | "milliseconds" | "millisecond" => (Time, 1e-3),
            "s" | "sec" | "secs" | "second" | "seconds" => (Time, 1.0),
            "m" | "min" | "mins" | "minute" | "minutes" => (Time, 60.0),
            "h" | "hour" | "hours" => (Time, 3600.0),
            "%" | "percent" | "pct" => (Share, 0.01),
            "rps" | "qps" | "tps" | "/s" | "/sec" | "req/s" | "reqs/s" | "req/sec" | "reqs/sec"
            | "requests/s" | "requests/sec" | "requests/second" | "r/s" | "ops/s" | "ops/sec"
            | "iters/s" | "writes/sec" | "writes/s" => (Rate, 1.0),
            "rpm" | "req/min" | "requests/min" | "/min" => (Rate, 1.0 / 60.0),
            "b" | "bytes" | "byte" => (Size, 1.0),
            "kb" => (Size, 1e3),
            "kib" => (Size, 1024.0),
            "mb" => (Size, 1e6),
            "mib" => (Size, 1_048_576.0),
            "gb" => (Size, 1e9),
            "gib" => (Size, 1_073_741_824.0),
            "b/s" | "bytes/sec" | "bytes/s" => (DataRate, 1.0),
            "kb/s" | "kbytes/sec" | "kb/sec" => (DataRate, 1e3),
            "kib/s" | "kib/sec" => (DataRate, 1024.0),
            "mb/s" | "mb/sec" | "mbytes/sec" => (DataRate, 1e6),
            "mib/s" | "mib/sec" => (DataRate, 1_048_576.0),
            "gb/s" | "gb/sec" => (DataRate, 1e9),
            "gib/s" | "gib/sec" => (DataRate, 1_073_741_824.0),
            _ => return None,
        },
    };
    Some(Unit { dimension, scale })
}

/// The unit at the start of a text, and what follows it.
pub(crate) fn leading(text: &str) -> (Option<Unit>, &str) {
    let body = text.trim_start();
    let spaced = body.len() != text.len();
    let end = body
        .find(|c: char| !(c.is_alphabetic() || matches!(c, '/' | '%' | '\u{b5}' | '\u{d7}')))
        .unwrap_or(body.len());
    let Some(word) = body.get(..end) else { return (None, text) };
    // `30 m` or `5 x`: too little to be sure behind a space.
    let vague = spaced && matches!(word, "m" | "b" | "h" | "x" | "X" | "M");
    match named(word).filter(|_| !vague) {
        Some(unit) => (Some(unit), body.get(end..).unwrap_or_default()),
        None => (None, text),
    }
}
