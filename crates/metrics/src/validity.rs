//! Was the instrument good enough for the run?

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounting::Accounting;
use crate::facts::Ended;
use crate::health::InstrumentHealth;

/// Why a run is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// What is out of bounds.
    pub what: String,
    /// Its measured value.
    pub measured: String,
    /// The bound that it broke.
    pub bound: String,
    /// What to do about it.
    pub mend: String,
}

/// Whether the numbers describe the target, or the instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", content = "reasons", rename_all = "snake_case")]
pub enum Validity {
    /// No bound was broken.
    Valid,
    /// These were.
    Invalid(Vec<Reason>),
}

impl Validity {
    /// Is it valid?
    pub const fn is_valid(&self) -> bool {
        matches!(self, Self::Valid)
    }
}

/// What besides the health the judge looks at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    /// How the run ended.
    pub ended: Ended,
    /// Of the whole run, warm-up included.
    pub accounting: Accounting,
    /// Does any stage follow the open model?
    pub open_model: bool,
    /// Median service time of completed requests, in milliseconds.
    pub service_time_p50_ms: Option<f64>,
}

/// Lateness below this is never held against a run, in milliseconds.
const LAG_FLOOR_MS: f64 = 1.0;
/// Lateness may be this share of the median service time.
const LAG_SHARE: f64 = 0.1;
/// Share of the planned arrivals that must be released in their stage.
const ACHIEVED_SHARE: f64 = 0.99;
/// A worker above this share of its CPU is saturated.
const BUSY_SHARE: f64 = 0.9;

const REPORT_IT: &str = "this is a fault of Plimsoll: report it, with the run's folder";
const MORE_GENERATOR: &str = "give the generator more or idler cores, lower the load, or divide it over several processes with --shard";

/// Judges whether the instrument was good enough. That no request completed is not its fault: the
/// thresholds of such a run are inconclusive instead.
pub fn judge_health(health: &InstrumentHealth, evidence: &Evidence) -> Validity {
    let mut reasons = Vec::new();
    reasons.extend(end(evidence));
    reasons.extend(balance(evidence));
    reasons.extend(sink(health));
    reasons.extend(health.generator_errors.iter().map(|(class, n)| generator_error(class, *n)));
    reasons.extend(lag(health, evidence));
    reasons.extend(arrivals(health));
    reasons.extend(saturation(health));
    if reasons.is_empty() { Validity::Valid } else { Validity::Invalid(reasons) }
}

fn reason(what: &str, measured: String, bound: String, mend: &str) -> Reason {
    Reason { what: what.to_owned(), measured, bound, mend: mend.to_owned() }
}

fn end(evidence: &Evidence) -> Option<Reason> {
    let (measured, mend) = match evidence.ended {
        Ended::Complete | Ended::Interrupted => return None,
        Ended::Aborted => ("aborted", "mend what the notes say, and run again"),
        Ended::Unfinished => ("never finished", "run again; instrument health was not recorded"),
    };
    Some(reason("end of the run", measured.to_owned(), "complete or interrupted".to_owned(), mend))
}

fn balance(evidence: &Evidence) -> Option<Reason> {
    let accounting = evidence.accounting;
    let bound = || "scheduled = sum of all outcomes".to_owned();
    (!accounting.balanced())
        .then(|| reason("accounting", accounting.to_string(), bound(), REPORT_IT))
}

fn sink(health: &InstrumentHealth) -> Option<Reason> {
    let lost = health.sink_overflowed.filter(|&lost| lost > 0)?;
    Some(reason(
        "results.jsonl",
        format!("{lost} rows lost"),
        "none".to_owned(),
        "write to a faster disk (--out), or lower the load",
    ))
}

fn generator_error(class: &str, count: u64) -> Reason {
    let mend = match class {
        "gen_port_exhaustion" => {
            "widen net.ipv4.ip_local_port_range, or let connections be reused: see `plimsoll doctor`"
        }
        "gen_fd_exhaustion" => "raise the limit on open files (ulimit -n): see `plimsoll doctor`",
        "gen_no_buffers" => "give the generator more memory, or lower the load",
        _ => "see `plimsoll doctor`, and the rows of this error class in results.jsonl",
    };
    reason(class, format!("{count} requests"), "none".to_owned(), mend)
}

fn lag(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let measured = health.lateness().filter(|_| evidence.open_model)?.p99;
    let share = evidence.service_time_p50_ms.unwrap_or_default() * LAG_SHARE;
    let bound = share.max(LAG_FLOOR_MS);
    (measured > bound).then(|| {
        let bound = format!(
            "p99 at most {bound:.3} ms (the larger of 1 ms and 10 % of the median service time)"
        );
        reason("lateness of the generator", format!("p99 {measured:.3} ms"), bound, MORE_GENERATOR)
    })
}

