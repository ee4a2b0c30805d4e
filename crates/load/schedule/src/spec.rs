//! Stages and their load shapes, in the notation `1:10s,@100..5000:60s,w10:5s`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use plimsoll_measure::Nanos;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::error::{
    MAX_DURATION, MAX_RATE, MAX_STAGES, MAX_USERS, ScheduleError, StageFault, StageProblem,
};

/// Spacing of arrivals in the open model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly spaced.
    #[default]
    Constant,
    /// A Poisson process: independent exponential gaps.
    Poisson,
}

/// The load of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Closed model: virtual users, changing linearly from the stage's start to its end.
    Closed {
        /// Virtual users at the start.
        from: u32,
        /// Virtual users at the end; equal to `from` for a constant number.
        to: u32,
    },
    /// Open model: arrivals per second, changing linearly from the stage's start to its end.
    Open {
        /// Arrivals per second at the start.
        from: f64,
        /// Arrivals per second at the end; equal to `from` for a constant rate.
        to: f64,
    },
    /// Open model: the arrival times of the profile's trace, from its beginning.
    Trace,
}

/// A period with one load shape. Written `[w]LOAD:DURATION`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageSpec {
    /// The load shape.
    pub load: Load,
    /// Time for which new work is started. Optional for a [`Load::Trace`] stage, which lasts no
    /// longer than its trace.
    pub duration: Option<Nanos>,
    /// Whether it is a warm-up: recorded separately, and excluded from every total and threshold.
    pub warmup: bool,
}

impl StageSpec {
    /// All problems of this stage.
    pub(crate) fn faults(&self) -> impl Iterator<Item = StageFault> {
        self.load.fault().into_iter().chain(duration_fault(self.duration, self.load == Load::Trace))
    }
}

fn duration_fault(duration: Option<Nanos>, optional: bool) -> Option<StageFault> {
    match duration {
        None => (!optional).then_some(StageFault::NoDuration),
        Some(Nanos::ZERO) => Some(StageFault::ZeroDuration),
        Some(duration) => (duration > MAX_DURATION).then_some(StageFault::LongDuration),
    }
}

impl Load {
    fn fault(&self) -> Option<StageFault> {
        match *self {
            Self::Closed { from: 0, to: 0 } => Some(StageFault::NoUsers),
            Self::Closed { from, to } => {
                (from.max(to) > MAX_USERS).then_some(StageFault::TooManyUsers)
            }
            Self::Open { from, to } => rate_fault(from, to),
            Self::Trace => None,
        }
    }
}

fn rate_fault(from: f64, to: f64) -> Option<StageFault> {
    if let Some(bad) = [from, to].into_iter().find(|rate| !rate.is_finite() || *rate < 0.0) {
        return Some(StageFault::BadRate(bad));
    }
    let highest = from.max(to);
    if highest == 0.0 {
        return Some(StageFault::NoRate);
    }
    (highest > MAX_RATE).then_some(StageFault::TooFast)
}

/// The stages of a run, one after another. A single string in files and flags, see
/// [`Stages::from_str`].
///
/// [`Stages::from_str`]: std::str::FromStr::from_str
#[derive(Clone, Debug, Default, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub struct Stages(pub Vec<StageSpec>);

impl Stages {
    /// Whether a stage plays the trace.
    pub fn play_trace(&self) -> bool {
        self.0.iter().any(|stage| stage.load == Load::Trace)
    }
}

/// Formats the canonical form, which parses as the same load.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Closed { from, to } if from == to => write!(f, "{from}"),
            Self::Closed { from, to } => write!(f, "{from}..{to}"),
            Self::Open { from, to } if same(from, to) => write!(f, "@{from}"),
            Self::Open { from, to } => write!(f, "@{from}..{to}"),
            Self::Trace => f.write_str("trace"),
        }
    }
}

/// Whether two ends of a load are written as one number.
fn same(from: f64, to: f64) -> bool {
    from.to_bits() == to.to_bits()
}

/// Formats the canonical form, which parses as the same stage.
impl fmt::Display for StageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warmup = if self.warmup { "w" } else { "" };
        write!(f, "{warmup}{}", self.load)?;
        self.duration.map_or(Ok(()), |duration| write!(f, ":{duration}"))
    }
}

/// Formats the canonical form, which parses as the same stages.
impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(position, stage)| {
            let separator = if position == 0 { "" } else { "," };
            write!(f, "{separator}{stage}")
        })
    }
}

impl JsonSchema for Stages {
    fn schema_name() -> Cow<'static, str> {
        "Stages".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Stages `[w]LOAD:DURATION`, separated by commas. LOAD is a number of \
                virtual users (`100`), arrivals per second (`@500`), a ramp of either \
                (`1..100`, `@100..5000`) or `trace`, whose duration may be left out; `w` marks a \
                warm-up stage.",
            "pattern": pattern(),
            "examples": ["1:10s,100:60s", "w@50:10s,@100..5000:60s", "trace"],
        })
    }
}

fn pattern() -> String {
    const RATE: &str = r"[0-9.]+([eE][+-]?[0-9]+)?";
    const DURATION: &str = r"\s*:\s*([0-9.]+(h|m|s|ms|us|ns))+";
    let ramp = format!(r"([0-9]+(\.\.[0-9]+)?|@{RATE}(\.\.{RATE})?){DURATION}");
    let stage = format!(r"\s*w?({ramp}|trace({DURATION})?)\s*");
    format!("^{stage}(,{stage})*$")
}

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
