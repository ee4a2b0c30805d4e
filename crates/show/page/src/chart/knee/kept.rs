//! The share of requests that kept the objective, by load.

use maud::{Markup, html};
use plimsoll_knee::{KeptShare, Objective, Probe, State, TargetKnee};
use plimsoll_report::format::DASH;
use plimsoll_report::printable;

use super::{View, mark_of, name_of};
use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, legend_with, place, short, without_zeros};

/// A probe is near the knee within this factor of it.
const NEAR: f64 = 1.25;
/// So many probes near the knee have a chart of their own.
const FEWEST_NEAR: usize = 4;
/// The most charts of single targets.
const MOST_NEAR: usize = 6;

/// Every probe.
pub(super) fn all(view: &View<'_>) -> Chart {
    let found = view.knees.iter().map(|knee| {
        if view.is_several() {
            return format!("{}: {}", name_of(knee), knee.headline(view.load));
        }
        let facts = knee.confirmed(view.load).into_iter();
        std::iter::once(knee.headline(view.load)).chain(facts).collect::<Vec<_>>().join("; ")
    });
    let found = found.collect::<Vec<_>>().join("; ");
    let text = format!(
        "{}. A mark is a probe, its line the 95 % interval. The axis goes by odds: from 90 to 99 % is as far as from 99 to 99.9 %.",
        printable(&found)
    );
    let about = About {
        id: "kept".to_owned(),
        title: "Requests that kept the objective, in %, by load".to_owned(),
        text,
    };
    let probes = view.targets().flat_map(|(nth, knee)| numbered(nth, knee)).collect();
    chart(view, about, view.loads(), &Shown { probes, only: None })
}

/// Those of each target near its knee, with the order in which they were made.
pub(super) fn near(view: &View<'_>) -> Vec<Chart> {
    let charts = view.targets().filter_map(|(nth, knee)| of_target(view, nth, knee));
    charts.take(MOST_NEAR).collect()
}

fn of_target(view: &View<'_>, nth: usize, knee: &TargetKnee) -> Option<Chart> {
    let centre = knee.knee.load?;
    let probes: Vec<_> = numbered(nth, knee)
        .filter(|(_, _, probe)| (probe.load / centre).ln().abs() <= NEAR.ln())
        .collect();
    if probes.len() < FEWEST_NEAR || probes.len() == view.probes().count() {
        return None;
    }
    let ends = [knee.knee.low, knee.knee.high, knee.knee.confirmed.map(|confirmed| confirmed.load)];
    let loads = probes.iter().map(|(_, _, probe)| probe.load).chain(ends.into_iter().flatten());
    let (low, high) =
        loads.fold((f64::MAX, 0.0_f64), |(low, high), at| (low.min(at), high.max(at)));
    let spare = (high - low) * 0.06;
    let text = format!(
        "{} of {} probes lie within a quarter of it. The number of a mark is its place in the order of time.",
        probes.len(),
        knee.probes.len()
    );
    let name =
        if view.is_several() { format!(" of {}", printable(name_of(knee))) } else { String::new() };
    let about = About {
        id: format!("kept-near-{nth}"),
        title: format!("The same near the knee{name}"),
        text,
    };
    let x = Axis::linear(low - spare, high + spare);
    Some(chart(view, about, x, &Shown { probes, only: Some(nth) }))
}

/// The words of a chart.
struct About {
    id: String,
    title: String,
    text: String,
}

/// Probes of a chart, each with its target and its number.
struct Shown<'a> {
    probes: Vec<(usize, usize, &'a Probe)>,
    /// The target that it is about, whose probes have their numbers written beside them.
    only: Option<usize>,
}

fn numbered(nth: usize, knee: &TargetKnee) -> impl Iterator<Item = (usize, usize, &Probe)> {
    knee.probes.iter().enumerate().map(move |(order, probe)| (nth, order + 1, probe))
}

