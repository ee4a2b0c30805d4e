//! The search in the order of time: which load each probe tried, and what it showed.

use maud::html;
use plimsoll_report::format::count;

use super::{View, band_class, reach};
use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, legend_with, short};

/// Every probe by its number.
pub(super) fn chart(view: &View<'_>) -> Chart {
    let most = view.knees.iter().map(|knee| knee.probes.len()).max().unwrap_or_default();
    let plot = Plot { x: Axis::linear(0.0, most as f64 + 1.0), y: view.loads() };
    let requests: u64 = view.probes().map(|probe| probe.requests).sum();
    Chart {
        id: "search".to_owned(),
        title: "The search, probe by probe".to_owned(),
        text: format!(
            "{} probes with {} requests that count. It steps up to a load that misses, bisects, and probes on both sides of its best guess in random order.",
            view.probes().count(),
            count(requests)
        ),
        drawing: html! {
                @for (nth, knee) in view.targets() {
                    @if let Some((from, to)) = reach(&knee.knee, &plot.y) {
                        (plot.stripe(&band_class(nth, &knee.knee), from, to))
                    }
                }
                (plot.axes(&|at: f64| {
            let shown = at.fract().abs() < 1e-9 && at > 0.0 && at <= most as f64;
            if shown { format!("{at:.0}") } else { String::new() }
        }, &short, "probe, in the order of time"))
                @for (_, knee) in view.targets() {
                    @let points: Vec<_> = knee.probes.iter().enumerate().map(|(n, probe)| Some((n as f64 + 1.0, probe.load))).collect();
                    (plot.line("trail", &points))
                }
                @for (nth, knee) in view.targets() {
                    @for (n, probe) in knee.probes.iter().enumerate() {
                        (view.mark(nth, probe, plot.x(n as f64 + 1.0), plot.y(probe.load)))
                    }
                }
            },
        height: None,
        legend: legend_with(
            &view.shapes(),
            &view
                .band_entries(None)
                .into_iter()
                .filter(|(class, _)| class.starts_with('f'))
                .collect::<Vec<_>>(),
        ),
        table: view.table(|_| true),
    }
}
