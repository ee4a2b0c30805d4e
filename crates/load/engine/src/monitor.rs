//! Follows a run from outside of its workers: progress, totals, and the processes that are watched.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, StageId};
use plimsoll_metrics::{Counters, GroupStats, Snapshot, TimeSeries};

use crate::control::Control;
use crate::health::process::{Processes, WatchedProcess};
use crate::health::{HostLog, Peaks};
use crate::pairs::BlockOutput;
use crate::prepared::PreparedRun;
use crate::progress::Progress;
use crate::worker_thread::Interval;

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
    /// By target, whether it fails.
    watches: Vec<TargetWatch>,
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
            watches: (0..targets).map(|target| TargetWatch::new(run, target)).collect(),
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
            let living = workers.iter().filter(|worker| !worker.is_finished());
            if is_whole(&round, living.map(|worker| worker.thread().id())) {
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
        let in_flight = in_flight(&round);
        let silent = silent_since(&round, self.origin, self.watches.len());
        let counted = merged(round);
        let interval = counted.total(|_| true);
        self.so_far.merge(&interval);
        let elapsed = now.since(self.origin);
        let watches = self.watches.iter_mut().zip(silent).enumerate();
        let failing: Vec<Option<Nanos>> = watches
            .map(|(index, (watch, silent))| {
                let own = counted.total(|key| key.target.index() == index);
                let hangs = watch.hangs(elapsed, &silent, own.counters());
                let last = watch.gave_up(elapsed, &silent, hangs, own.counters());
                // After the load nothing new can succeed.
                last.filter(|last| *last < self.run.schedule.duration())
            })
            .collect();
        if gives_up(self.run.plan.limits.abort_on_error_rate, self.so_far.counters()) {
            self.control.give_up();
        }
        if self.run.pairs.is_some() {
            self.take_out(&failing, elapsed);
        } else if let Some(last) = failing[0]
            && !self.run.plan.limits.allow_failures
            && self.control.stop().is_none()
        {
            // The finding of the failures has the moment.
            let silence = elapsed.saturating_sub(last).as_secs_f64();
            self.stopped =
                Some(format!("no success for {silence:.0} s (use --allow-failures to continue)"));
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

    /// Takes targets out of the comparison that fail.
    fn take_out(&mut self, failing: &[Option<Nanos>], elapsed: Nanos) {
        for (target, out) in self.taken_out.iter_mut().enumerate() {
            if out.is_none() && failing[target].is_some() {
                *out = Some(elapsed);
                self.run.take_out(target, elapsed);
            }
        }
        if self.taken_out.iter().all(Option::is_some) {
            self.control.give_up();
        }
    }
}

/// Whether each living worker has reported; one that has finished reports no more.
fn is_whole(round: &[Interval], mut living: impl Iterator<Item = ThreadId>) -> bool {
    !round.is_empty() && living.all(|id| round.iter().any(|interval| interval.worker == id))
}

/// The requests in flight by the last report of each worker.
fn in_flight(round: &[Interval]) -> u64 {
    let last = round.iter().map(|interval| (interval.worker, interval.in_flight));
    last.collect::<HashMap<_, _>>().values().sum()
}

/// Whether the share of finished requests without a good response exceeds the limit that ends the
/// run.
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

// Finds targets that no longer give any good answer, so that their run ends, or they are taken out
// of a comparison.

/// Time without a success after which a run ends.
const HOPELESS: Nanos = Nanos::from_secs(10);
/// Requests that must have failed by then.
const HANDFUL: u64 = 5;
/// How long a target may be silent before its first answer. A longer `timeout` than the longest
/// default is a user's word that answers take long.
const FIRST_ANSWER: Nanos = Nanos::from_secs(25);
const USUAL_TIMEOUT: Nanos = Nanos::from_secs(120);
/// Times that a target may be silent for as long as before it spoke last.
const LONGER: u64 = 3;

/// How long a target may be silent before its first answer.
pub(crate) fn first_silence(timeout: Nanos) -> Nanos {
    if timeout > USUAL_TIMEOUT { timeout } else { FIRST_ANSWER.min(timeout) }
}

/// The failures of a target, and its silences with requests in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TargetWatch {
    /// The last success, after the run's start.
    last: Nanos,
    /// All requests that were intended from here until `settled` failed.
    since: Option<Nanos>,
    settled: Nanos,
    failed: u64,
    heard: Nanos,
    silence: Nanos,
    /// The longest silence that ended.
    longest: Nanos,
    has_answered: bool,
    before_the_first: Nanos,
}

impl TargetWatch {
    fn new(run: &PreparedRun, target: usize) -> Self {
        let probe = run.silences.get().and_then(|silences| *silences.get(target)?);
        Self {
            longest: probe.unwrap_or_default(),
            has_answered: probe.is_some(),
            before_the_first: first_silence(run.plan.limits.timeout),
            ..Self::default()
        }
    }

