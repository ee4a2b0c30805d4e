//! The table of times: each target's own, its overhead, and the shift of its tail.

use plimsoll_metrics::{BoundedFigure, Refusal};
use plimsoll_report::format;
use plimsoll_report::table::Table;

use crate::figure::Figure;
use crate::result::{Kind, TargetResult, Versus};

/// Each target's own times in every figure, what it adds, and the shift of its tail.
pub(super) fn table(versus: &Versus) -> Table {
    let mut table = Table::new(["", "p50", "p95", "added, median", tail_title(versus)]);
    for figure in shown(versus) {
        table.row([figure.title()]);
        for target in &versus.targets {
            let [p50, p95] = own(target, figure);
            let [added, tail] = added(versus, target, figure);
            table.row([format!("  {}", target.name), p50, p95, added, tail]);
        }
    }
    table
}

/// The figures of the table: the headline, and others that the targets have. Response and service
/// time exclude each other: only the one for the whole request is shown.
fn shown(versus: &Versus) -> Vec<Figure> {
    let other = match versus.whole {
        Figure::ServiceTime => Figure::ResponseTime,
        _ => Figure::ServiceTime,
    };
    let rest = Figure::ALL.into_iter().filter(|figure| *figure != versus.headline);
    let rest = rest.filter(|figure| *figure != other).filter(|figure: &Figure| {
        versus.targets.iter().any(|target| target.own(*figure).is_some_and(|own| own.count > 0))
    });
    std::iter::once(versus.headline).chain(rest).collect()
}

/// The heading of the shift of the rarest percentile that the samples give.
pub(super) fn tail_title(versus: &Versus) -> &'static str {
    match versus.tail() {
        Some("p95") => "p95 shift",
        _ => "p99 shift",
    }
}

/// Median and 95th percentile of a target, with their limits.
pub(super) fn own(target: &TargetResult, figure: Figure) -> [String; 2] {
    limited(target, figure).map(format::limited_time)
}

/// A turn without an end is longer than all: where there are so many that the percentile is one of
/// them, only the least that it can be is known.
fn limited(target: &TargetResult, figure: Figure) -> [Option<BoundedFigure>; 2] {
    let Some(own) = target.own(figure) else { return [None; 2] };
    let endless: u64 =
        ["in_flight", "timed_out"].into_iter().filter_map(|word| target.failures.get(word)).sum();
    let all = (own.count + endless) as f64;
    [(0.5, own.p50_ns, own.p50_between_ns), (0.95, own.p95_ns, own.p95_between_ns)].map(
        |(q, value, between): (f64, Option<f64>, Option<(f64, f64)>)| {
            let value = value? / 1e6;
            let bound = between.map_or(0.0, |(least, _)| (value - least / 1e6).max(0.0));
            let refused = (q * all > own.count as f64).then_some(Refusal::Censored);
            Some(BoundedFigure { value, bound, interval: None, refused })
        },
    )
}

/// The overhead of a target at the median, and the shift of its tail, each with its limits.
pub(super) fn added(versus: &Versus, target: &TargetResult, figure: Figure) -> [String; 2] {
    let tail = versus.tail().unwrap_or("p99");
    [(Kind::Added, "p50"), (Kind::Shift, tail)].map(|(kind, quantile)| {
        let found = versus.difference(&target.name, versus.reference(), figure, kind, quantile);
        format::or_dash(found.and_then(|found| Some((found, found.limited()?))), |shown| {
            let (found, (value, low, high)) = shown;
            let mark = if found.other_answers { " *" } else { "" };
            format!("{}{mark}", format::difference(value / 1e6, low / 1e6, high / 1e6))
        })
    })
}

/// Why figures of the shown columns are refused, each reason once.
pub(super) fn reasons(versus: &Versus, shown: &[Figure]) -> Vec<String> {
    let tail = versus.tail().unwrap_or("p99");
    let figures = shown
        .iter()
        .flat_map(|&figure| [(figure, Kind::Added, "p50"), (figure, Kind::Shift, tail)])
        .filter(|(figure, kind, quantile)| is_shown(versus, *figure, *kind, quantile));
    let cells = figures.flat_map(|cell| versus.targets.iter().map(move |target| (cell, target)));
    let of_cells = cells.filter_map(|((figure, kind, quantile), target)| {
        let what = format!("{} {quantile} of {}", figure.title(), target.name);
        Some((refused(versus, target, figure, kind, quantile)?, what))
    });
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (why, what) in of_cells {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, figures)) => figures.push(what),
            None => reasons.push((why, vec![what])),
        }
    }
    reasons
        .into_iter()
        .map(|(why, figures): (String, Vec<String>)| {
            let (first, more) = (&figures[0], figures.len() - 1);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{why} ({first}{more})")
        })
        .collect()
}

fn refused(
    versus: &Versus,
    target: &TargetResult,
    figure: Figure,
    kind: Kind,
    quantile: &str,
) -> Option<String> {
    versus.difference(&target.name, versus.reference(), figure, kind, quantile)?.refused.clone()
}

/// Whether the column of a difference is shown: a column without a figure is not.
fn is_shown(versus: &Versus, figure: Figure, kind: Kind, quantile: &str) -> bool {
    let reference = versus.reference();
    versus.targets.iter().any(|target| {
        let found = versus.difference(&target.name, reference, figure, kind, quantile);
        found.is_some_and(|found| found.limited().is_some())
    })
}
