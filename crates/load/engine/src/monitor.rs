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
    failing: TargetWatch,
    silences: Vec<Silence>,
    /// State of a run that ends when no request succeeds any more.
    success: Option<SuccessWatch>,
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
        let may_fail = run.pairs.is_some() || run.plan.limits.allow_failures;
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
            silences: (0..targets).map(|target| Silence::new(run, target)).collect(),
            success: (!may_fail).then(SuccessWatch::default),
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
        let silent = silent_since(&round, self.origin, self.silences.len());
        let counted = merged(round);
        let interval = counted.total(|_| true);
        self.so_far.merge(&interval);
        let elapsed = now.since(self.origin);
        let silences = self.silences.iter_mut().zip(silent);
        let hangs: Vec<bool> = silences
            .map(|(silence, (since, heard))| silence.hangs(elapsed, since, heard))
            .collect();
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
            .and_then(|watch| watch.gave_up(now, settled, hangs[0], interval.counters()))
            // Afterwards nothing new can succeed.
            .filter(|last| *last < self.run.schedule.duration());
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

// Finds the targets of a comparison that fail, so that they are taken out of it, and a target that
// no longer gives any good answer, so that its run ends.

/// Time without a success after which a run ends.
const HOPELESS: Nanos = Nanos::from_secs(10);
/// Requests that must have failed by then.
const HANDFUL: u64 = 5;
/// How long a target may take for its first byte. A longer `timeout` than the longest default is a
/// user's word that answers take long.
const FIRST_BYTE: Nanos = Nanos::from_secs(25);
const USUAL_TIMEOUT: Nanos = Nanos::from_secs(120);
/// Times that a target may be silent for as long as before it spoke last.
const LONGER: u64 = 3;

/// How long a target may take for its first byte.
pub(crate) fn first_byte_within(timeout: Nanos) -> Nanos {
    if timeout > USUAL_TIMEOUT { timeout } else { FIRST_BYTE.min(timeout) }
}

/// The silences of a target with requests in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    heard: Nanos,
    now: Nanos,
    /// The longest one that ended; `None` before the first byte.
    longest: Option<Nanos>,
    before_the_first: Nanos,
}

impl Silence {
    fn new(run: &PreparedRun, target: usize) -> Self {
        let probe = run.first_bytes.get().and_then(|first| *first.get(target)?);
        let before_the_first = first_byte_within(run.plan.limits.timeout);
        Self { heard: Nanos::ZERO, now: Nanos::ZERO, longest: probe, before_the_first }
    }

    /// Whether the target hangs: it has been silent since `since`, and sent the last byte at
    /// `heard`.
    fn hangs(&mut self, elapsed: Nanos, since: Option<Nanos>, heard: Nanos) -> bool {
        if heard > self.heard {
            (self.longest, self.heard) = (self.longest.max(Some(self.now)), heard);
        }
        self.now = since.map_or(Nanos::ZERO, |since| elapsed.saturating_sub(since));
        let usual = self.longest.map(|longest| Nanos::new(LONGER * longest.as_u64()).max(HOPELESS));
        self.now >= usual.unwrap_or(self.before_the_first)
    }
}

/// By target: since when it has been silent with requests in flight, and when it was last heard,
/// after `origin`.
pub(crate) fn silent_since(
    round: &[Interval],
    origin: Moment,
    targets: usize,
) -> Vec<(Option<Nanos>, Nanos)> {
    let by_target = (0..targets).map(|target| {
        let oldest = round.iter().filter_map(|interval| interval.oldest[target]).min();
        let heard = round.iter().map(|interval| interval.heard[target]).max().unwrap_or(origin);
        let heard = heard.since(origin);
        // Known to a second.
        (oldest.map(|oldest| (oldest + Nanos::from_secs(1)).max(heard)), heard)
    });
    by_target.collect()
}

/// How long no request of a run has succeeded.
#[derive(Debug, Default)]
pub(crate) struct SuccessWatch {
    /// The last success, after the run's start.
    last: Nanos,
    failed: u64,
}

impl SuccessWatch {
    /// Counts the requests that ended until `now`, after the run's start; all that were intended
    /// before `settled` have ended. Gives the last success once every request that was intended in
    /// the 10 seconds after it has failed: one that is in flight since then may still succeed,
    /// unless the target hangs.
    pub(crate) fn gave_up(
        &mut self,
        now: Nanos,
        settled: Nanos,
        hangs: bool,
        counters: &Counters,
    ) -> Option<Nanos> {
        if counters.answered() > counters.failures() {
            *self = Self { last: now, failed: 0 };
        }
        self.failed += counters.failures();
        let waited = settled.saturating_sub(self.last);
        (hangs || (waited >= HOPELESS && self.failed >= HANDFUL)).then_some(self.last)
    }
}

/// Seconds in a row in which at least half of the requests failed.
const FAILING_SECONDS: u32 = 10;
/// Requests that must have failed by then.
const ENOUGH: u64 = 10;

/// How long each target has been failing.
#[derive(Debug)]
pub(crate) struct TargetWatch(Vec<Failing>);

#[derive(Clone, Copy, Debug, Default)]
struct Failing {
    /// Seconds with an end of a request, since the last one in which fewer than half failed.
    seconds: u32,
    failed: u64,
}

impl TargetWatch {
    /// No target has failed yet.
    pub(crate) fn new(targets: usize) -> Self {
        Self(vec![Failing::default(); targets])
    }

