//! Probes of a search for the knee: runs of the engine at one load each.

use std::io;
use std::sync::{Arc, Mutex};

use plimsoll_engine::{Control, SampleBatch, SampleSink};
use plimsoll_knee::{Load, Measured, Objective, Planned, ProbeFigures, ProbeRequest};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, Outcome, Sample, Side};
use plimsoll_metrics::{Group, Metric, MetricsError, QUANTILES};
use plimsoll_plan::Plan;
use plimsoll_schedule::{Load as StageLoad, StageSpec, Stages};
use plimsoll_stats::descriptive::quantile;
use serde::{Deserialize, Serialize};

use crate::error::RunnerError;
use crate::runner::Runner;
use crate::time::sleep;

/// Times that are kept for the percentiles of a probe.
const MOST_TIMES: usize = 1 << 20;

/// Why a probe could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The load cannot run.
    #[error(transparent)]
    Run(#[from] RunnerError),
    /// Its figures cannot be summed up.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// No answer has any of the times of the objective.
    #[error("no good answer has a time that the objective `{0}` bounds; is it a stream?")]
    Objective(String),
}

/// Settings shared by all probes of a search.
#[derive(Debug)]
pub struct Prober<'p> {
    /// The plan, whose stages are replaced.
    pub plan: &'p Plan,
    /// The objective of a request.
    pub objective: &'p Objective,
    /// Unit of the load.
    pub load: Load,
    /// The user's control: it ends the current probe.
    pub control: &'p Control,
}

impl Prober<'_> {
    /// Makes a probe. It ends early once it has plainly missed, and rests afterwards, so that the
    /// next one finds no queue of this one.
    ///
    /// # Errors
    /// The engine cannot run the load, or the objective bounds no metric of the answers.
    pub fn probe(&self, planned: Planned) -> Result<Measured, ProbeError> {
        let clock = MonotonicClock::start();
        let (kept, own) = (Counted::default(), Control::new());
        let sink = Box::new(Collector { counted: kept.clone(), objective: self.objective.clone() });
        let runner = Runner::new(self.at(planned))?.samples_to(sink);
        let mut has_ended_early = false;
        let finished = runner.run(&own, &mut |_| {
            has_ended_early |= kept.lock().certain_misses > planned.most_misses;
            if has_ended_early || self.control.is_interrupted() {
                own.interrupt();
            }
        })?;
        let mut counted = std::mem::take(&mut *kept.lock());
        if has_ended_early {
            // The interrupt cut them off.
            let is_cut_off =
                |of: &ProbeRequest| matches!(of.outcome, Outcome::InFlight | Outcome::NeverSent);
            counted.done.retain(|request| !is_cut_off(request));
        }
        if counted.good > 0 && !counted.applies {
            return Err(ProbeError::Objective(self.objective.to_string()));
        }
        let summary = finished.summary(&[])?;
        let total = &summary.results.total;
        counted.doubt_unsent(total.counters.arrivals_late_by_generator);
        let answered_per_s = counted.answered_per_s();
        let hangs = finished.result.stopped.is_some();
        let is_open = counted.done.iter().any(|one| one.outcome == Outcome::InFlight);
        let measured = Measured::from_requests(std::mem::take(&mut counted.done), hangs);
        let seconds = if has_ended_early { measured.seconds } else { planned.seconds };
        let all = measured.counts();
        let mut figures = counted.figures(self.objective, seconds);
        let (per_s, most) = match self.load {
            // A probe of some seconds has up to one request more than its rate.
            Load::RequestsPerSecond => (planned.load / all.all.max(1) as f64, f64::INFINITY),
            // Requests that end after the probe count whole.
            Load::VirtualUsers => (1.0 / seconds, planned.load),
        };
        figures.goodput_per_s = Some((all.all - all.missed) as f64 * per_s);
        figures.in_flight = figures.in_flight.filter(|_| !is_open).map(|mean| mean.min(most));
        add_summarised(&mut figures, self.objective, total);
        if has_ended_early {
            // Lower than both the target's capacity and the planned rate.
            (figures.throughput_per_s, figures.tokens_per_s) = (None, None);
        }
        // Queues are empty after the slowest answers, twice.
        let rest = (2.0 * slow_ms(total) / 1e3).clamp(1.0, 10.0);
        if !self.control.is_interrupted() {
            sleep(Nanos::from_secs_f64(rest));
        }
        Ok(Measured {
            has_ended_early,
            seconds,
            took_s: clock.now().since(Moment::EPOCH).as_secs_f64(),
            answer_s: counted.answer_s(),
            answered_per_s,
            figures,
            ..measured
        })
    }

    fn at(&self, planned: Planned) -> Plan {
        let load = match self.load {
            Load::RequestsPerSecond => StageLoad::Open { from: planned.load, to: planned.load },
            #[expect(clippy::cast_possible_truncation, reason = "whole")]
            Load::VirtualUsers => {
                let users = planned.load as u32;
                StageLoad::Closed { from: users, to: users }
            }
        };
        let measured = Nanos::from_secs_f64(planned.seconds);
        let warmup = Nanos::from_secs_f64(planned.warmup_s);
        let warmup = StageSpec { load, duration: Some(warmup), warmup: true };
        let measured = StageSpec { load, duration: Some(measured), warmup: false };
        Plan { stages: Stages(vec![warmup, measured]), ..self.plan.clone() }
    }
}

