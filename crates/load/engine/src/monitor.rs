//! Follows a run from outside of its workers: progress, totals, and the processes that are watched.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, StageId};
use plimsoll_metrics::{Counters, GroupStats, Snapshot, TimeSeries};

use crate::control::Control;
use crate::health::process::{Processes, WatchedProcess};
use crate::health::{HostLog, Peaks};
use crate::pairs::BlockOutput;
use crate::prepared::PreparedRun;
use crate::progress::Progress;
use crate::target_watch::{SuccessWatch, TargetWatch, patience, silent_since};
use crate::ticker::Interval;

/// Time between checks whether the processes are due to be read.
const POLL: Duration = Duration::from_millis(20);

/// Requests that must have ended before their share of errors can end the run.
const ENOUGH_TO_GIVE_UP: u64 = 100;

/// Merges the workers' counts during the run.
#[derive(Debug)]
pub(crate) struct RunMonitor<'r> {
    run: &'r PreparedRun,
    control: &'r Control,
    clock: MonotonicClock,
    origin: Moment,
    pub(crate) total: Snapshot,
    pub(crate) series: TimeSeries,
    so_far: GroupStats,
    pub(crate) peaks: Peaks,
    pub(crate) processes: Processes,
    pub(crate) host: HostLog,
    pub(crate) blocks: BlockOutput,
    failing: TargetWatch,
    /// By target: how long it may be silent.
    patience: Vec<Nanos>,
    /// State of a run that ends when no request succeeds any more.
    pub(crate) success: Option<SuccessWatch>,
    /// Why the run was stopped, if nothing succeeded any more.
    pub(crate) stopped: Option<String>,
    /// By target: when it was taken out of the comparison.
    pub(crate) taken_out: Vec<Option<Nanos>>,
    /// When the last worker was done.
    pub(crate) ended: Moment,
}

impl<'r> RunMonitor<'r> {
    /// A monitor of a run that starts at `origin`.
    pub(crate) fn new(
        run: &'r PreparedRun,
        clock: MonotonicClock,
        origin: Moment,
        watched: &[WatchedProcess],
        at_target: Option<u32>,
        control: &'r Control,
    ) -> Self {
        let targets = run.plan.targets.len();
        let stage_ends = run.schedule.stages().iter().map(|stage| origin + stage.end);
        let due = [origin].into_iter().chain(stage_ends);
        Self {
            run,
            control,
            clock,
            origin,
            total: Snapshot::new(),
            series: TimeSeries::new(origin),
            so_far: GroupStats::default(),
            peaks: Peaks::default(),
            processes: Processes::new(watched, at_target, due),
            host: HostLog::default(),
            blocks: BlockOutput::default(),
            failing: TargetWatch::new(targets),
            patience: patience(run),
            success: None,
            stopped: None,
            taken_out: vec![None; targets],
            ended: origin,
        }
    }

