//! Resource usage of this process, the watched ones and their host during a run.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use plimsoll_measure::{Moment, Nanos};
use plimsoll_metrics::{
    ProcessLoad, ProcessPlace, ProcessTrack, ProcessUse, QuotaLoad, Snapshot, StageInfo,
    StageResources,
};

use super::cgroup::{self, CpuGroups, QuotaReading};
use super::kernel::{CpuTicks, process};
use super::metrics_page::CpuReading;
use super::page_watch::PageWatch;
use super::process_tree::{ProcessTree, TreeUse};
use super::threads::{self, Threads};
use crate::progress::ProcessNow;

/// Time between looks for new descendants of the watched processes. One that lives shorter and that
/// its parent waits for counts all the same.
const LOOK: Nanos = Nanos::from_secs(1);
/// The name of the process at the target's address, if nobody named it. Whether it is a gateway, it
/// does not say.
const TARGET: &str = "target";
/// Its name if another process was named so.
const OTHER_TARGET: &str = "target-2";

/// A process that is watched, with its descendants, while the load goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Name in reports.
    pub name: String,
    /// Its process id.
    pub pid: u32,
}

/// The processes and the host of a run, read at the start of the run, and at the end of each stage
/// and of the run.
#[derive(Debug)]
pub(crate) struct Processes {
    observed: Vec<Observed>,
    /// When they are to be read, the last one first.
    due: Vec<Moment>,
    readings: Vec<Reading>,
    /// When the watched ones were last looked at.
    looked: Moment,
    /// Usage of each watched process at each look between the readings.
    looks: Vec<(Moment, Vec<Option<TreeUse>>)>,
}

/// A process that is observed.
#[derive(Debug)]
struct Observed {
    process: WatchedProcess,
    /// Whether its use is reported separately, and not only as evidence for the bottleneck.
    is_watched: bool,
    place: ProcessPlace,
    tree: ProcessTree,
    groups: CpuGroups,
    /// The folder of the control group with the narrowest quota.
    quota: Option<PathBuf>,
    /// Whether this process is under the same quota.
    with_generator: bool,
}

/// Everything at one moment.
#[derive(Debug)]
struct Reading {
    at: Moment,
    processes: Vec<Option<ProcessReading>>,
    host: Option<CpuTicks>,
}

#[derive(Debug)]
struct ProcessReading {
    used: TreeUse,
    threads: Threads,
    cpus: Option<u32>,
    quota: Option<QuotaReading>,
    pressure: Option<Nanos>,
}

impl Processes {
    /// The watched processes with their descendants, the one at the target's address, and this one.
    /// `due` are the start of the run and the ends of its stages, in order.
    pub(crate) fn new(
        watched: &[WatchedProcess],
        at_target: Option<u32>,
        due: impl DoubleEndedIterator<Item = Moment>,
    ) -> Self {
        let own = WatchedProcess { name: "plimsoll".to_owned(), pid: std::process::id() };
        let own_quota = quota_folder(&CpuGroups::own());
        let mut all: Vec<_> = watched.iter().map(|process| (process.clone(), true)).collect();
        let unnamed =
            at_target.filter(|pid| *pid != own.pid && watched.iter().all(|p| p.pid != *pid));
        if let Some(pid) = unnamed {
            let taken = watched.iter().any(|process| process.name == TARGET);
            let name = if taken { OTHER_TARGET } else { TARGET };
            all.push((WatchedProcess { name: name.to_owned(), pid }, false));
        }
        all.push((own, !watched.is_empty()));
        let observed = all.into_iter().map(|(process, is_watched)| {
            Observed::new(process, is_watched, at_target, own_quota.as_ref())
        });
        Self {
            observed: observed.collect(),
            due: due.rev().collect(),
            readings: Vec::new(),
            looked: Moment::EPOCH,
            looks: Vec::new(),
        }
    }

    /// The watched ones, with their places in the readings.
    fn watched(&self) -> impl Iterator<Item = (usize, &WatchedProcess)> {
        let observed = self.observed.iter().enumerate().filter(|(_, one)| one.is_watched);
        observed.map(|(index, one)| (index, &one.process))
    }

    /// Reads the usage of the processes, if it is due.
    pub(crate) fn read_if_due(&mut self, now: Moment) {
        if self.due.pop_if(|due| *due <= now).is_some() {
            self.read(now);
        } else if now.since(self.looked) >= LOOK && self.watched().next().is_some() {
            self.looked = now;
            self.looks.push((
                now,
                self.observed
                    .iter_mut()
                    .map(|one: &mut Observed| if one.is_watched { one.tree.read() } else { None })
                    .collect(),
            ));
        }
    }

