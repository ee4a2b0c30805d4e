//! Requests per second: due, sent and completed; and how many are in flight.

use maud::html;
use plimsoll_metrics::{RunTimeline, TimelineGroup, TimelineInterval};
use plimsoll_report::format::{count, digits};
use plimsoll_report::printable;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::over_time;
use crate::plot::{Plot, legend, short};
use crate::table::Table;

type Count = fn(&TimelineGroup) -> u64;
const LINES: [(&str, &str, Count); 3] = [
    ("l1", "due", |group| group.due),
    ("l0", "sent", |group| group.sent),
    ("l2", "completed", |group| group.counters.completed),
];

/// What was due, sent and completed in each second.
pub(super) fn rates(timeline: &RunTimeline) -> Chart {
    let sum = |interval: &TimelineInterval, of: Count| interval.groups.iter().map(of).sum::<u64>();
    let per_second =
        |interval: &TimelineInterval, of: Count| sum(interval, of) as f64 / interval.length_s;
    let whole: Vec<_> =
        timeline.intervals.iter().filter(|i| over_time::has_rate(timeline, i)).collect();
    let highest = |of: Count| whole.iter().map(|i| per_second(i, of)).fold(0.0, f64::max);
    let y = Axis::from_zero(LINES.iter().map(|line| highest(line.2)).fold(0.0, f64::max));
    let plot = Plot { x: over_time::axis(timeline), y };
    let line = |of: Count| -> Vec<_> {
        whole.iter().map(|i| Some((over_time::middle(i), per_second(i, of)))).collect()
    };
    let mut table = Table::new(&["second", "due", "sent", "completed"]);
    for interval in &timeline.intervals {
        let counts = LINES.iter().map(|(_, _, of)| count(sum(interval, *of)));
        let row = [over_time::second(interval.start_s)].into_iter().chain(counts);
        table.rows.push(row.collect());
    }
    let total = |of: Count| count(timeline.intervals.iter().map(|i| sum(i, of)).sum());
    let mut entries: Vec<_> =
        LINES.iter().map(|(class, words, _)| ((*class).to_owned(), (*words).to_owned())).collect();
    entries.extend(over_time::legend(timeline, true));
    Chart {
        id: "rates".to_owned(),
        title: "Requests per second".to_owned(),
        text: format!(
            "{} were due, {} sent, {} completed; at most {} per second were due and {} completed. \
             A request counts as completed when it ends.",
            total(LINES[0].2),
            total(LINES[1].2),
            total(LINES[2].2),
            digits(highest(LINES[0].2)),
            digits(highest(LINES[2].2)),
        ),
        drawing: html! {
            (over_time::stages(&plot, timeline))
            (over_time::stalls(&plot, timeline))
            (plot.axes(&over_time::second, &short, "seconds"))
            @for (class, _, of) in LINES { (plot.line(class, &line(of))) }
        },
        height: None,
        legend: legend(&entries),
        table,
    }
}

/// Requests in flight at the end of each interval, by target.
pub(super) fn in_flight(timeline: &RunTimeline) -> Chart {
    let of = |interval: &TimelineInterval, target: usize| {
        interval.in_flight.get(target).copied().unwrap_or_default()
    };
    let targets = 0..timeline.targets.len();
    let most = |target: usize| timeline.intervals.iter().map(|i| of(i, target)).max().unwrap_or(0);
    let highest = targets.clone().map(most).max().unwrap_or(0);
    let plot = Plot { x: over_time::axis(timeline), y: Axis::from_zero(highest.max(1) as f64) };
    let line = |target: usize| -> Vec<_> {
        timeline.intervals.iter().map(|i| Some((over_time::end(i), of(i, target) as f64))).collect()
    };
    let names: Vec<_> = timeline.targets.iter().map(|name| printable(name)).collect();
    let mut table = Table { head: vec!["second".to_owned()], rows: Vec::new() };
    table.head.extend(names.iter().map(ToString::to_string));
    for interval in &timeline.intervals {
        let counts = targets.clone().map(|target| count(of(interval, target)));
        let row = [over_time::second(over_time::end(interval))].into_iter().chain(counts);
        table.rows.push(row.collect());
    }
    let class = |target: usize| format!("l{}", target % 6);
    let mut entries: Vec<_> =
        targets.clone().map(|target| (class(target), names[target].to_string())).collect();
    entries.extend(over_time::legend(timeline, true));
    Chart {
        id: "in-flight".to_owned(),
        title: "Requests in flight".to_owned(),
        text: format!("At most {} at the end of an interval, on one target.", count(highest)),
        drawing: html! {
            (over_time::stages(&plot, timeline))
            (over_time::stalls(&plot, timeline))
            (plot.axes(&over_time::second, &short, "seconds"))
            @for target in targets { (plot.line(&class(target), &line(target))) }
        },
        height: None,
        legend: legend(&entries),
        table,
    }
}
