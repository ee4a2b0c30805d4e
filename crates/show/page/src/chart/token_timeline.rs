//! When the content of single streams arrived: the slowest ones, and random ones for comparison.

use std::fmt::Write as _;

use maud::{Markup, html};
use plimsoll_metrics::{Chosen, ExemplarRequest, RunExemplars};
use plimsoll_report::format::{count, or_dash, time};
use plimsoll_report::table::Table;

use super::exemplar_rows::{self, Rows, is_completed, label, marked};
use crate::drawn_chart::Chart;
use crate::plot::{legend, place};

/// Gaps of so many times the median one are coloured, and those of so many times in another colour.
const LONG: f64 = 3.0;
const VERY_LONG: f64 = 10.0;
/// Half the height of the bars, of that of a very long gap, and of a tick.
const HALF: f64 = 2.2;
const VERY_HALF: f64 = 4.0;
const TICK: f64 = 4.5;

/// The slowest streams, and random ones.
pub(super) fn charts(exemplars: &RunExemplars) -> Vec<Chart> {
    let mut slowest: Vec<&ExemplarRequest> = streams(exemplars, Chosen::Ttft).collect();
    slowest.sort_by(|a, b| ms(b.ttft_ms).total_cmp(&ms(a.ttft_ms)));
    let mut by_gap: Vec<_> = streams(exemplars, Chosen::LongestGap)
        .filter(|request| !request.chosen.contains(&Chosen::Ttft))
        .collect();
    by_gap.sort_by(|a, b| ms(b.gap_max_ms).total_cmp(&ms(a.gap_max_ms)));
    slowest.extend(by_gap);
    let mut random: Vec<_> = streams(exemplars, Chosen::Random).collect();
    random.sort_by_key(|request| exemplars.targets.iter().position(|name| *name == request.target));
    let more =
        random.iter().filter(|request| slowest.iter().any(|slow| **request == *slow)).count()
            < random.len();
    let median = median_gap(slowest.iter().chain(&random).copied());
    let slow = format!(
        "The streams with the longest time to first token, up to {}, then those with the longest gap \
         between two reads, up to {}.",
        longest(&slowest, |request| request.ttft_ms),
        longest(&slowest, |request| request.gap_max_ms)
    );
    let fair = format!(
        "{} of them: time to first token up to {}, gaps between two reads up to {}.",
        random.len(),
        longest(&random, |request| request.ttft_ms),
        longest(&random, |request| request.gap_max_ms)
    );
    let slowest = chart("tokens-slowest", "Tokens of the slowest streams", &slow, &slowest, median);
    let random = chart("tokens-random", "Tokens of random streams", &fair, &random, median);
    [slowest, random.filter(|_| more)].into_iter().flatten().collect()
}

fn streams(exemplars: &RunExemplars, why: Chosen) -> impl Iterator<Item = &ExemplarRequest> {
    exemplars.chosen(why).filter(|request| !request.read_ms.is_empty())
}

fn ms(value: Option<f64>) -> f64 {
    value.unwrap_or_default()
}

fn longest(requests: &[&ExemplarRequest], of: fn(&ExemplarRequest) -> Option<f64>) -> String {
    or_dash(requests.iter().filter_map(|request| of(request)).reduce(f64::max), time)
}

/// The median of all gaps between the reads of these streams.
fn median_gap<'r>(requests: impl Iterator<Item = &'r ExemplarRequest>) -> Option<f64> {
    let mut gaps: Vec<_> =
        requests.flat_map(|request| gaps(request).map(|(from, to)| to - from)).collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied()
}

/// From read to read.
fn gaps(request: &ExemplarRequest) -> impl Iterator<Item = (f64, f64)> {
    request.read_ms.iter().copied().zip(request.read_ms.iter().copied().skip(1))
}

