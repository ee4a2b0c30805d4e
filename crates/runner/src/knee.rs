//! Probes of a search for the knee: runs of the engine at one load each.

use std::io;
use std::sync::{Arc, Mutex};

use plimsoll_engine::{Control, Progress, SampleBatch, SampleSink};
use plimsoll_knee::{Counts, Load, Measured, Objective, Planned, ProbeFigures, Search};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, Outcome};
use plimsoll_metrics::{Group, Metric, MetricsError, QUANTILES};
use plimsoll_plan::Plan;
use plimsoll_schedule::{Load as StageLoad, StageSpec, Stages};

use crate::error::RunnerError;
use crate::runner::Runner;
use crate::time::sleep;
use crate::watcher::RunWatcher;
use plimsoll_stats::descriptive::quantile;

/// Warm-up of a probe, which is not counted.
const WARMUP: Nanos = Nanos::from_secs(1);
/// Length of a batch of counts.
const BATCH: Nanos = Nanos::from_millis(250);
/// Times that are kept for the percentiles of a probe.
const MOST_TIMES: usize = 1 << 20;

/// Why a probe could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The load cannot be carried out.
    #[error(transparent)]
    Run(#[from] RunnerError),
    /// Its figures cannot be summed up.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// No answer has any of the times of the objective.
    #[error("no good answer has a time that the objective `{0}` bounds; is it a stream?")]
    Objective(String),
}

/// What all probes of a search have in common.
#[derive(Debug)]
pub struct Prober<'p> {
    /// The plan, whose stages are replaced.
    pub plan: &'p Plan,
    /// The objective of a request.
    pub objective: &'p Objective,
    /// What the load is counted in.
    pub load: Load,
    /// The user's control: it ends the probe that goes on.
    pub control: &'p Control,
}

impl Prober<'_> {
    /// Makes a probe. It ends early where it may and has missed, and rests afterwards, so that the
    /// next one finds no queue of this one. `watcher` sees its run.
    ///
    /// # Errors
    /// The engine cannot carry out the load, or the objective bounds nothing that answers have.
    pub fn probe(
        &self,
        planned: Planned,
        search: Option<&Search>,
        watcher: &mut dyn RunWatcher,
    ) -> Result<Measured, ProbeError> {
        let clock = MonotonicClock::start();
        let (kept, own) = (Counted::default(), Control::new());
        let sink = Box::new(Collector { counted: kept.clone(), objective: self.objective.clone() });
        let runner = Runner::new(self.at(planned))?.samples_to(sink);
        watcher.begin(runner.prepared().metadata());
        let mut ended = None;
        let finished = runner.run(&own, &mut |progress: &Progress<'_>| {
            watcher.interval(progress);
            if self.control.is_interrupted() {
                own.interrupt();
            }
            if let Some(search) = search
                && planned.may_end_early()
                && ended.is_none()
                && search.is_missed(&kept.lock().batches())
            {
                ended = Some("the objective was missed".to_owned());
                own.interrupt();
            }
        })?;
        let mut counted = kept.lock();
        if ended.is_some() {
            // They were cut off by us.
            counted.due.retain(|request| !request.cut_off);
        }
        if counted.good > 0 && !counted.applies {
            return Err(ProbeError::Objective(self.objective.to_string()));
        }
        let invalid = self.why_invalid(planned, counted.due.len()).filter(|_| ended.is_none());
        let seconds = if ended.is_some() { counted.span_s() } else { planned.seconds };
        let summary = finished.summary(&[])?;
        watcher.end(&finished.result.snapshot, &summary);
        let total = &summary.results.total;
        let mut figures = counted.figures(self.objective, seconds);
        add_summarised(&mut figures, self.objective, total);
        if ended.is_some() {
            // It is less than would have been carried, and than was asked for.
            (figures.throughput_per_s, figures.tokens_per_s) = (None, None);
        }
        // Queues are empty after the slowest answers, twice.
        let rest = (2.0 * slow_ms(total) / 1e3).clamp(1.0, 10.0);
        if !self.control.is_interrupted() {
            sleep(Nanos::from_secs_f64(rest));
        }
        Ok(Measured {
            batches: counted.batches(),
            invalid,
            ended,
            seconds,
            took_s: clock.now().since(Moment::EPOCH).as_secs_f64(),
            figures,
        })
    }

    /// Whether less was due than planned: the generator then made another load.
    fn why_invalid(&self, planned: Planned, due: usize) -> Option<String> {
        const LEAST: f64 = 0.98;
        let wanted = planned.load * planned.seconds;
        let is_less = self.load == Load::RequestsPerSecond && (due as f64) < wanted * LEAST - 3.0;
        (is_less && !self.control.is_interrupted())
            .then(|| format!("the generator made {due} of {wanted:.0} requests"))
    }

    fn at(&self, planned: Planned) -> Plan {
        let load = match self.load {
            Load::RequestsPerSecond => StageLoad::Open { from: planned.load, to: planned.load },
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole")]
            Load::VirtualUsers => {
                let users = planned.load as u32;
                StageLoad::Closed { from: users, to: users }
            }
        };
        let measured = Nanos::from_secs_f64(planned.seconds);
        let warmup = StageSpec { load, duration: Some(WARMUP), warmup: true };
        let measured = StageSpec { load, duration: Some(measured), warmup: false };
        Plan { stages: Stages(vec![warmup, measured]), ..self.plan.clone() }
    }
}