    fn read(&mut self, now: Moment) {
        let processes = self.observed.iter_mut().map(Observed::read).collect();
        self.readings.push(Reading { at: now, processes, host: CpuTicks::read() });
        self.looked = now;
    }

    /// Usage of each watched process between the last two looks.
    pub(crate) fn now(&self) -> Vec<ProcessNow> {
        let last = self.looks.len().checked_sub(2).and_then(|first| self.looks.get(first..));
        let Some([(from, before), (to, after)]) = last else { return Vec::new() };
        let seconds = to.since(*from).as_secs_f64();
        let used = self.watched().filter_map(|(index, process)| {
            let now = *after.get(index)?;
            let used = now
                .zip(*before.get(index)?)
                .map(|(now, before)| now.cpu.saturating_sub(before.cpu));
            Some(ProcessNow {
                name: process.name.clone(),
                cores: used.filter(|_| seconds > 0.0).map(|used| used.as_secs_f64() / seconds),
                rss_bytes: now.map(|now| now.rss_bytes),
            })
        });
        used.collect()
    }

    /// The CPU time of each watched process at every reading and look since `origin`.
    pub(crate) fn tracks(&self, origin: Moment) -> Vec<ProcessTrack> {
        let tracks = self.watched().map(|(index, process)| {
            let readings = self.readings.iter().map(|reading| (reading.at, reading.used(index)));
            let looks = self.looks.iter().map(|(at, all)| (*at, all[index]));
            let all = readings.chain(looks);
            let mut readings: Vec<_> =
                all.filter_map(|(at, used)| Some((at.since(origin), used?.cpu))).collect();
            readings.sort_by_key(|(at, _)| *at);
            ProcessTrack { name: process.name.clone(), readings }
        });
        tracks.collect()
    }

    /// The use of each watched process in the whole run, and in each stage where there are several;
    /// and the usage of each measured stage. A stage that was cut short ends now.
    pub(crate) fn finish(
        mut self,
        now: Moment,
        stages: &[StageInfo],
        counted: &Snapshot,
        pages: &PageWatch<CpuReading>,
    ) -> (Vec<ProcessUse>, Vec<StageResources>) {
        self.read(now);
        let mut used = Vec::new();
        for (process, _) in self.watched() {
            let last = self.readings.len() - 1;
            let requests = counted.total(|_| true).counters().dispatched_in_stage;
            used.extend(self.process_use(process, 0..=last, None, requests));
            for (index, stage) in stages.iter().enumerate().filter(|_| stages.len() > 1) {
                let group = counted.total(|key| key.stage.index() == index);
                let requests = group.counters().dispatched_in_stage;
                let name = Some(stage.name.clone());
                used.extend(self.process_use(process, index..=index + 1, name, requests));
            }
        }
        let measured = stages.iter().enumerate().filter(|(_, stage)| !stage.warmup);
        let resources =
            measured.filter_map(|(index, stage)| self.stage_resources(index, stage, pages));
        (used, resources.collect())
    }

    /// The use of one process between two readings. If it ended meanwhile, up to the last reading
    /// that found it.
    fn process_use(
        &self,
        process: usize,
        readings: RangeInclusive<usize>,
        stage: Option<String>,
        requests: u64,
    ) -> Option<ProcessUse> {
        let WatchedProcess { name, pid } = &self.observed.get(process)?.process;
        let between = self.readings.get(readings)?;
        let from = between.first()?;
        let before = from.used(process)?;
        let mut found = between.iter().rev();
        let (at, after) = found.find_map(|reading| Some((reading.at, reading.used(process)?)))?;
        let wall_s = at.since(from.at).as_secs_f64();
        let cpu_s = after.cpu.saturating_sub(before.cpu).as_secs_f64();
        Some(ProcessUse {
            name: name.clone(),
            pid: *pid,
            stage,
            wall_s,
            cpu_s,
            cores: if wall_s > 0.0 { cpu_s / wall_s } else { 0.0 },
            cpu_us_per_request: (requests > 0).then(|| cpu_s * 1e6 / requests as f64),
            rss_bytes: after.rss_bytes,
            threads: after.threads,
            processes: after.processes,
            gone: between.last().is_none_or(|last| last.at != at),
        })
    }

