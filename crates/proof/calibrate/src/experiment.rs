//! The experiments: each is a function that measures something whose true value is known.

mod accounting;
mod arrivals;
mod connection_phases;
mod costs;
mod cross_check;
mod delays;
mod errors;
mod instrument_limits;
mod intervals;
mod littles_law;
mod merge;
mod overhead;
mod planted;
mod saturation;
mod soak;
mod stalls;
mod streams;
mod synthetic;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock};

use crate::error::CalibrateError;
use crate::finding::{Check, ExperimentResult, Finding};
use crate::runner::Runner;

/// Figures and notes of one experiment.
#[derive(Debug, Default)]
struct Observations {
    checks: Vec<Check>,
    notes: Vec<String>,
}

impl From<Vec<Check>> for Observations {
    fn from(checks: Vec<Check>) -> Self {
        Self { checks, notes: Vec::new() }
    }
}

type Procedure = fn(&Runner) -> Result<Observations, CalibrateError>;

/// An experiment on the instrument.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// `T1` to `T29`.
    pub id: &'static str,
    /// Its subject, in a few words.
    pub title: &'static str,
    applicability: Applicability,
}

/// Where an experiment is carried out.
#[derive(Clone, Copy, Debug)]
enum Applicability {
    /// On every host.
    Always(Procedure),
    /// On hosts that have other tools to compare with.
    WithTools(Procedure),
    /// Only if it is asked for by name: it takes long.
    OnRequest(Procedure),
    /// Not on a user's host; the text says where.
    Elsewhere(&'static str),
}

const CLOCK: &str = "stepping the clock of a live host is not for a user's tool: the unit tests of `plimsoll-transport` (receive timestamps) step it by a second in both directions";
const CORPUS: &str = "needs no host: the parser's corpus is compared with hyper in the test suite (`cargo test -p plimsoll-transport oracle`), and fuzzed in `fuzz/`";

/// Every experiment, in the order in which they are carried out: T1 finds the limits that later
/// ones refer to.
pub const EXPERIMENTS: [Experiment; 29] = [
    always("T1", "floor of this host", instrument_limits::t1_null_server),
    always("T2", "known delays", delays::t2_constant_delays),
    always("T3", "known distributions", delays::t3_distributions),
    always("T4", "known stall", stalls::t4_stalled_target),
    always("T5", "stalled generator", stalls::t5_stalled_generator),
    always("T6", "known rates", arrivals::t6_rates),
    always("T7", "Poisson arrivals", arrivals::t7_poisson),
    always("T8", "ramps and traces", arrivals::t8_shapes),
    always("T9", "conservation", accounting::t9_conservation),
    always("T10", "known errors", errors::t10_error_mix),
    always("T11", "known stream", streams::t11_known_stream),
    always("T12", "many streams at once", streams::t12_many_streams),
    always("T13", "Little's law", littles_law::t13_steady_state),
    always("T14", "known overhead", overhead::t14_planted_overhead),
    always("T15", "saturation", saturation::t15_throttled),
    always("T16", "connection phases", connection_phases::t16_connection_phases),
    always("T17", "merge", merge::t17_shards),
    Experiment {
        id: "T18",
        title: "soak",
        applicability: Applicability::OnRequest(soak::t18_memory),
    },
    Experiment {
        id: "T19",
        title: "stepped wall clock",
        applicability: Applicability::Elsewhere(CLOCK),
    },
    Experiment {
        id: "T20",
        title: "wrk and h2load",
        applicability: Applicability::WithTools(cross_check::t20_other_tools),
    },
    Experiment {
        id: "T21",
        title: "parser against hyper",
        applicability: Applicability::Elsewhere(CORPUS),
    },
    always("T22", "stop after a warm-up", planted::t22_after_warm_up),
    always("T23", "overload behind a limit", planted::t23_behind_a_limit),
    always("T24", "stopped closed loop", planted::t24_closed_loop),
    always("T25", "no kernel time stamps", planted::t25_without_stamps),
    always("T26", "hanging requests", planted::t26_hanging),
    always("T27", "steal without effect", planted::t27_steal_without_effect),
    always("T28", "target that merges", streams::t28_merged_by_the_target),
    always("T29", "costs of this host", costs::t29_costs),
];

const fn always(id: &'static str, title: &'static str, procedure: Procedure) -> Experiment {
    Experiment { id, title, applicability: Applicability::Always(procedure) }
}

impl Experiment {
    /// The experiment of this id, in capitals or not.
    pub fn named(id: &str) -> Option<Self> {
        EXPERIMENTS.into_iter().find(|experiment| experiment.id.eq_ignore_ascii_case(id))
    }