fn arrivals(health: &InstrumentHealth) -> Option<Reason> {
    let (planned, achieved) = (health.planned_arrivals?, health.achieved_arrivals?);
    ((achieved as f64) < planned as f64 * ACHIEVED_SHARE).then(|| {
        let measured = format!("{achieved} of {planned} planned");
        reason("arrivals in time", measured, "at least 99 %".to_owned(), MORE_GENERATOR)
    })
}

fn saturation(health: &InstrumentHealth) -> Option<Reason> {
    let busy = health.busiest_worker().filter(|&share| share > BUSY_SHARE)?;
    let late = health.lateness().filter(|lag| lag.p99 > LAG_FLOOR_MS)?;
    Some(reason(
        "saturated worker",
        format!("{:.0} % of its CPU, and p99 {:.3} ms late", busy * 100.0, late.p99),
        "at most 90 % while more than 1 ms late".to_owned(),
        MORE_GENERATOR,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Lag;

    fn late(p99: f64) -> Lag {
        Lag { p50: 0.0, p99, max: p99 }
    }

    fn sound() -> (InstrumentHealth, Evidence) {
        let health = InstrumentHealth {
            planned_arrivals: Some(1_000),
            achieved_arrivals: Some(1_000),
            dispatch_lag_ms: Some(late(0.2)),
            worker_cpu_shares: vec![0.3, 0.95],
            sink_overflowed: Some(0),
            ..InstrumentHealth::default()
        };
        let accounting = Accounting { scheduled: 9, completed: 9, ..Accounting::default() };
        let service_time_p50_ms = Some(20.0);
        (
            health,
            Evidence { ended: Ended::Complete, accounting, open_model: true, service_time_p50_ms },
        )
    }

    fn whats(change: impl FnOnce(&mut InstrumentHealth, &mut Evidence)) -> Vec<String> {
        let (mut health, mut evidence) = sound();
        change(&mut health, &mut evidence);
        match judge_health(&health, &evidence) {
            Validity::Valid => Vec::new(),
            Validity::Invalid(reasons) => reasons.into_iter().map(|reason| reason.what).collect(),
        }
    }

    #[test]
    fn a_sound_run_is_valid_and_unknown_health_is_not_held_against_it() {
        assert!(whats(|_, _| {}).is_empty());
        assert!(whats(|health, _| *health = InstrumentHealth::default()).is_empty());
        assert!(whats(|_, evidence| evidence.ended = Ended::Interrupted).is_empty());
    }

    #[test]
    fn each_broken_bound_is_named() {
        assert_eq!(whats(|_, e| e.accounting.scheduled = 10), ["accounting"]);
        assert_eq!(whats(|_, e| e.ended = Ended::Unfinished), ["end of the run"]);
        assert_eq!(whats(|h, _| h.sink_overflowed = Some(1)), ["results.jsonl"]);
        assert_eq!(whats(|h, _| h.achieved_arrivals = Some(989)), ["arrivals in time"]);
        assert_eq!(
            whats(|h, _| h.generator_errors.extend([("gen_fd_exhaustion".to_owned(), 3)])),
            ["gen_fd_exhaustion"]
        );
        assert_eq!(
            whats(|h, _| h.dispatch_lag_ms = Some(late(2.1))),
            ["lateness of the generator", "saturated worker"]
        );
    }

    /// What is wrong with a run that was this late on half-idle workers.
    fn whats_late(p99: f64, change: impl FnOnce(&mut Evidence)) -> Vec<String> {
        whats(|health, evidence| {
            health.dispatch_lag_ms = Some(late(p99));
            health.worker_cpu_shares = vec![0.5];
            change(evidence);
        })
    }

    #[test]
    fn lateness_is_measured_against_the_service_time_and_only_in_the_open_model() {
        assert!(whats_late(1.9, |_| {}).is_empty());
        assert_eq!(whats_late(2.1, |_| {}), ["lateness of the generator"]);
        assert!(whats_late(2.1, |evidence| evidence.open_model = false).is_empty());
        assert!(whats_late(0.9, |evidence| evidence.service_time_p50_ms = None).is_empty());
        assert!(!whats_late(1.1, |evidence| evidence.service_time_p50_ms = None).is_empty());
    }

    #[test]
    fn waiting_for_a_free_place_is_not_the_generators_lateness() {
        let queued = |health: &mut InstrumentHealth| {
            health.dispatch_lag_ms = Some(late(5_000.0));
            health.pacing_lag_ms = Some(late(0.1));
        };
        assert!(whats(|health, _| queued(health)).is_empty());
    }
}
