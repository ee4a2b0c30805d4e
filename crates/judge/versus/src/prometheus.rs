//! The differences in the Prometheus text exposition format.

use std::collections::BTreeMap;

use plimsoll_report::prometheus::{Exposition, Labels};

use crate::figure::QUANTILES;
use crate::result::{Difference, Kind, Versus};

/// `plimsoll_added_seconds` and `plimsoll_shift_seconds` by target, reference, figure and quantile;
/// `bound` is `value`, or `low` or `high`: the ends of the interval including the measurement
/// error. Refused figures are left out, and all figures of an invalid comparison.
pub fn prometheus(versus: &Versus) -> String {
    let mut out = Exposition::new(&BTreeMap::new());
    if versus.invalid.is_empty() {
        family(&mut out, versus, Kind::Added, "plimsoll_added_seconds");
        family(&mut out, versus, Kind::Shift, "plimsoll_shift_seconds");
    }
    let differing = versus.compared().into_iter().map(|target| {
        let differs = versus.is_mismatch(target, versus.reference());
        (vec![("target", target.into())], u8::from(differs))
    });
    out.family("plimsoll_versus_answers_differ", differing);
    let shapes = versus.targets.iter().flat_map(|target| {
        let shapes = target.streams.into_iter().flat_map(|streams| streams.shapes());
        shapes.map(|(shape, count)| {
            (vec![("target", target.name.as_str().into()), ("shape", shape.into())], count)
        })
    });
    out.optional("plimsoll_versus_streams", shapes);
    let name: Labels<'_> = vec![("name", versus.name.as_str().into())];
    let valid = u8::from(versus.invalid.is_empty());
    out.family("plimsoll_versus_valid", [(name.clone(), valid)]);
    if versus.stopping.is_some() {
        out.family("plimsoll_versus_always_valid", [(name, 1)]);
    }
    out.finish()
}

fn family(out: &mut Exposition, versus: &Versus, kind: Kind, name: &str) {
    let shown = versus.differences.iter().filter(|found| found.kind == kind);
    let lines = shown.filter_map(|found| {
        let (value, low, high) = found.limited()?;
        let bounds = [("value", value), ("low", low), ("high", high)];
        Some(bounds.map(|(bound, nanos)| (labels(found, bound), nanos / 1e9)))
    });
    out.optional(name, lines.flatten());
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
