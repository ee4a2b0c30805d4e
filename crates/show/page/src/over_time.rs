//! What all charts over time have in common: their axis, the stages, and what stood still.

use maud::{Markup, html};
use plimsoll_metrics::{RunTimeline, TimelineInterval};
use plimsoll_report::format::digits;

use crate::axis::Axis;
use crate::plot::Plot;

/// From the start of the load to the end of the last interval.
pub(crate) fn axis(timeline: &RunTimeline) -> Axis {
    let end = timeline.intervals.last().map_or(1.0, end);
    Axis::linear(0.0, end)
}

pub(crate) fn end(interval: &TimelineInterval) -> f64 {
    interval.start_s + interval.length_s
}

pub(crate) fn middle(interval: &TimelineInterval) -> f64 {
    interval.start_s + interval.length_s / 2.0
}

/// Seconds from the start: `90`, or `1:30` from ten minutes on.
pub(crate) fn second(at: f64) -> String {
    if at >= 600.0 {
        format!("{:.0}:{:02.0}", (at / 60.0).floor(), at % 60.0)
    } else {
        digits_of(at)
    }
}

fn digits_of(at: f64) -> String {
    if at.fract().abs() < 1e-9 { format!("{at:.0}") } else { digits(at) }
}

/// Warm-up stages and the starts of the others, behind a chart.
pub(crate) fn stages(plot: &Plot, timeline: &RunTimeline) -> Markup {
    html! {
        @for stage in &timeline.stages {
            @if stage.warmup { (plot.band("warm", stage.start_s, stage.start_s + stage.duration_s)) }
            @if stage.start_s > 0.0 { (plot.rule("stage", stage.start_s)) }
        }
    }
}

/// Where the generator or the targets stood still, behind a chart.
pub(crate) fn stalls(plot: &Plot, timeline: &RunTimeline) -> Markup {
    html! {
        @for interval in &timeline.intervals {
            @if generator_stood(interval) { (plot.band("own", interval.start_s, end(interval))) }
            @else if targets_stood(interval) { (plot.band("still", interval.start_s, end(interval))) }
        }
    }
}

/// A worker of the generator did not look at its sockets for at least a tenth of the interval.
pub(crate) fn generator_stood(interval: &TimelineInterval) -> bool {
    interval.disturbed_s >= interval.length_s * 0.1
}

/// Requests were in flight and were sent, and none ended.
pub(crate) fn targets_stood(interval: &TimelineInterval) -> bool {
    let sent: u64 = interval.groups.iter().map(|group| group.sent).sum();
    sent > 0
        && interval.in_flight.iter().sum::<u64>() > 0
        && interval
            .groups
            .iter()
            .map(|group| {
                let c = &group.counters;
                c.completed + c.rejected + c.failed + c.timed_out
            })
            .sum::<u64>()
            == 0
}

/// Whether an interval is long enough to divide by its length: the last one may be cut off.
pub(crate) fn has_rate(timeline: &RunTimeline, interval: &TimelineInterval) -> bool {
    interval.length_s >= timeline.interval_s * 0.5
}

/// The legend of [`stages`] and [`stalls`], as far as there are any.
pub(crate) fn legend(timeline: &RunTimeline, stalls: bool) -> Vec<(String, String)> {
    let intervals = &timeline.intervals;
    let entries = [
        ("warm", "warm-up", timeline.stages.iter().any(|stage| stage.warmup)),
        ("still", "requests sent, none ended", stalls && intervals.iter().any(targets_stood)),
        ("own", "Plimsoll was paused", stalls && intervals.iter().any(generator_stood)),
    ];
    let seen = entries.into_iter().filter(|(_, _, seen)| *seen);
    seen.map(|(class, words, _)| (class.to_owned(), words.to_owned())).collect()
}
