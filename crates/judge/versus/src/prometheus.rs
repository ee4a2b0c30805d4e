//! The differences in the Prometheus text exposition format.

use std::collections::BTreeMap;

use plimsoll_report::exposition::{Exposition, Kind as Metric, Labels};

use crate::figure::QUANTILES;
use crate::result::{Difference, Kind, Versus};

/// `plimsoll_added_seconds` and `plimsoll_shift_seconds` by target, reference, figure and quantile;
/// `bound` is `value`, or `low` or `high`: the ends of the interval with what may be the
/// generator's. What is refused is left out; of an invalid comparison, all of it.
pub fn prometheus(versus: &Versus) -> String {
    let mut out = Exposition::new(&BTreeMap::new());
    if versus.invalid.is_empty() {
        family(&mut out, versus, Kind::Added, "added", "What a target adds to a request.");
        let help = "The difference of the percentiles of two targets.";
        family(&mut out, versus, Kind::Shift, "shift", help);
    }
    let differing = versus.compared().into_iter().map(|target| {
        let differs = versus.is_mismatch(target, versus.reference());
        (vec![("target", target.into())], u8::from(differs))
    });
    let help = "1 if the answers differ from those of the reference: times are not comparable.";
    out.family("plimsoll_versus_answers_differ", Metric::Gauge, help, differing);
    let shapes = versus.targets.iter().flat_map(|target| {
        let shapes = target.streams.into_iter().flat_map(|streams| streams.shapes());
        shapes.map(|(shape, count)| {
            (vec![("target", target.name.as_str().into()), ("shape", shape.into())], count)
        })
    });
    let mut shapes = shapes.peekable();
    if shapes.peek().is_some() {
        let help = "Streams of a target that did not come as they should, by shape.";
        out.family("plimsoll_versus_streams", Metric::Gauge, help, shapes);
    }
    let name: Labels<'_> = vec![("name", versus.name.as_str().into())];
    let valid = u8::from(versus.invalid.is_empty());
    let help = "1 if the comparison is valid; else 0: do not use it.";
    out.family("plimsoll_versus_valid", Metric::Gauge, help, [(name.clone(), valid)]);
    if versus.stopping.is_some() {
        let help = "1: every interval holds at all moments at which the run could have ended.";
        out.family("plimsoll_versus_always_valid", Metric::Gauge, help, [(name, 1)]);
    }
    out.finish()
}

fn family(out: &mut Exposition, versus: &Versus, kind: Kind, name: &str, help: &str) {
    let shown = versus.differences.iter().filter(|found| found.kind == kind);
    let lines = shown.filter_map(|found| {
        let (value, low, high) = found.limited()?;
        let bounds = [("value", value), ("low", low), ("high", high)];
        Some(bounds.map(|(bound, nanos)| (labels(found, bound), nanos / 1e9)))
    });
    let mut lines = lines.flatten().peekable();
    if lines.peek().is_some() {
        out.family(&format!("plimsoll_{name}_seconds"), Metric::Gauge, help, lines);
    }
}

fn labels<'a>(found: &'a Difference, bound: &'static str) -> Labels<'a> {
    let quantile = QUANTILES.iter().find(|(name, _)| *name == found.quantile);
    let quantile = quantile.map_or(0.0, |(_, q)| *q);
    vec![
        ("target", found.target.as_str().into()),
        ("reference", found.reference.as_str().into()),
        ("figure", found.figure.name().into()),
        ("quantile", quantile.to_string().into()),
        ("bound", bound.into()),
    ]
}
