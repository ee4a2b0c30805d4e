//! The differences in the Prometheus text exposition format.

use std::fmt::Write as _;

use plimsoll_report::escape_label;

use crate::figure::QUANTILES;
use crate::result::{Difference, Kind, Versus};

/// `plimsoll_added_seconds` and `plimsoll_shift_seconds` by target, reference, figure and quantile;
/// `bound` is `value`, or `low` or `high`: the ends of the interval with what may be the
/// generator's. What is refused is left out; of an invalid comparison, all of it.
pub fn prometheus(versus: &Versus) -> String {
    let mut out = String::new();
    if versus.invalid.is_empty() {
        family(&mut out, versus, Kind::Added, "added", "What a target adds to a request.");
        let help = "The difference of the percentiles of two targets.";
        family(&mut out, versus, Kind::Shift, "shift", help);
    }
    let valid = u8::from(versus.invalid.is_empty());
    let help = "1 if the comparison is valid; else 0: do not use it.";
    let _ = write!(
        out,
        "# HELP plimsoll_versus_valid {help}\n# TYPE plimsoll_versus_valid gauge\n\
         plimsoll_versus_valid{{name=\"{}\"}} {valid}\n",
        escape_label(&versus.name)
    );
    if versus.stopping.is_some() {
        let help = "1: every interval holds at all moments at which the run could have ended.";
        let _ = write!(
            out,
            "# HELP plimsoll_versus_always_valid {help}\n\
             # TYPE plimsoll_versus_always_valid gauge\n\
             plimsoll_versus_always_valid{{name=\"{}\"}} 1\n",
            escape_label(&versus.name)
        );
    }
    out
}

fn family(out: &mut String, versus: &Versus, kind: Kind, name: &str, help: &str) {
    let name = format!("plimsoll_{name}_seconds");
    let mut lines = String::new();
    for found in versus.differences.iter().filter(|found| found.kind == kind) {
        let Some((value, low, high)) = found.limited() else { continue };
        for (bound, nanos) in [("value", value), ("low", low), ("high", high)] {
            // Writing to a string does not fail.
            let _ =
                writeln!(lines, "{name}{{{},bound=\"{bound}\"}} {}", labels(found), nanos / 1e9);
        }
    }
    if !lines.is_empty() {
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{lines}");
    }
}

fn labels(found: &Difference) -> String {
    let quantile = QUANTILES.iter().find(|(name, _)| *name == found.quantile);
    let quantile = quantile.map_or(0.0, |(_, q)| *q);
    format!(
        "target=\"{}\",reference=\"{}\",figure=\"{}\",quantile=\"{quantile}\"",
        escape_label(&found.target),
        escape_label(&found.reference),
        found.figure.name()
    )
}