    /// Merges the workers' reports, and calls `observe` whenever each has reported once, until all
    /// are done.
    pub(crate) fn follow<T>(
        &mut self,
        intervals: &Receiver<Interval>,
        workers: &[JoinHandle<T>],
        observe: &mut dyn FnMut(&Progress<'_>),
    ) {
        let mut last = self.origin;
        let mut round = Vec::with_capacity(workers.len());
        loop {
            let now = self.clock.now();
            self.processes.read_if_due(now);
            self.host.read_if_due(now);
            match intervals.recv_timeout(POLL) {
                Ok(mut interval) => {
                    self.blocks.write(&std::mem::take(&mut interval.blocks));
                    self.series.add(interval.at, &interval.snapshot);
                    round.push(interval);
                }
                Err(RecvTimeoutError::Timeout) if workers.iter().all(JoinHandle::is_finished) => {
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if round.len() >= workers.len() {
                let now = round.iter().map(|interval| interval.at).max().unwrap_or(last);
                self.report(std::mem::take(&mut round), now.since(last), now, observe);
                last = now;
            }
        }
        self.ended = self.clock.now();
        self.series.end(self.ended);
        self.total.append(merged(round));
    }

    fn report(
        &mut self,
        round: Vec<Interval>,
        length: Nanos,
        now: Moment,
        observe: &mut dyn FnMut(&Progress<'_>),
    ) {
        let in_flight = round.iter().map(|interval| interval.in_flight).sum();
        let oldest = round.iter().flat_map(|interval| &interval.oldest).flatten().min().copied();
        let silent = silent_since(&round, self.origin, self.patience.len());
        let counted = merged(round);
        let interval = counted.total(|_| true);
        self.so_far.merge(&interval);
        let elapsed = now.since(self.origin);
        let patience = self.patience.iter();
        let hangs = silent.iter().zip(patience).map(|(since, patience)| {
            since.is_some_and(|since| elapsed.saturating_sub(since) >= *patience)
        });
        let hangs: Vec<bool> = hangs.collect();
        if self.run.pairs.is_some() {
            self.take_out_failing(&counted, elapsed, &hangs);
        }
        if gives_up(self.run.plan.limits.abort_on_error_rate, self.so_far.counters()) {
            self.control.give_up();
        }
        let (now, settled) = (elapsed, oldest.unwrap_or(elapsed));
        let last_success = self
            .success
            .as_mut()
            .and_then(|watch| watch.gave_up(now, settled, hangs[0], interval.counters()));
        if let (Some(last), None) = (last_success, self.control.stop()) {
            let (last, now) = (last.as_secs_f64(), now.as_secs_f64());
            self.stopped = Some(format!(
                "no request succeeded after {last:.0} s, until {now:.0} s (use --allow-failures to continue)"
            ));
            self.control.give_up();
        }
        self.peaks.update();
        let schedule = &self.run.schedule;
        let last =
            StageId(u16::try_from(schedule.stages().len().saturating_sub(1)).unwrap_or(u16::MAX));
        observe(&Progress {
            origin: self.origin,
            elapsed,
            duration: schedule.duration(),
            stage: schedule.stage_at(elapsed).unwrap_or(last),
            interval: &interval,
            interval_length: length,
            total: &self.so_far,
            in_flight,
            cells: &counted,
            before: &self.total,
            series: &self.series,
            processes: self.processes.now(),
            taken_out: &self.taken_out,
        });
        self.total.append(counted);
    }

    /// Takes targets out of the comparison that have been failing for long.
    fn take_out_failing(&mut self, counted: &Snapshot, elapsed: Nanos, hangs: &[bool]) {
        for (target, out) in self.taken_out.iter_mut().enumerate() {
            let of_target = counted.total(|key| key.target.index() == target);
            let counters = of_target.counters();
            if out.is_none()
                && (self.failing.is_failing(target, counters.answered(), counters.unexpected)
                    || hangs[target])
            {
                *out = Some(elapsed);
                self.run.take_out(target, elapsed);
            }
        }
        if self.taken_out.iter().all(Option::is_some) {
            self.control.give_up();
        }
    }
}

/// Whether so many of the requests that ended got no good answer that the run shall end.
fn gives_up(limit: Option<f64>, counters: &Counters) -> bool {
    let ended = counters.answered();
    limit.is_some_and(|limit| {
        ended >= ENOUGH_TO_GIVE_UP && counters.unexpected as f64 > limit * ended as f64
    })
}

/// The counts of several workers in the same interval.
fn merged(intervals: Vec<Interval>) -> Snapshot {
    let mut merged = Snapshot::new();
    for interval in intervals {
        merged.merge(interval.snapshot);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_given_up_when_enough_requests_have_ended_and_too_many_of_them_badly() {
        let counters = |completed, rejected, unexpected| Counters {
            completed,
            rejected,
            unexpected,
            ..Counters::default()
        };
        for (limit, counted, given_up) in [
            (Some(0.5), counters(0, 99, 99), false),
            (Some(0.5), counters(0, 100, 100), true),
            (Some(0.5), counters(50, 50, 50), false),
            (Some(0.5), counters(49, 51, 51), true),
            (Some(0.0), counters(999, 1, 1), true),
            (Some(0.0), counters(1_000, 0, 0), false),
            // Refusals that the scenario expects.
            (Some(0.5), counters(0, 100, 0), false),
            (None, counters(0, 100, 100), false),
        ] {
            assert_eq!(gives_up(limit, &counted), given_up, "{limit:?} {counted:?}");
        }
    }
}