    /// Whether the target hangs.
    fn hangs(&mut self, elapsed: Nanos, silent: &Silent, counters: &Counters) -> bool {
        if silent.heard > self.heard {
            (self.longest, self.heard) = (self.longest.max(self.silence), silent.heard);
        }
        self.has_answered |= counters.answered() > 0;
        self.silence = silent.since.map_or(Nanos::ZERO, |since| elapsed.saturating_sub(since));
        let least = if self.has_answered { HOPELESS } else { self.before_the_first };
        self.silence >= Nanos::new(LONGER * self.longest.as_u64()).max(least)
    }

    /// Counts the requests that ended until `now`. Gives the last success once every request that
    /// was intended in 10 seconds after it has failed: one that is in flight since then may still
    /// succeed, unless the target hangs.
    fn gave_up(
        &mut self,
        now: Nanos,
        silent: &Silent,
        hangs: bool,
        counters: &Counters,
    ) -> Option<Nanos> {
        if counters.answered() > counters.failures() {
            (self.last, self.since, self.failed) = (now, None, 0);
        } else if counters.failures() > 0 {
            self.since.get_or_insert(self.settled);
            self.failed += counters.failures();
        }
        self.settled = silent.oldest.unwrap_or(now);
        let failing = self.since.map_or(Nanos::ZERO, |since| self.settled.saturating_sub(since));
        let fails = failing >= HOPELESS && self.failed >= HANDFUL;
        (hangs || fails).then_some(self.last)
    }
}

/// A target's requests in flight, in times after the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Silent {
    /// Before this time none was intended.
    oldest: Option<Nanos>,
    /// Since when the target has sent nothing.
    since: Option<Nanos>,
    /// The last byte.
    heard: Nanos,
}

