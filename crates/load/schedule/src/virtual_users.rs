//! The closed model: when each virtual user is active.
//!
//! The number of virtual users follows a line `L(t)` from the stage's first number to its last.
//! Virtual user `v`, counted from 0, is active while `L(t)` is above `v + 1/2`. At every instant,
//! the number of active users is `L(t)` rounded to the nearest integer, and over the stage their
//! total time equals the area under the line. `1..100:30s` therefore starts with one user, the
//! second joins when the line crosses 1.5, and a falling line stops the users with the highest
//! numbers first.
//!
//! In a stage of length `D` from `a` to `b` users the line crosses `v + 1/2` at `D (v + 1/2 - a)
//! (b - a)`, computed with integers and rounded to the nearest nanosecond.

use plimsoll_measure::Nanos;

use crate::spec::Load;
use crate::stage_table::StagePlan;

/// A period in which a virtual user is active: from `from` up to, but not including, `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveWindow {
    /// Intended start of its first turn, as an offset from the run's start.
    pub from: Nanos,
    /// No turn starts at or after this offset from the run's start.
    pub to: Nanos,
}

/// The windows of virtual user `vu`. Windows of adjacent stages are joined.
pub(crate) fn windows(stages: &[StagePlan], vu: u32) -> Vec<ActiveWindow> {
    let mut windows: Vec<ActiveWindow> = Vec::new();
    for window in stages.iter().filter_map(|stage| active(stage, vu)) {
        match windows.last_mut() {
            Some(last) if last.to == window.from => last.to = window.to,
            _ => windows.push(window),
        }
    }
    windows
}

/// Maximum number of simultaneously active virtual users.
pub(crate) fn peak(stages: &[StagePlan]) -> u32 {
    stages
        .iter()
        .map(|stage: &StagePlan| match stage.load {
            Load::Closed { from, to } => from.max(to),
            Load::Open { .. } | Load::Trace => 0,
        })
        .max()
        .unwrap_or(0)
}

fn active(stage: &StagePlan, vu: u32) -> Option<ActiveWindow> {
    let Load::Closed { from, to } = stage.load else { return None };
    let window = match (vu < from, vu < to) {
        (true, true) => ActiveWindow { from: stage.start, to: stage.end },
        (false, true) => ActiveWindow { from: crossing(stage, from, to, vu), to: stage.end },
        (true, false) => ActiveWindow { from: stage.start, to: crossing(stage, from, to, vu) },
        (false, false) => return None,
    };
    (window.from < window.to).then_some(window)
}

/// Time at which the line crosses `vu + 1/2`. Callers check that it does, so that `from != to`.
fn crossing(stage: &StagePlan, from: u32, to: u32, vu: u32) -> Nanos {
    let length = u128::from((stage.end).saturating_sub(stage.start).as_u64());
    let rise = (2 * u128::from(vu) + 1).abs_diff(2 * u128::from(from));
    let total = 2 * u128::from(from.abs_diff(to));
    let nearest = (length * rise + total / 2) / total;
    stage.start + Nanos::new(u64::try_from(nearest).unwrap_or(u64::MAX))
}