    /// Counts the requests to a target that ended in a second, and how many of them got no good
    /// answer. Returns whether the target is to be taken out. Seconds without completions are
    /// ignored, because targets may take turns.
    pub(crate) fn is_failing(&mut self, target: usize, ended: u64, failed: u64) -> bool {
        let Some(failing) = self.0.get_mut(target) else { return false };
        if ended == 0 {
            return false;
        }
        if 2 * failed < ended {
            *failing = Failing::default();
            return false;
        }
        failing.seconds += 1;
        failing.failed += failed;
        failing.seconds >= FAILING_SECONDS && failing.failed >= ENOUGH
    }
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

#[cfg(test)]
mod target_watch_tests {
    use super::*;

    /// A second in which so many requests ended, and so many of them failed.
    fn second(answered: u64, failed: u64) -> Counters {
        let (completed, unexpected) = (answered - failed, failed);
        Counters { completed, failed, unexpected, ..Counters::default() }
    }

    /// The second at which a run is stopped, if each second ends as given; with the last success.
    /// Requests are answered after `latency` seconds.
    fn stopped_at(seconds: impl IntoIterator<Item = (u64, u64)>, latency: u64) -> Option<[u64; 2]> {
        let mut watch = SuccessWatch::default();
        (1..).zip(seconds).find_map(|(now, (answered, failed)): (u64, _)| {
            let [time, settled] = [now, now.saturating_sub(latency)].map(Nanos::from_secs);
            let last = watch.gave_up(time, settled, false, &second(answered, failed))?;
            Some([now, last.as_u64() / 1_000_000_000])
        })
    }

    #[test]
    fn a_run_is_stopped_when_all_requests_of_ten_seconds_have_failed() {
        for (sentence, seconds, latency, expected) in [
            ("dead from the start", vec![(50, 50); 30], 0, Some([10, 0])),
            ("dies after 4 s", [vec![(50, 0); 4], vec![(50, 50); 30]].concat(), 0, Some([14, 4])),
            ("a success each 9 s", [vec![(9, 9); 8], vec![(9, 8)]].concat().repeat(4), 0, None),
            ("idle", vec![(0, 0); 60], 0, None),
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
        let mut watch = SuccessWatch::default();
        let minute = Nanos::from_secs(60);
        assert_eq!(watch.gave_up(minute, minute, false, &other), None);
        assert_eq!(watch.gave_up(minute, Nanos::ZERO, true, &other), Some(Nanos::ZERO));
    }

    /// Two workers: one target hangs since 4 s, one has nothing in flight, and one sends bytes of
    /// an old request.
    #[test]
    fn a_target_is_silent_with_requests_in_flight_and_no_read() {
        let at = |seconds: u64| Moment::EPOCH + Nanos::from_secs(5 + seconds);
        let interval = |oldest: [Option<u64>; 3], heard: [u64; 3]| Interval {
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
        let silent = silent_since(&round, at(0), 3);
        let whole = |time: Nanos| time.as_u64() / 1_000_000_000;
        let seconds = silent.iter().map(|(since, heard)| (since.map(whole), whole(*heard)));
        assert_eq!(seconds.collect::<Vec<_>>(), [(Some(4), 2), (None, 19), (Some(19), 19)]);
    }

    /// The second at which a target hangs that has one request in flight at any time, and answers
    /// at these seconds.
    fn hangs_at(answers: &[u64], timeout: u64, probe: Option<u64>) -> Option<u64> {
        let mut silence = Silence {
            heard: Nanos::ZERO,
            now: Nanos::ZERO,
            longest: probe.map(Nanos::from_secs),
            before_the_first: first_byte_within(Nanos::from_secs(timeout)),
        };
        (1..300).find(|now| {
            let heard = answers.iter().rfind(|answer| *answer <= now).copied().unwrap_or_default();
            let [now, heard] = [*now, heard].map(Nanos::from_secs);
            silence.hangs(now, Some(heard), heard)
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

    /// When a target is taken out, counted from 1, if each second ends as given.
    fn taken_out_after(seconds: impl IntoIterator<Item = (u64, u64)>) -> Option<usize> {
        let mut watch = TargetWatch::new(1);
        let out = |(ended, failed)| watch.is_failing(0, ended, failed);
        seconds.into_iter().map(out).position(|out| out).map(|second| second + 1)
    }

    #[test]
    fn ten_seconds_in_which_half_of_the_requests_fail_end_the_part_of_a_target() {
        assert_eq!(taken_out_after([(100, 50); 12]), Some(10));
        assert_eq!(taken_out_after([(100, 49); 100]), None);
        assert_eq!(taken_out_after([(1, 1); 12]), Some(10));
        let with_a_good_one = (0..25).map(|second| if second == 8 { (9, 0) } else { (9, 9) });
        assert_eq!(taken_out_after(with_a_good_one), Some(19));
        let with_pauses = (0..30).map(|second| if second % 2 == 0 { (9, 9) } else { (0, 0) });
        assert_eq!(taken_out_after(with_pauses), Some(19));
        let few = (0..60).map(|second| if second % 4 == 0 { (2, 1) } else { (0, 0) });
        assert_eq!(taken_out_after(few), Some(37));
    }

    #[test]
    fn targets_are_watched_apart() {
        let mut watch = TargetWatch::new(2);
        for _ in 0..9 {
            assert!(!watch.is_failing(0, 5, 5) && !watch.is_failing(1, 5, 0));
        }
        assert!(watch.is_failing(0, 5, 5) && !watch.is_failing(1, 5, 5));
    }
}
