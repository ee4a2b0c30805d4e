//! The experiments: each is a function that measures something whose true value is known.

mod accounting;
mod arrivals;
mod connection_phases;
mod costs;
mod planted;
mod saturation;
mod streams;

use std::collections::HashMap;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Sample};
use plimsoll_mock::LogRecord;
use plimsoll_runner::Finished;

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
    /// Whether it must be asked for by name: it takes long.
    pub is_on_request: bool,
    procedure: Procedure,
}

/// Every experiment, in the order in which they are carried out: T1 finds the limits that later
/// ones refer to. The missing numbers were of proofs that no host can change, such as merging: they
/// are in the test suite.
pub const EXPERIMENTS: [Experiment; 24] = [
    always("T1", "floor of this host", saturation::t1_null_server),
    always("T2", "known delays", streams::t2_constant_delays),
    always("T3", "known distributions", streams::t3_distributions),
    always("T4", "known stall", planted::t4_stalled_target),
    always("T5", "stalled generator", planted::t5_stalled_generator),
    always("T6", "known rates", arrivals::t6_rates),
    always("T7", "Poisson arrivals", arrivals::t7_poisson),
    always("T8", "ramps and traces", arrivals::t8_shapes),
    always("T9", "conservation", accounting::t9_conservation),
    always("T10", "known errors", accounting::t10_error_mix),
    always("T11", "known stream", streams::t11_known_stream),
    always("T12", "many streams at once", streams::t12_many_streams),
    always("T13", "Little's law", accounting::t13_steady_state),
    always("T14", "known overhead", costs::t14_planted_overhead),
    always("T15", "saturation", saturation::t15_throttled),
    always("T16", "connection phases", connection_phases::t16_connection_phases),
    Experiment { is_on_request: true, ..always("T18", "soak", saturation::t18_memory) },
    always("T22", "stop after a warm-up", planted::t22_after_warm_up),
    always("T23", "overload behind a limit", planted::t23_behind_a_limit),
    always("T24", "stopped closed loop", planted::t24_closed_loop),
    always("T25", "no kernel time stamps", planted::t25_without_stamps),
    always("T26", "hanging requests", planted::t26_hanging),
    always("T28", "target that merges", streams::t28_merged_by_the_target),
    always("T29", "costs of this host", costs::t29_costs),
];

const fn always(id: &'static str, title: &'static str, procedure: Procedure) -> Experiment {
    Experiment { id, title, is_on_request: false, procedure }
}

impl Experiment {
    /// The experiment of this id, in capitals or not.
    pub fn named(id: &str) -> Option<Self> {
        EXPERIMENTS.into_iter().find(|experiment| experiment.id.eq_ignore_ascii_case(id))
    }

    /// Runs the experiment. If it cannot run, the finding has the reason.
    pub fn run(self, runner: &Runner) -> Finding {
        let clock = MonotonicClock::start();
        let (result, observations) = judge((self.procedure)(runner));
        Finding {
            experiment: self.id.to_owned(),
            title: self.title.to_owned(),
            result,
            checks: observations.checks,
            notes: observations.notes,
            seconds: clock.now().since(Moment::EPOCH).as_secs_f64(),
        }
    }
}

fn judge(observed: Result<Observations, CalibrateError>) -> (ExperimentResult, Observations) {
    match observed {
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

/// Requests for the mock provider, as small as they can be: for experiments about time.
const SMALL: &str = "content: {mode: sized, approx_input_tokens: 16}\nmax_tokens: 1\n";

/// Requests for servers that read only the number in the path.
const NUMBERED: &str = "protocol: http\nhttp: {path: '/{{seq}}'}\n";

// Joins the mock provider's log of requests with the samples of a run, by request id.

/// The sample of each LLM request with the mock's record of it.
pub(crate) fn join<'r, 'l>(
    run: &'r Finished,
    log: &'l [LogRecord],
) -> Vec<(&'r Sample, &'l LogRecord)> {
    let by_id: HashMap<&str, &LogRecord> =
        log.iter().filter_map(|record| Some((record.request_id.as_deref()?, record))).collect();
    run.samples
        .iter()
        .filter_map(|sample| {
            let conversation = plimsoll_workload::conversation_id(run.ids, sample.conversation);
            let id = format!("{}-{}", conversation.as_str(), sample.turn);
            Some((sample, *by_id.get(id.as_str())?))
        })
        .collect()
}

/// The time that the mock took for a request, in microseconds: from its arrival, by the kernel's
/// timestamp, to the return of the `write` of the last byte of the response.
pub(crate) fn true_service_us(record: &LogRecord) -> Option<f64> {
    let last = record.chunks.last()?.written;
    Some(last.checked_sub(record.arrived)? as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order_and_found_in_any_case() {
        let number = |experiment: &Experiment| experiment.id[1..].parse::<u8>().unwrap();
        assert!(EXPERIMENTS.is_sorted_by(|one, next| number(one) < number(next)));
        assert_eq!(Experiment::named("t18").unwrap().title, "soak");
        assert!(Experiment::named("t18").unwrap().is_on_request);
        assert!(Experiment::named("T20").is_none());
    }

    #[test]
    fn no_figure_is_never_a_pass() {
        let figures = |kept: &[bool]| {
            let checks: Vec<_> = kept.iter().map(|&kept| Check::holds("x", kept)).collect();
            Ok(checks.into())
        };
        let missing = || Err(CalibrateError::Missing("a tool".to_owned()));
        let not_run = |why: &str| ExperimentResult::NotRun(why.to_owned());
        for (observed, expected) in [
            (figures(&[true, true]), ExperimentResult::Pass),
            (figures(&[true, false]), ExperimentResult::Fail),
            (figures(&[]), not_run("nothing was measured")),
            (missing(), not_run("a tool")),
        ] {
            assert_eq!(judge(observed).0, expected);
        }
    }
}