    fn stage_resources(
        &self,
        index: usize,
        stage: &StageInfo,
        pages: &PageWatch<CpuReading>,
    ) -> Option<StageResources> {
        let (before, after) = (self.readings.get(index)?, self.readings.get(index + 1)?);
        let wall_s = after.at.since(before.at).as_secs_f64();
        if wall_s <= 0.0 {
            return None;
        }
        let pairs = before.processes.iter().zip(&after.processes);
        let processes = self.observed.iter().zip(pairs);
        Some(StageResources {
            stage: stage.name.clone(),
            wall_s,
            processes: processes
                .map(|(observed, (before, after))| {
                    observed.load(before.as_ref(), after.as_ref(), wall_s)
                })
                .chain(pages.loads(before.at, after.at))
                .collect(),
            host: before.host.zip(after.host).and_then(|(before, after)| after.since(&before)),
        })
    }
}

impl Reading {
    /// Usage of a process; `None` if it did not exist.
    fn used(&self, process: usize) -> Option<TreeUse> {
        self.processes[process].as_ref().map(|reading| reading.used)
    }
}

/// The control group whose quota holds for the process.
fn quota_folder(groups: &CpuGroups) -> Option<PathBuf> {
    groups.narrowest().map(|(_, folder)| folder.to_owned())
}

impl Observed {
    fn new(
        process: WatchedProcess,
        is_watched: bool,
        at_target: Option<u32>,
        own_quota: Option<&PathBuf>,
    ) -> Self {
        let (pid, own) = (process.pid, std::process::id());
        let groups = CpuGroups::read(pid);
        let quota = quota_folder(&groups);
        let with_generator = quota.is_some() && quota.as_ref() == own_quota;
        let place = match pid {
            pid if pid == own => ProcessPlace::Plimsoll,
            pid if at_target == Some(pid) => ProcessPlace::Target,
            _ => ProcessPlace::Elsewhere,
        };
        let tree = ProcessTree::rooted_at(pid, pid != own);
        Self { process, is_watched, place, tree, groups, quota, with_generator }
    }

    fn read(&mut self) -> Option<ProcessReading> {
        let used = self.tree.read()?;
        Some(ProcessReading {
            used,
            threads: threads::read(self.tree.ids()),
            cpus: allowed_cpus(self.tree.ids()),
            quota: self.quota.as_deref().and_then(cgroup::read_quota),
            pressure: self.groups.pressure(),
        })
    }

    fn load(
        &self,
        before: Option<&ProcessReading>,
        after: Option<&ProcessReading>,
        wall_s: f64,
    ) -> ProcessLoad {
        let WatchedProcess { name, pid } = self.process.clone();
        let load = ProcessLoad { name, pid, place: self.place, ..ProcessLoad::default() };
        let Some((before, after)) = before.zip(after) else {
            return ProcessLoad { gone: true, ..load };
        };
        let (waiting, threads) = threads::between(&before.threads, &after.threads, wall_s);
        let pressure = before.pressure.zip(after.pressure);
        ProcessLoad {
            cores: after.used.cpu.saturating_sub(before.used.cpu).as_secs_f64() / wall_s,
            waiting,
            threads,
            cpus: after.cpus,
            quota: before
                .quota
                .zip(after.quota)
                .map(|(before, after)| self.quota_load(before, after)),
            pressure: pressure
                .map(|(before, after)| after.saturating_sub(before).as_secs_f64() / wall_s),
            ..load
        }
    }

    fn quota_load(&self, before: QuotaReading, after: QuotaReading) -> QuotaLoad {
        QuotaLoad {
            cpus: after.cpus,
            periods: after.periods.saturating_sub(before.periods),
            throttled_periods: after.throttled_periods.saturating_sub(before.throttled_periods),
            throttled_s: after.throttled.saturating_sub(before.throttled).as_secs_f64(),
            with_generator: self.with_generator,
        }
    }
}

