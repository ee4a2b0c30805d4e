//! How requests ended, over time.

use maud::html;
use plimsoll_metrics::{RunTimeline, TimelineGroup, TimelineInterval};
use plimsoll_report::format::{count, digits};
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::over_time;
use crate::plot::{Plot, legend, place, short};

type Count = fn(&TimelineGroup) -> u64;
const OUTCOMES: [(&str, &str, Count); 6] = [
    ("f2", "completed", |group| group.counters.completed),
    ("f0", "rejected (4xx)", |group| group.counters.rejected),
    ("f1", "failed", |group| group.counters.failed),
    ("f3", "timed out", |group| group.counters.timed_out),
    ("f4", "without an end", |group| group.counters.in_flight + group.counters.cancelled),
    ("f5", "never sent", |group| group.counters.never_sent),
];

/// A column for each interval, with a part for each outcome.
pub(super) fn chart(timeline: &RunTimeline) -> Chart {
    let highest = timeline
        .intervals
        .iter()
        .map(|interval| OUTCOMES.iter().map(|o| requests(interval, o.2)).sum::<u64>())
        .max()
        .unwrap_or(0);
    let plot = Plot { x: over_time::axis(timeline), y: Axis::from_zero(highest.max(1) as f64) };
    let mut paths = vec![String::new(); OUTCOMES.len()];
    let mut table = Table { head: vec!["second".to_owned()], rows: Vec::new() };
    table.head.extend(OUTCOMES.iter().map(|outcome| outcome.1.to_owned()));
    for interval in &timeline.intervals {
        let mut below = 0;
        let mut row = vec![over_time::second(interval.start_s)];
        let (left, right) = (plot.x(interval.start_s), plot.x(over_time::end(interval)));
        for (path, (_, _, outcome)) in paths.iter_mut().zip(OUTCOMES) {
            let n = requests(interval, outcome);
            row.push(count(n));
            if n > 0 {
                path.push_str(&column(&plot, left, right, below, below + n));
            }
            below += n;
        }
        table.rows.push(row);
    }
    let mut seen: Vec<(&str, &str, u64)> = OUTCOMES
        .iter()
        .map(|(class, words, o)| {
            (*class, *words, timeline.intervals.iter().map(|i| requests(i, *o)).sum())
        })
        .collect();
    seen.retain(|(_, _, n)| *n > 0);
    let sentence: Vec<_> =
        seen.iter().map(|(_, words, n)| format!("{} {words}", count(*n))).collect();
    let mut entries: Vec<_> =
        seen.iter().map(|(class, words, _)| ((*class).to_owned(), (*words).to_owned())).collect();
    entries.extend(over_time::legend(timeline, false));
    Chart {
        id: "outcomes".to_owned(),
        title: "How requests ended".to_owned(),
        text: format!(
            "{}, warm-up included; per interval of {} s.",
            sentence.join(", "),
            digits(timeline.interval_s)
        ),
        drawing: html! {
            (over_time::stages(&plot, timeline))
            (plot.axes(&over_time::second, &short, "seconds"))
            @for (path, (class, _, _)) in paths.iter().zip(OUTCOMES) { path class=(class) d=(path) {} }
        },
        height: None,
        legend: legend(&entries),
        table,
    }
}

/// Requests of an interval that ended in this way.
fn requests(interval: &TimelineInterval, outcome: Count) -> u64 {
    interval.groups.iter().map(outcome).sum()
}

/// A part of a column: from left to right, and from one count to another.
fn column(plot: &Plot, left: f64, right: f64, from: u64, to: u64) -> String {
    let gap = if right - left > 3.0 { 0.8 } else { 0.0 };
    let (bottom, top) = (place(plot.y(from as f64)), place(plot.y(to as f64)));
    let (x, width) = (place(left), place((right - left - gap).max(0.3)));
    format!("M{x} {bottom}V{top}h{width}V{bottom}z")
}
