//! `histograms.hlog`: the interval log of HdrHistogram, format 1.3, which its own tools read.
//!
//! A line is an interval of a metric: a tag, start and length in seconds, the largest value in
//! milliseconds, and the histogram in nanoseconds.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use plimsoll_metrics::{IntervalHistogram, TimeRecord};

/// The log of a run. Stages that share an interval have a line each.
///
/// The tag is the name of the metric, like `response_time`. With several targets the name of the
/// target follows, like `response_time.direct`; requests of warm-up stages have the prefix
/// `warmup.`. Characters that are not allowed in a tag are replaced by `_`.
pub fn interval_log(record: &TimeRecord) -> String {
    let started = record.timeline.started_unix_ns;
    // Readers add this time to the start of every interval.
    let seconds = format!("{}.{:03}", started / 1_000_000_000, started / 1_000_000 % 1_000);
    let mut log = format!(
        "#[Times in nanoseconds, largest value in milliseconds; written by Plimsoll]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {seconds} (seconds since epoch), {date}]\n\
         #[BaseTime: {seconds} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        date = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(started)),
    );
    let several = record.timeline.targets.len() > 1;
    for interval in &record.histograms {
        let IntervalHistogram { start_s, length_s, max_ms, histogram, .. } = interval;
        let tag = tag(interval, several);
        // Writing to a String cannot fail.
        let _ = writeln!(log, "Tag={tag},{start_s:.3},{length_s:.3},{max_ms:.6},{histogram}");
    }
    log
}

fn tag(interval: &IntervalHistogram, several: bool) -> String {
    let warmup = if interval.warmup { "warmup." } else { "" };
    let metric = interval.metric.name();
    if !several {
        return format!("{warmup}{metric}");
    }
    let target = interval
        .target
        .chars()
        .map(|c| if !c.is_whitespace() && !c.is_control() && c != ',' { c } else { '_' });
    format!("{warmup}{metric}.{}", target.collect::<String>())
}