fn chart(view: &View<'_>, about: About, x: Axis, shown: &Shown<'_>) -> Chart {
    let asked = view.objective.as_ref().map(Objective::share);
    let judged = shown.probes.iter().filter_map(|(_, _, probe)| kept(probe));
    let shares = judged.flat_map(|kept| [kept.low, kept.value, kept.high]).chain(asked);
    let plot = Plot { x, y: Axis::of_shares(shares) };
    let mut entries: Vec<(String, String)> = asked
        .map(|share| ("l-asked".to_owned(), format!("{} asked for", percent(share))))
        .into_iter()
        .collect();
    entries.extend(view.band_entries(shown.only));
    Chart {
        id: about.id,
        title: about.title,
        text: about.text,
        drawing: html! {
            (view.bands(&plot, shown.only))
            (plot.axes(&short, &number, view.axis_title()))
            @if let Some(share) = asked { (plot.level("l-asked", share)) }
            @for (nth, _, probe) in &shown.probes { (drawn(view, *nth, probe, &plot)) }
            @if shown.only.is_some() { (numbers(shown, &plot)) }
        },
        height: None,
        legend: legend_with(&view.shapes(), &entries),
        table: view
            .table(|probe: &Probe| shown.probes.iter().any(|(_, _, of)| std::ptr::eq(*of, probe))),
    }
}

/// The numbers of the probes beside their marks, where there is room for them.
fn numbers(shown: &Shown<'_>, plot: &Plot) -> Markup {
    /// Half of what a number takes, with room around it.
    const ROOM: (f64, f64) = (9.0, 6.5);
    /// Where it may be: the middle of the number, from the mark.
    const BESIDE: [(f64, f64); 8] = [
        (12.0, -7.0),
        (-12.0, -7.0),
        (12.0, 8.0),
        (-12.0, 8.0),
        (0.0, -15.0),
        (0.0, 16.0),
        (18.0, 0.0),
        (-18.0, 0.0),
    ];
    let marks: Vec<_> = shown.probes.iter().map(|(_, _, probe)| place_of(probe, plot)).collect();
    let mut taken = marks.clone();
    let mut placed = Vec::new();
    for ((_, number, _), (x, y)) in shown.probes.iter().zip(marks) {
        let found =
            BESIDE.iter().map(|(right, down)| (x + right, y + down)).find(|(at_x, at_y)| {
                *at_y > ROOM.1
                    && taken.iter().all(|(x, y)| {
                        (x - at_x).abs() > ROOM.0 * 1.4 || (y - at_y).abs() > ROOM.1 * 1.6
                    })
            });
        if let Some(at) = found {
            taken.push(at);
            placed.push((number, at));
        }
    }
    html! {
        @for (number, (x, y)) in placed {
            text.num.over x=(place(x)) y=(place(y + 4.0)) text-anchor="middle" { (number) }
        }
    }
}

/// The share of a probe that shows anything.
fn kept(probe: &Probe) -> Option<KeptShare> {
    probe.kept.filter(|kept| probe.state != State::Invalid && kept.value.is_finite())
}

/// Where a probe's mark is; one that shows nothing is at the axis of loads.
fn place_of(probe: &Probe, plot: &Plot) -> (f64, f64) {
    let y = kept(probe).map_or_else(|| plot.y(0.0) - 5.0, |kept| plot.y(kept.value));
    (plot.x(probe.load), y)
}

/// A probe with its interval.
fn drawn(view: &View<'_>, nth: usize, probe: &Probe, plot: &Plot) -> Markup {
    let (x, y) = place_of(probe, plot);
    let (line, _) = view.colours(nth, mark_of(probe));
    html! {
        @if let Some(kept) = kept(probe) {
            path class=(format!("l whisker {line}"))
                d=(format!("M{} {}V{}", place(x), place(plot.y(kept.low)), place(plot.y(kept.high)))) {}
        }
        (view.mark(nth, probe, x, y))
    }
}

/// `99.9%`, and of the ends of the axis all and none.
fn percent(share: f64) -> String {
    if !share.is_finite() {
        return DASH.to_owned();
    }
    format!("{}%", number(share))
}

/// The same without its sign, beside the axis.
fn number(share: f64) -> String {
    without_zeros(&format!("{:.6}", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_with_the_digits_that_they_have() {
        let shares = [0.0, 0.5, 0.99, 0.9995, 1.0 - 1e-5, 1.0].map(percent);
        assert_eq!(shares, ["0%", "50%", "99%", "99.95%", "99.999%", "100%"]);
    }
}