/// Adds figures from the run's own summary.
fn add_summarised(figures: &mut ProbeFigures, objective: &Objective, total: &Group) {
    let [p50, _, _, p99, _] = &QUANTILES;
    let of = |metric: Metric, quantile| {
        total.distribution(metric).and_then(|times| times.raw_quantile(quantile))
    };
    if let Some(metric) = bounded(objective) {
        (figures.p50_ms, figures.p99_ms) = (of(metric, p50), of(metric, p99));
    }
    figures.throughput_per_s = total.named_rate("throughput").map(|rate| rate.value);
    figures.response_time_p50_ms = of(Metric::ResponseTime, p50);
    figures.response_time_p99_ms = of(Metric::ResponseTime, p99);
    (figures.ttft_p50_ms, figures.ttft_p99_ms) = (of(Metric::Ttft, p50), of(Metric::Ttft, p99));
    figures.tokens_per_s = total.token_rate().map(|tokens| tokens.figure.value);
    let tpot_ms = of(Metric::Tpot, p50).filter(|tpot| *tpot > 0.0);
    figures.tokens_per_s_per_user = tpot_ms.map(|tpot| 1e3 / tpot);
}

/// The metric of the objective's first time, if reports have it.
fn bounded(objective: &Objective) -> Option<Metric> {
    Metric::ALL.into_iter().find(|metric| metric.name() == objective.first_time())
}

/// A response time that hardly any is above, in milliseconds, whether or not it may be used.
fn slow_ms(total: &Group) -> f64 {
    let [_, _, _, p99, _] = &QUANTILES;
    let times = total.distribution(Metric::ResponseTime);
    times
        .map_or(0.0, |times| times.raw_quantile(p99).unwrap_or_else(|| times.raw_mean_min_max()[2]))
}

/// The requests of a probe so far.
#[derive(Debug, Default)]
struct Requests {
    done: Vec<ProbeRequest>,
    certain_misses: u64,
    times_ms: Vec<f64>,
    /// Good answers, including the warm-up, and the sum of their service times.
    good: u64,
    answering: Nanos,
    answered: Vec<Moment>,
    applies: bool,
    in_service: Nanos,
}

impl Requests {
    fn add(&mut self, sample: &Sample, objective: &Objective) {
        let service = sample.timeline.service_time().unwrap_or_default();
        if sample.outcome == Outcome::Completed {
            self.good += 1;
            self.answering += service;
            self.answered.extend(sample.timeline.finished);
            self.applies |= objective.applies_to(sample);
        }
        if sample.warmup {
            return;
        }
        let outcome = sample.outcome;
        let is_own_error =
            matches!(outcome, Outcome::Failed(class) if class.side() == Side::Generator);
        let missed = !objective.is_kept_by(sample);
        let doubtful = missed && (is_own_error || objective.may_be_kept_by(sample));
        let intended = sample.timeline.intended;
        self.done.push(ProbeRequest { intended, outcome, missed, doubtful });
        self.certain_misses += u64::from(missed && !doubtful);
        self.in_service += service;
        if self.times_ms.len() < MOST_TIMES {
            self.times_ms.extend(objective.first_time_ms(sample));
        }
    }

