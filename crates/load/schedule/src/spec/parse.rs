//! Parses stages, and reports all problems at once.

use std::str::FromStr;

use plimsoll_measure::Nanos;

use super::{Load, StageSpec, Stages, duration_fault};
use crate::error::{ScheduleError, StageFault, StageProblem};
use crate::limits::MAX_STAGES;

/// Parses `[w]LOAD:DURATION,...`.
///
/// | LOAD | Meaning |
/// |---|---|
/// | `100` | 100 virtual users |
/// | `1..100` | a ramp from 1 to 100 virtual users |
/// | `@500` | 500 arrivals per second |
/// | `@100..5000` | a ramp from 100 to 5000 arrivals per second |
/// | `trace` | the arrivals of the trace; the duration is optional |
///
/// A `w` before the load marks a warm-up stage.
impl FromStr for Stages {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let mut stages = Vec::new();
        let mut problems = Vec::new();
        for (index, piece) in text.split(',').map(str::trim).enumerate() {
            let problem =
                |fault| StageProblem { position: index + 1, text: piece.to_owned(), fault };
            if index >= MAX_STAGES {
                problems.push(problem(StageFault::TooManyStages));
                break;
            }
            match stage(piece) {
                Ok(stage) => stages.push(stage),
                Err(faults) => problems.extend(faults.into_iter().map(problem)),
            }
        }
        ScheduleError::unless_empty(problems)?;
        Ok(Self(stages))
    }
}

fn stage(text: &str) -> Result<StageSpec, Vec<StageFault>> {
    if text.is_empty() {
        return Err(vec![StageFault::Empty]);
    }
    let (warmup, rest) = text.strip_prefix('w').map_or((false, text), |rest| (true, rest));
    let (shape, length) =
        rest.split_once(':').map_or((rest, None), |(shape, length)| (shape, Some(length)));
    let load = load(shape.trim());
    let duration = duration(length, load == Ok(Load::Trace));
    match (load, duration) {
        (Ok(load), Ok(duration)) => Ok(StageSpec { load, duration, warmup }),
        (load, duration) => Err(load.err().into_iter().chain(duration.err()).collect()),
    }
}

fn duration(text: Option<&str>, optional: bool) -> Result<Option<Nanos>, StageFault> {
    let duration = text.map(str::parse).transpose()?;
    duration_fault(duration, optional).map_or(Ok(duration), Err)
}

fn load(text: &str) -> Result<Load, StageFault> {
    let load = shape(text)?;
    load.fault().map_or(Ok(load), Err)
}

fn shape(text: &str) -> Result<Load, StageFault> {
    if text == "trace" {
        Ok(Load::Trace)
    } else if let Some(rates) = text.strip_prefix('@') {
        let (from, to) = both_ends(rates, rate)?;
        Ok(Load::Open { from, to })
    } else if text.is_empty() {
        Err(StageFault::Empty)
    } else {
        let (from, to) = both_ends(text, users)?;
        Ok(Load::Closed { from, to })
    }
}

/// `FROM..TO`, or one value for both.
fn both_ends<T: Copy>(
    text: &str,
    read: impl Fn(&str) -> Result<T, StageFault>,
) -> Result<(T, T), StageFault> {
    match text.split_once("..") {
        Some((from, to)) => Ok((read(from)?, read(to)?)),
        None => read(text).map(|value| (value, value)),
    }
}

fn rate(text: &str) -> Result<f64, StageFault> {
    text.parse().map_err(|_| StageFault::Rate(text.to_owned()))
}

/// A number too large for the type is reported as too many users rather than as invalid.
fn users(text: &str) -> Result<u32, StageFault> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(StageFault::Users(text.to_owned()));
    }
    text.parse().map_err(|_| StageFault::TooManyUsers)
}