fn chart(
    id: &str,
    title: &str,
    which: &str,
    requests: &[&ExemplarRequest],
    median: Option<f64>,
) -> Option<Chart> {
    if requests.is_empty() {
        return None;
    }
    let ends: Vec<_> = requests.iter().map(|request| end(request)).collect();
    let rows = Rows::new(&ends);
    let mut targets: Vec<_> = requests.iter().map(|request| &request.target).collect();
    targets.sort_unstable();
    targets.dedup();
    Some(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        text: format!(
            "{which} A row has both times, request id and second; a tick is a read that brought \
             content. With ! Plimsoll read late: what it waited for may have come earlier.{}",
            rows.note()
        ),
        drawing: html! {
            (rows.axis("from dispatch"))
            @for (row, request) in requests.iter().enumerate() {
                @let late = request.read_lag_ms;
                @let ttft = marked(ms(request.ttft_ms), late);
                @let what = format!("{ttft} {}", or_dash(request.gap_max_ms, |ms| marked(ms, late)));
                (label(row, &what, request, targets.len()))
                (stream(&rows, row, request, median))
            }
        },
        height: Some(rows.height()),
        legend: legend(&entries(median)),
        table: table(requests),
    })
}

fn entries(median: Option<f64>) -> Vec<(String, String)> {
    let mut entries = vec![("f0 half".to_owned(), "until the first token".to_owned())];
    if let Some(median) = median {
        for (class, times) in [("f4", LONG), ("f1", VERY_LONG)] {
            let words = format!("gap over {} ({times:.0} x the median)", time(times * median));
            entries.push((class.to_owned(), words));
        }
    }
    entries
}

/// When a stream was over, after its dispatch.
fn end(request: &ExemplarRequest) -> f64 {
    let last = request.last_token_ms.or(request.ttft_ms);
    ms(request.service_time_ms.or(request.open_ms).or(last))
}

/// Class and half height of a gap that is much longer than the median.
fn gap_class(gap: f64, median: Option<f64>) -> Option<(&'static str, f64)> {
    let median = median?;
    let very = (gap > median * VERY_LONG).then_some(("f1", VERY_HALF));
    very.or_else(|| (gap > median * LONG).then_some(("f4", HALF)))
}

fn stream(rows: &Rows, row: usize, request: &ExemplarRequest, median: Option<f64>) -> Markup {
    let end = end(request);
    let [left, right] = [0.0, end].map(|ms| place(rows.x(ms)));
    let y = Rows::y(row);
    html! {
        path.base d=(format!("M{left} {}H{right}", place(y))) {}
        (rows.part(row, "f0 half", 0.0, ms(request.ttft_ms), HALF))
        @for (from, to) in gaps(request) {
            @if let Some((class, half)) = gap_class(to - from, median) { (rows.part(row, class, from, to, half)) }
        }
        path.tick d=(ticks(rows, row, request)) {}
        (rows.end(row, end, is_completed(request)))
    }
}

/// A tick for each read; those at the same place are one.
fn ticks(rows: &Rows, row: usize, request: &ExemplarRequest) -> String {
    let (mut path, mut last) = (String::new(), f64::MIN);
    let top = place(Rows::y(row) - TICK);
    for read in &request.read_ms {
        let x = rows.x(*read);
        if x - last >= 0.4 {
            last = x;
            // Writing to a String cannot fail.
            let _ = write!(path, "M{} {top}v{}", place(x), place(2.0 * TICK));
        }
    }
    path
}

fn table(requests: &[&ExemplarRequest]) -> Table {
    let head = [
        "first token",
        "last token",
        "end",
        "events",
        "reads",
        "longest gap",
        "it ended at",
        "reads not shown",
    ];
    exemplar_rows::table(requests, head, |r| {
        let longest = gaps(r).max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
        let reads = r.read_ms.len() as u64 + u64::from(r.reads_left_out);
        let ended = longest.filter(|_| r.reads_left_out == 0).map(|(_, to)| to);
        [
            or_dash(r.ttft_ms, time),
            or_dash(r.last_token_ms, time),
            or_dash(r.service_time_ms, time),
            count(r.events.into()),
            count(reads),
            or_dash(r.gap_max_ms, time),
            or_dash(ended, time),
            count(r.reads_left_out.into()),
        ]
    })
}