    /// Counts requests that were never sent because the generator was late.
    fn doubt_unsent(&mut self, late: u64) {
        let late = usize::try_from(late).unwrap_or(usize::MAX);
        let unsent = self
            .done
            .iter_mut()
            .filter(|request: &&mut ProbeRequest| request.outcome == Outcome::NeverSent)
            .take(late);
        unsent.for_each(|request| request.doubtful = request.missed);
    }

    /// Mean service time of the good answers, in seconds.
    fn answer_s(&self) -> Option<f64> {
        (self.good > 0).then(|| self.answering.as_secs_f64() / self.good as f64)
    }

    /// Good answers per second between the first and the last intended start.
    fn answered_per_s(&self) -> Option<f64> {
        let intended: Vec<_> = self.done.iter().map(|request| request.intended).collect();
        let (first, last) = (*intended.iter().min()?, *intended.iter().max()?);
        let count = self.answered.iter().filter(|at| (first..=last).contains(*at)).count();
        let seconds = last.since(first).as_secs_f64();
        (seconds > 0.0).then(|| count as f64 / seconds)
    }

    /// Figures that only single requests show.
    fn figures(&self, objective: &Objective, seconds: f64) -> ProbeFigures {
        let mut figures = ProbeFigures {
            in_flight: Some(self.in_service.as_secs_f64() / seconds),
            ..ProbeFigures::default()
        };
        if bounded(objective).is_none() && !self.times_ms.is_empty() {
            let mut times = self.times_ms.clone();
            times.sort_by(f64::total_cmp);
            [figures.p50_ms, figures.p99_ms] = [0.5, 0.99].map(|q| Some(quantile(&times, q)));
        }
        figures
    }
}

#[derive(Clone, Debug, Default)]
struct Counted(Arc<Mutex<Requests>>);

impl Counted {
    fn lock(&self) -> std::sync::MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Counts the samples of a probe.
struct Collector {
    counted: Counted,
    objective: Objective,
}

impl SampleSink for Collector {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let mut counted = self.counted.lock();
        batch.samples.iter().for_each(|sample| counted.add(sample, &self.objective));
        Ok(())
    }
}

// Limits on measured figures.

/// A limit on a measured figure. A figure that is not a number keeps no bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// It must not differ from the truth by more than the tolerance.
    Within {
        /// The true value.
        truth: f64,
        /// The largest difference.
        tolerance: f64,
    },
    /// It must be smaller.
    Below(f64),
    /// It must not be larger.
    AtMost(f64),
    /// It must not be smaller.
    AtLeast(f64),
}

impl Bound {
    /// Whether a figure keeps the bound.
    pub fn holds(&self, measured: f64) -> bool {
        match *self {
            Self::Within { truth, tolerance } => (measured - truth).abs() <= tolerance,
            Self::Below(limit) => measured < limit,
            Self::AtMost(limit) => measured <= limit,
            Self::AtLeast(limit) => measured >= limit,
        }
    }