/// CPUs on which at least one of these processes may run.
pub(super) fn allowed_cpus(processes: impl Iterator<Item = u32>) -> Option<u32> {
    let mut allowed = Vec::new();
    for pid in processes {
        let list = process(pid).and_then(|process| process.status().ok()?.cpus_allowed_list);
        allowed.extend(list.into_iter().flatten().flat_map(|(first, last)| first..=last));
    }
    allowed.sort_unstable();
    allowed.dedup();
    u32::try_from(allowed.len()).ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> PageWatch<CpuReading> {
        PageWatch::start(&[], plimsoll_measure::MonotonicClock::start())
    }

    /// A stage that is shorter than the time between two looks ends with a reading of its own.
    #[test]
    fn a_run_of_short_stages_has_a_track_from_its_start_to_its_end() {
        let at = |ms| Moment::EPOCH + Nanos::from_millis(ms);
        let own = WatchedProcess { name: "own".to_owned(), pid: std::process::id() };
        let due = [5_000, 5_800, 6_600].map(at);
        let mut processes = Processes::new(&[own], None, due.into_iter());
        (5_000..8_200).step_by(20).for_each(|ms| processes.read_if_due(at(ms)));
        let tracks = processes.tracks(at(5_000));
        assert_eq!(tracks.len(), 2, "the process and Plimsoll itself");
        for track in tracks {
            let moments: Vec<_> = track.readings.iter().map(|(at, _)| at.as_millis_f64()).collect();
            assert_eq!(moments, [0.0, 800.0, 1_600.0, 2_600.0]);
            assert!(track.readings.is_sorted(), "CPU time only grows");
        }
    }

    fn stage(name: &str, warmup: bool) -> StageInfo {
        StageInfo { name: name.to_owned(), warmup, ..StageInfo::default() }
    }

    /// A warm-up and two stages: the warm-up is no evidence, and a process that nobody watches is
    /// named by its place.
    #[test]
    fn measured_stages_have_this_process_and_the_one_at_the_target() {
        let at = |ms| Moment::EPOCH + Nanos::from_millis(ms);
        let child = std::process::Command::new("sleep").arg("20").spawn();
        let mut child = child.unwrap();
        let watched = WatchedProcess { name: "store".to_owned(), pid: child.id() };
        let due = [0, 100, 1_100, 2_100].map(at);
        let mut processes =
            Processes::new(std::slice::from_ref(&watched), Some(child.id()), due.into_iter());
        (0..1_200).step_by(20).for_each(|ms| processes.read_if_due(at(ms)));
        let stages = [stage("w1", true), stage("1", false), stage("2", false)];
        let (_, found) = processes.finish(at(1_600), &stages, &Snapshot::new(), &none());
        child.kill().unwrap();
        child.wait().unwrap();
        let names: Vec<_> = found.iter().map(|stage| stage.stage.as_str()).collect();
        assert_eq!(names, ["1", "2"]);
        assert!((found[0].wall_s - 1.0).abs() < 1e-9 && (found[1].wall_s - 0.5).abs() < 1e-9);
        let [store, own] = found[0].processes.as_slice() else { panic!("{found:?}") };
        assert_eq!((store.name.as_str(), store.place), ("store", ProcessPlace::Target));
        assert_eq!(own.place, ProcessPlace::Plimsoll);
        assert!(own.cpus.is_some_and(|cpus| cpus >= 1) && !own.gone, "{own:?}");

        let unnamed = |watched: &[WatchedProcess], at_target| {
            let observed = Processes::new(watched, at_target, std::iter::empty()).observed;
            observed.into_iter().map(|seen| seen.process.name).collect::<Vec<_>>()
        };
        assert_eq!(unnamed(&[], Some(1)), ["target", "plimsoll"]);
        let named = WatchedProcess { name: "target".to_owned(), pid: 2 };
        assert_eq!(unnamed(&[named], Some(1)), ["target", "target-2", "plimsoll"]);
        assert_eq!(unnamed(&[], Some(std::process::id())), ["plimsoll"]);
    }

    #[test]
    fn a_process_that_ended_has_no_figures() {
        let mut child = std::process::Command::new("sleep").arg("20").spawn().unwrap();
        let watched = WatchedProcess { name: "gateway".to_owned(), pid: child.id() };
        let at = |ms| Moment::EPOCH + Nanos::from_millis(ms);
        let due = [at(0), at(1_000)].into_iter();
        let mut processes = Processes::new(&[watched], None, due);
        processes.read_if_due(at(0));
        child.kill().unwrap();
        child.wait().unwrap();
        processes.read_if_due(at(1_000));
        let stages = [stage("1", false)];
        let (_, found) = processes.finish(at(1_000), &stages, &Snapshot::new(), &none());
        assert!(found[0].processes[0].gone && !found[0].processes[1].gone, "{found:?}");
    }
}