/// Adds what the run's own summary says.
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

/// A request that counts.
#[derive(Clone, Copy, Debug)]
struct Request {
    intended: Moment,
    counts: Counts,
    /// Whether the end of the run cut it off.
    cut_off: bool,
}

/// The requests of a probe so far.
#[derive(Debug, Default)]
struct Requests {
    due: Vec<Request>,
    times_ms: Vec<f64>,
    kept: u64,
    good: u64,
    applies: bool,
    in_service: Nanos,
}

impl Requests {
    /// The first and the last intended start.
    fn ends(&self) -> Option<(Moment, Moment)> {
        let intended = self.due.iter().map(|request| request.intended);
        intended.clone().min().zip(intended.max())
    }

    /// Seconds between the first and the last intended start; not zero.
    fn span_s(&self) -> f64 {
        let span = self.ends().map_or(Nanos::ZERO, |(first, last)| last.since(first));
        span.max(BATCH).as_secs_f64()
    }

    /// Counts by batches of the intended start.
    fn batches(&self) -> Vec<Counts> {
        let Some((first, _)) = self.ends() else { return Vec::new() };
        let mut batches: Vec<Counts> = Vec::new();
        for request in &self.due {
            let index = request.intended.since(first).as_u64() / BATCH.as_u64();
            let Ok(index) = usize::try_from(index) else { continue };
            if batches.len() <= index {
                batches.resize(index + 1, Counts::default());
            }
            batches[index].add(request.counts);
        }
        batches
    }

    /// What only single requests show.
    fn figures(&self, objective: &Objective, seconds: f64) -> ProbeFigures {
        if bounded(objective).is_some() {
            return self.rates(seconds);
        }
        let mut times = self.times_ms.clone();
        times.sort_by(f64::total_cmp);
        let [p50_ms, p99_ms] =
            [0.5, 0.99].map(|q| (!times.is_empty()).then(|| quantile(&times, q)));
        ProbeFigures { p50_ms, p99_ms, ..self.rates(seconds) }
    }

    fn rates(&self, seconds: f64) -> ProbeFigures {
        ProbeFigures {
            offered_per_s: Some(self.due.len() as f64 / seconds),
            goodput_per_s: Some(self.kept as f64 / seconds),
            in_flight: Some(self.in_service.as_secs_f64() / seconds),
            ..ProbeFigures::default()
        }
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
        for sample in batch.samples.iter().filter(|sample| !sample.warmup) {
            let kept = self.objective.is_kept_by(sample);
            let doubtful = !kept && self.objective.may_be_kept_by(sample);
            let intended = sample.timeline.intended;
            let cut_off = matches!(sample.outcome, Outcome::InFlight | Outcome::NeverSent);
            let (missed, doubtful) = (u64::from(!kept), u64::from(doubtful));
            let counts = Counts { missed, doubtful, all: 1 };
            counted.due.push(Request { intended, counts, cut_off });
            counted.kept += u64::from(kept);
            counted.in_service += sample.timeline.service_time().unwrap_or_default();
            if sample.outcome == Outcome::Completed {
                counted.good += 1;
                counted.applies |= self.objective.applies_to(sample);
            }
            if counted.times_ms.len() < MOST_TIMES {
                counted.times_ms.extend(self.objective.first_time_ms(sample));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 requests in two seconds, one in four missed, of a probe that was to take longer.
    #[test]
    fn rates_of_a_probe_that_ended_early_are_of_its_own_length() {
        let mut requests = Requests::default();
        for index in 0..=100 {
            let intended = Moment::EPOCH + WARMUP + Nanos::from_millis(20 * index);
            let missed = u64::from(index % 4 == 0);
            let counts = Counts { missed, doubtful: 0, all: 1 };
            requests.due.push(Request { intended, counts, cut_off: false });
            requests.kept += 1 - missed;
        }
        assert!((requests.span_s() - 2.0).abs() < 1e-9);
        let objective = "longest_gap<1s : 99%".parse().unwrap();
        let figures = requests.figures(&objective, requests.span_s());
        let (goodput, offered) = (figures.goodput_per_s.unwrap(), figures.offered_per_s.unwrap());
        assert!((goodput - 37.5).abs() < 1e-9 && (offered - 50.5).abs() < 1e-9, "{figures:?}");
        let batches = requests.batches();
        assert_eq!((batches.len(), batches[0].all, batches[8].all), (9, 13, 1));
        assert_eq!(Counts::sum(batches.into_iter()).missed, 26);
    }
}