    /// The share of the bound that a figure uses up, to find the figure nearest to breaking: above
    /// 1 for a broken bound, and infinite for a NaN.
    pub fn usage(&self, measured: f64) -> f64 {
        let (part, whole) = match *self {
            Self::Within { truth, tolerance } => ((measured - truth).abs(), tolerance),
            Self::Below(limit) | Self::AtMost(limit) => (measured, limit),
            Self::AtLeast(limit) => (limit, measured),
        };
        let usage = if whole > 0.0 { part / whole } else { 0.0 };
        match (self.holds(measured), measured.is_nan()) {
            (_, true) => f64::INFINITY,
            (true, _) => usage.min(1.0),
            (false, _) if whole > 0.0 => usage,
            // A bound without width, such as an exact count, is only just broken.
            (false, _) => 1.0 + f64::EPSILON,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{ErrorClass, Timeline};

    /// A request that was due at 0 and took `took` milliseconds, of which `own` are our own.
    fn sample(outcome: Outcome, took: u64, own: u64) -> Sample {
        let mut timeline = Timeline::intended(Moment::EPOCH);
        timeline.dispatched = Some(Moment::EPOCH + Nanos::from_millis(own));
        timeline.finished = Some(Moment::EPOCH + Nanos::from_millis(took));
        let mut sample = Sample { outcome, timeline, ..Sample::unsent(Moment::EPOCH) };
        sample.generator.dispatch = Nanos::from_millis(own);
        sample
    }

    #[test]
    fn misses_of_the_generator_are_doubtful_and_all_others_are_certain() {
        let objective: Objective = "response_time<100ms : 99%".parse().unwrap();
        let unsent = Sample::unsent(Moment::EPOCH);
        for (sample, missed, doubtful) in [
            (sample(Outcome::Completed, 90, 0), false, false),
            (sample(Outcome::Completed, 110, 0), true, false),
            (sample(Outcome::Completed, 110, 20), true, true),
            (sample(Outcome::Completed, 150, 20), true, false),
            (sample(Outcome::Failed(ErrorClass::ConnectRefused), 1, 0), true, false),
            (sample(Outcome::Failed(ErrorClass::PortExhaustion), 1, 0), true, true),
            (sample(Outcome::Rejected(429), 1, 0), true, false),
            (unsent, true, false),
        ] {
            let mut requests = Requests::default();
            requests.add(&sample, &objective);
            let request = requests.done[0];
            assert_eq!((request.missed, request.doubtful), (missed, doubtful), "{sample:?}");
            assert_eq!(requests.certain_misses, u64::from(missed && !doubtful));
        }
        let mut requests = Requests::default();
        (0..5).for_each(|_| requests.add(&unsent, &objective));
        requests.doubt_unsent(2);
        assert_eq!(requests.done.iter().filter(|request| request.doubtful).count(), 2);
    }

    #[test]
    fn answers_of_the_warm_up_have_a_length_and_do_not_count() {
        let objective: Objective = "longest_gap<1s : 99%".parse().unwrap();
        let mut requests = Requests::default();
        requests.add(&Sample { warmup: true, ..sample(Outcome::Completed, 300, 0) }, &objective);
        requests.add(&sample(Outcome::Completed, 100, 0), &objective);
        assert_eq!(requests.done.len(), 1);
        assert!((requests.answer_s().unwrap() - 0.2).abs() < 1e-9);
        let figures = requests.figures(&objective, 2.0);
        assert_eq!(figures.in_flight, Some(0.05));
    }
}

#[cfg(test)]
mod bound_tests {
    use super::*;
    use std::cmp::Ordering;

    const WITHIN: Bound = Bound::Within { truth: 100.0, tolerance: 10.0 };

    #[test]
    fn each_bound_holds_or_not_at_its_edge() {
        for (bound, below, on, above) in [
            (Bound::Below(2.0), true, false, false),
            (Bound::AtMost(2.0), true, true, false),
            (Bound::AtLeast(2.0), false, true, true),
            (Bound::Within { truth: 2.0, tolerance: 0.0 }, false, true, false),
        ] {
            assert_eq!([1.0, 2.0, 3.0].map(|value| bound.holds(value)), [below, on, above]);
            assert!(!bound.holds(f64::NAN), "{bound:?}");
        }
        assert!(WITHIN.holds(90.0) && WITHIN.holds(110.0) && !WITHIN.holds(110.1));
    }

    #[test]
    fn usage_ranks_figures_by_how_near_they_are_to_breaking() {
        for (bound, measured, usage) in [
            (WITHIN, 105.0, 0.5),
            (WITHIN, 90.0, 1.0),
            (WITHIN, 130.0, 3.0),
            (Bound::AtMost(4.0), 1.0, 0.25),
            (Bound::AtLeast(4.0), 8.0, 0.5),
            (Bound::AtLeast(4.0), 2.0, 2.0),
            (Bound::AtMost(0.0), 0.0, 0.0),
            (Bound::AtMost(0.0), 1.0, 1.0 + f64::EPSILON),
            (WITHIN, f64::NAN, f64::INFINITY),
        ] {
            assert_eq!(bound.usage(measured).total_cmp(&usage), Ordering::Equal, "{bound:?}");
        }
    }
}
