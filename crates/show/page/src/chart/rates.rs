//! Requests per second: planned, sent and completed; and how many are in flight.

use maud::html;
use plimsoll_metrics::{RunTimeline, TimelineGroup, TimelineInterval};
use plimsoll_report::format::{count, digits};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::over_time;
use crate::plot::{Plot, legend, series, short};

type Count = fn(&TimelineGroup) -> u64;
const LINES: [(&str, &str, Count); 3] = [
    ("l1", "planned", |group| group.due),
    ("l0", "sent", |group| group.sent),
    ("l2", "completed", |group| group.counters.completed),
];

/// Requests planned, sent and completed in each second.
pub(super) fn rates(timeline: &RunTimeline) -> Chart {
    let whole: Vec<_> =
        timeline.intervals.iter().filter(|i| over_time::has_rate(timeline, i)).collect();
    let [planned, sent, completed] = LINES.map(|(_, _, of)| highest(&whole, of));
    let y = Axis::from_zero(planned.max(sent).max(completed));
    let plot = Plot { x: over_time::axis(timeline), y };
    let mut table = Table::new(["second", "planned", "sent", "completed"]);
    for interval in &timeline.intervals {
        let counts = LINES.iter().map(|(_, _, of)| count(requests(interval, *of)));
        let row = [over_time::second(interval.start_s)].into_iter().chain(counts);
        table.rows.push(row.collect());
    }
    let totals =
        LINES.map(|(_, _, of)| count(timeline.intervals.iter().map(|i| requests(i, of)).sum()));
    let mut entries: Vec<_> =
        LINES.iter().map(|(class, words, _)| ((*class).to_owned(), (*words).to_owned())).collect();
    entries.extend(over_time::legend(timeline, true));
    Chart {
        id: "rates".to_owned(),
        title: "Requests per second".to_owned(),
        text: format!(
            "{} planned, {} sent, {} completed; at most {} per second planned and {} completed. \
             A request counts as completed when it ends.",
            totals[0],
            totals[1],
            totals[2],
            digits(planned),
            digits(completed),
        ),
        drawing: html! {
            (over_time::stages(&plot, timeline))
            (over_time::stalls(&plot, timeline))
            (plot.axes(&over_time::second, &short, "seconds"))
            @for (class, _, of) in LINES {
                @let line: Vec<_> = whole.iter()
                    .map(|i| Some((over_time::middle(i), per_second(i, of)))).collect();
                (plot.line(class, &line))
            }
        },
        height: None,
        legend: legend(&entries),
        table,
    }
}

fn requests(interval: &TimelineInterval, of: Count) -> u64 {
    interval.groups.iter().map(of).sum()
}

fn per_second(interval: &TimelineInterval, of: Count) -> f64 {
    requests(interval, of) as f64 / interval.length_s
}

fn highest(intervals: &[&TimelineInterval], of: Count) -> f64 {
    intervals.iter().map(|interval| per_second(interval, of)).fold(0.0, f64::max)
}

/// Requests in flight at the end of each interval, by target.
pub(super) fn in_flight(timeline: &RunTimeline) -> Chart {
    let targets = 0..timeline.targets.len();
    let highest = timeline.intervals.iter().flat_map(|i| &i.in_flight).copied().max().unwrap_or(0);
    let plot = Plot { x: over_time::axis(timeline), y: Axis::from_zero(highest.max(1) as f64) };
    let names: Vec<_> = timeline.targets.iter().map(|name| printable(name)).collect();
    let mut table = Table { head: vec!["second".to_owned()], rows: Vec::new() };
    table.head.extend(names.iter().map(ToString::to_string));
    for interval in &timeline.intervals {
        let counts = targets.clone().map(|target| count(in_flight_of(interval, target)));
        let row = [over_time::second(over_time::end(interval))].into_iter().chain(counts);
        table.rows.push(row.collect());
    }
    let mut entries: Vec<_> =
        targets.clone().map(|target| (series(target), names[target].to_string())).collect();
    entries.extend(over_time::legend(timeline, true));
    Chart {
        id: "in-flight".to_owned(),
        title: "Requests in flight".to_owned(),
        text: format!("At most {} at the end of an interval, on one target.", count(highest)),
        drawing: html! {
            (over_time::stages(&plot, timeline))
            (over_time::stalls(&plot, timeline))
            (plot.axes(&over_time::second, &short, "seconds"))
            @for target in targets {
                @let line: Vec<_> = timeline.intervals.iter()
                    .map(|i| Some((over_time::end(i), in_flight_of(i, target) as f64))).collect();
                (plot.line(&series(target), &line))
            }
        },
        height: None,
        legend: legend(&entries),
        table,
    }
}

fn in_flight_of(interval: &TimelineInterval, target: usize) -> u64 {
    interval.in_flight.get(target).copied().unwrap_or_default()
}
