//! The differences in the Prometheus text exposition format.

use std::collections::BTreeMap;

use plimsoll_report::exposition::{Exposition, Kind as Metric, Labels};

use crate::figure::QUANTILES;
use crate::result::{Difference, Kind, Versus};

/// Formats `plimsoll_added_seconds` and `plimsoll_shift_seconds` by target, reference, figure and
/// quantile. `bound` is `value`, `low` or `high`, where the last two are the interval including the
/// measurement error. Missing differences are omitted; an invalid comparison has no differences at
/// all.
pub fn prometheus(versus: &Versus) -> String {
    let mut out = Exposition::new(&BTreeMap::new());
    if versus.invalid.is_empty() {
        family(&mut out, versus, Kind::Added, "added", "Overhead of a target per request.");
        let help = "Difference between the percentiles of two targets.";
        family(&mut out, versus, Kind::Shift, "shift", help);
    }
    let differing = versus.compared().into_iter().map(|target| {
        let differs = versus.is_mismatch(target, versus.reference());
        (vec![("target", target.into())], u8::from(differs))
    });
    let help = "1 if the answers differ from the reference's: times are not comparable.";
    out.family("plimsoll_versus_answers_differ", Metric::Gauge, help, differing);
    let shapes = versus.targets.iter().flat_map(|target| {
        let shapes = target.streams.into_iter().flat_map(|streams| streams.shapes());
        shapes.map(|(shape, count)| {
            (vec![("target", target.name.as_str().into()), ("shape", shape.into())], count)
        })
    });
    let mut shapes = shapes.peekable();
    if shapes.peek().is_some() {
        let help = "Streams of a target that did not arrive normally, by shape.";
        out.family("plimsoll_versus_streams", Metric::Gauge, help, shapes);
    }
    let name: Labels<'_> = vec![("name", versus.name.as_str().into())];
    let valid = u8::from(versus.invalid.is_empty());
    let help = "1 if the comparison is valid; 0 if its results must not be used.";
    out.family("plimsoll_versus_valid", Metric::Gauge, help, [(name.clone(), valid)]);
    if versus.stopping.is_some() {
        let help = "1 if every interval is always-valid, because the run could end early.";
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