fn silent_since(round: &[Interval], origin: Moment, targets: usize) -> Vec<Silent> {
    let by_target = (0..targets).map(|target| {
        let oldest = round.iter().filter_map(|interval| interval.oldest[target]).min();
        let heard = round.iter().map(|interval| interval.heard[target]).max().unwrap_or(origin);
        let heard = heard.since(origin);
        // Known to a second.
        let since = oldest.map(|oldest| (oldest + Nanos::from_secs(1)).max(heard));
        Silent { oldest, since, heard }
    });
    by_target.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two reports of the last worker were added, and shown as twice its requests.
    #[test]
    fn a_worker_that_has_finished_is_not_waited_for() {
        let [one, other] = [(); 2].map(|()| {
            let thread = std::thread::spawn(|| std::thread::current().id());
            thread.join().unwrap()
        });
        let interval = |(worker, in_flight)| Interval {
            worker,
            at: Moment::EPOCH,
            snapshot: Snapshot::new(),
            in_flight,
            oldest: Vec::new(),
            heard: Vec::new(),
            blocks: Vec::new(),
        };
        for (reports, living, expected) in [
            (vec![], vec![one, other], None),
            (vec![], vec![], None),
            (vec![(one, 1)], vec![one, other], None),
            (vec![(one, 1), (one, 2)], vec![one, other], None),
            (vec![(one, 1), (one, 2), (other, 3)], vec![one, other], Some(5)),
            (vec![(one, 1)], vec![one], Some(1)),
            (vec![(other, 0)], vec![one], None),
            (vec![(other, 0), (one, 1)], vec![one], Some(1)),
        ] {
            let round: Vec<_> = reports.iter().copied().map(interval).collect();
            let found = is_whole(&round, living.iter().copied()).then(|| in_flight(&round));
            assert_eq!(found, expected, "{reports:?} {living:?}");
        }
    }

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

#[cfg(test)]
mod target_watch_tests {
    use super::*;

    /// A second in which so many requests ended, and so many of them failed.
    fn second(answered: u64, failed: u64) -> Counters {
        let (completed, unexpected) = (answered - failed, failed);
        Counters { completed, failed, unexpected, ..Counters::default() }
    }

    /// The second at which a target fails, if each second ends as given; with the last success.
    /// Requests are answered after `latency` seconds.
    fn stopped_at(seconds: impl IntoIterator<Item = (u64, u64)>, latency: u64) -> Option<[u64; 2]> {
        let mut watch = TargetWatch::default();
        (1..).zip(seconds).find_map(|(now, (answered, failed)): (u64, _)| {
            let [time, settled] = [now, now.saturating_sub(latency)].map(Nanos::from_secs);
            let silent = Silent { oldest: Some(settled), ..Silent::default() };
            let last = watch.gave_up(time, &silent, false, &second(answered, failed))?;
            Some([now, last.as_u64() / 1_000_000_000])
        })
    }

    #[test]
    fn a_target_fails_when_all_requests_of_ten_seconds_have_failed() {
        for (sentence, seconds, latency, expected) in [
            ("dead from the start", vec![(50, 50); 30], 0, Some([10, 0])),
            ("dies after 4 s", [vec![(50, 0); 4], vec![(50, 50); 30]].concat(), 0, Some([14, 4])),
            ("a success each 9 s", [vec![(9, 9); 8], vec![(9, 8)]].concat().repeat(4), 0, None),
            ("idle", vec![(0, 0); 60], 0, None),
            ("idle, then dead", [vec![(0, 0); 60], vec![(9, 9); 30]].concat(), 0, Some([70, 0])),
            ("failures at once", [vec![(0, 0); 60], vec![(9, 9); 2]].concat(), 0, None),
            ("four failures", [vec![(1, 1); 4], vec![(0, 0); 60]].concat(), 0, None),
            // A timeout of 30 s: nothing is known of a request until then.
            ("hangs", [vec![(0, 0); 29], vec![(50, 50); 30]].concat(), 30, Some([40, 0])),
            // Refusals at once beside answers that take 20 s: they were sent at the start.
            ("slow", [vec![(9, 9); 19], vec![(9, 8)]].concat(), 20, None),
        ] {
            assert_eq!(stopped_at(seconds, latency), expected, "{sentence}");
        }
        // Requests in flight at the end, or given up by the generator, are not failures.
        let other = Counters {
            in_flight: 9,
            never_sent: 9,
            unexpected: 18,
            cancelled: 9,
            ..Counters::default()
        };
        let (mut watch, minute) = (TargetWatch::default(), Nanos::from_secs(60));
        let silent = Silent { oldest: Some(minute), ..Silent::default() };
        assert_eq!(watch.gave_up(minute, &silent, false, &other), None);
        assert_eq!(watch.gave_up(minute, &silent, true, &other), Some(Nanos::ZERO));
    }

    /// Two workers: one target hangs since 4 s, one has nothing in flight, and one sends bytes of
    /// an old request.
    #[test]
    fn a_target_is_silent_with_requests_in_flight_and_no_read() {
        let at = |seconds: u64| Moment::EPOCH + Nanos::from_secs(5 + seconds);
        let interval = |oldest: [Option<u64>; 3], heard: [u64; 3]| Interval {
            worker: std::thread::current().id(),
            at: at(20),
            snapshot: Snapshot::new(),
            in_flight: 1,
            oldest: oldest.map(|second| second.map(Nanos::from_secs)).to_vec(),
            heard: heard.map(at).to_vec(),
            blocks: Vec::new(),
        };
        let round = [
            interval([Some(3), None, Some(0)], [2, 9, 0]),
            interval([Some(7), None, None], [1, 19, 19]),
        ];
        let silent = |oldest: Option<u64>, since: Option<u64>, heard| Silent {
            oldest: oldest.map(Nanos::from_secs),
            since: since.map(Nanos::from_secs),
            heard: Nanos::from_secs(heard),
        };
        let expected =
            [silent(Some(3), Some(4), 2), silent(None, None, 19), silent(Some(0), Some(19), 19)];
        assert_eq!(silent_since(&round, at(0), 3), expected);
    }

    /// The second at which a target hangs that has one request in flight at any time, and answers
    /// at these seconds.
    fn hangs_at(answers: &[u64], timeout: u64, probe: Option<u64>) -> Option<u64> {
        let mut watch = TargetWatch {
            longest: Nanos::from_secs(probe.unwrap_or_default()),
            has_answered: probe.is_some(),
            before_the_first: first_silence(Nanos::from_secs(timeout)),
            ..TargetWatch::default()
        };
        (1..300).find(|now| {
            let heard = answers.iter().rfind(|answer| *answer <= now).copied().unwrap_or_default();
            let answered = u64::from(answers.contains(now));
            let [now, heard] = [*now, heard].map(Nanos::from_secs);
            let silent = Silent { since: Some(heard), heard, ..Silent::default() };
            watch.hangs(now, &silent, &second(answered, 0))
        })
    }

    #[test]
    fn a_target_hangs_when_it_is_silent_for_much_longer_than_before() {
        for (answers, timeout, probe, expected) in [
            // Never heard.
            (vec![], 30, None, Some(25)),
            (vec![], 120, None, Some(25)),
            // The request fails before.
            (vec![], 5, None, Some(5)),
            // The user says that answers take long.
            (vec![], 280, None, Some(280)),
            (vec![], 30, Some(0), Some(10)),
            (vec![], 30, Some(6), Some(18)),
            ((1..=20).collect(), 30, None, Some(30)),
            // Answers that take 20 s do not hang.
            ((1..=14).map(|n| 20 * n).collect(), 30, None, None),
            (vec![20, 40, 60], 120, None, Some(60 + 3 * 19)),
        ] {
            assert_eq!(hangs_at(&answers, timeout, probe), expected, "{answers:?} {timeout}");
        }
    }
}