    /// Whether it must be asked for by name.
    pub const fn is_on_request(self) -> bool {
        matches!(self.applicability, Applicability::OnRequest(_))
    }

    /// Carries it out. The finding says if it could not be carried out, and why.
    pub fn run(self, runner: &Runner) -> Finding {
        let clock = MonotonicClock::start();
        let (result, observations) = match self.applicability {
            Applicability::Elsewhere(place) => {
                (ExperimentResult::Elsewhere(place.to_owned()), Observations::default())
            }
            Applicability::Always(procedure)
            | Applicability::OnRequest(procedure)
            | Applicability::WithTools(procedure) => self.judge(procedure(runner)),
        };
        Finding {
            experiment: self.id.to_owned(),
            title: self.title.to_owned(),
            result,
            checks: observations.checks,
            notes: observations.notes,
            seconds: clock.now().since(Moment::EPOCH).as_secs_f64(),
        }
    }

    fn judge(
        self,
        observed: Result<Observations, CalibrateError>,
    ) -> (ExperimentResult, Observations) {
        let needs_tools = matches!(self.applicability, Applicability::WithTools(_));
        match observed {
            Err(CalibrateError::Missing(why)) if needs_tools => {
                (ExperimentResult::Elsewhere(why), Observations::default())
            }
            Err(error) => (ExperimentResult::NotRun(error.to_string()), Observations::default()),
            // No figure is never a pass.
            Ok(observed) if observed.checks.is_empty() => {
                (ExperimentResult::NotRun("nothing was measured".to_owned()), observed)
            }
            Ok(observed) if observed.checks.iter().all(Check::passes) => {
                (ExperimentResult::Pass, observed)
            }
            Ok(observed) => (ExperimentResult::Fail, observed),
        }
    }
}

/// Requests for the mock provider, as small as they can be: for experiments about time.
const SMALL: &str = "content: {mode: sized, approx_input_tokens: 16}\nmax_tokens: 1\n";

/// Requests for servers that read only the number in the path.
const NUMBERED: &str = "protocol: http\nhttp: {path: '/{{seq}}'}\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order_and_found_in_any_case() {
        for (number, experiment) in EXPERIMENTS.iter().enumerate() {
            assert_eq!(experiment.id, format!("T{}", number + 1));
        }
        assert_eq!(Experiment::named("t18").unwrap().title, "soak");
        assert!(Experiment::named("t18").unwrap().is_on_request());
        assert!(Experiment::named("T30").is_none());
    }

    #[test]
    fn no_figure_is_never_a_pass() {
        let figures = |kept: &[bool]| {
            let checks: Vec<_> = kept.iter().map(|&kept| Check::holds("x", kept)).collect();
            Ok(checks.into())
        };
        let missing = || Err(CalibrateError::Missing("a tool".to_owned()));
        let not_run = |why: &str| ExperimentResult::NotRun(why.to_owned());
        for (id, observed, expected) in [
            ("T1", figures(&[true, true]), ExperimentResult::Pass),
            ("T1", figures(&[true, false]), ExperimentResult::Fail),
            ("T1", figures(&[]), not_run("nothing was measured")),
            ("T1", missing(), not_run("a tool")),
            // Where tools to compare with are missing, nothing is wrong with the host.
            ("T20", missing(), ExperimentResult::Elsewhere("a tool".to_owned())),
        ] {
            assert_eq!(Experiment::named(id).unwrap().judge(observed).0, expected, "{id}");
        }
    }
}
