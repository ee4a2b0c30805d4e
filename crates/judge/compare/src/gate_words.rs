//! Formats the values of a gate for readers.

use plimsoll_report::format::{or_dash, percent, rate, time, time_us};

use crate::format;
use crate::gates::{FigureUnit, GateResult};

/// The value of a figure with its unit.
pub(crate) fn value(unit: FigureUnit, value: Option<f64>) -> String {
    or_dash(value, |value| match unit {
        FigureUnit::Ms => time(value),
        FigureUnit::CpuUs => time_us(value),
        FigureUnit::PerS => format!("{}/s", rate(Some(value))),
        FigureUnit::Share => percent(value),
    })
}

/// The change of a gate.
pub(crate) fn change_of(gate: &GateResult) -> String {
    format::change(gate.margin(), gate.judged.change, gate.judged.low.zip(gate.judged.high))
}

/// The margin of a gate, signed in the direction of a regression: `+3%`, `-2%`.
pub(crate) fn margin_of(gate: &GateResult) -> String {
    let sign = if gate.more_is_worse { "+" } else { "-" };
    format!("{sign}{}", format::amount(gate.margin(), gate.margin))
}

/// The smallest detectable change of a gate.
pub(crate) fn detectable_of(gate: &GateResult) -> String {
    or_dash(gate.judged.detectable, |detectable| format::amount(gate.margin(), detectable))
}
