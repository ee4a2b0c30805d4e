//! What the measured stages use of this host, read where they begin and end.

use std::fs;
use std::path::PathBuf;

use plimsoll_measure::{Moment, Nanos};
use plimsoll_metrics::{ProcessLoad, ProcessPlace, QuotaLoad, StageInfo, StageResources};

use super::cgroup::{self, CpuGroups, QuotaReading};
use super::kernel::{self, CpuTicks};
use super::page_watch::PageWatch;
use super::process::WatchedProcess;
use super::process_tree::ProcessTree;
use super::threads::{self, Threads};

/// The name of the process at the target's address, if nobody named it. Whether it is a gateway, it
/// does not say.
const TARGET: &str = "target";
/// Its name if another process was named so.
const OTHER_TARGET: &str = "target-2";

/// The processes and the host of a run, at the borders of its stages.
#[derive(Debug)]
pub(crate) struct Resources {
    observed: Vec<Observed>,
    /// When they are to be read, the last one first.
    due: Vec<Moment>,
    readings: Vec<Reading>,
}

/// The control group whose quota holds for the process.
fn quota_folder(groups: &CpuGroups) -> Option<PathBuf> {
    groups.narrowest().map(|(_, folder)| folder.to_owned())
}

/// A process that is observed.
#[derive(Debug)]
struct Observed {
    process: WatchedProcess,
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
    cpu: Nanos,
    threads: Threads,
    cpus: Option<u32>,
    quota: Option<QuotaReading>,
    pressure: Option<Nanos>,
}

impl Resources {
    /// The watched processes, the one at the target's address, and this one. `due` are the start of
    /// the run and the ends of its stages, in order.
    pub(crate) fn new(
        watched: &[WatchedProcess],
        at_target: Option<u32>,
        due: impl DoubleEndedIterator<Item = Moment>,
    ) -> Self {
        let own = std::process::id();
        let own_quota = quota_folder(&CpuGroups::own());
        let mut all: Vec<WatchedProcess> = watched.to_vec();
        let unnamed = at_target.filter(|pid| *pid != own && all.iter().all(|p| p.pid != *pid));
        if let Some(pid) = unnamed {
            let taken = all.iter().any(|process| process.name == TARGET);
            let name = if taken { OTHER_TARGET } else { TARGET };
            all.push(WatchedProcess { name: name.to_owned(), pid });
        }
        all.push(WatchedProcess { name: "plimsoll".to_owned(), pid: own });
        Self {
            observed: all
                .into_iter()
                .map(|process: WatchedProcess| {
                    let WatchedProcess { pid, .. } = process;
                    let groups = CpuGroups::read(pid);
                    let quota = quota_folder(&groups);
                    let with_generator = quota.is_some() && quota == own_quota;
                    let place = match pid {
                        pid if pid == own => ProcessPlace::Plimsoll,
                        pid if at_target == Some(pid) => ProcessPlace::Target,
                        _ => ProcessPlace::Elsewhere,
                    };
                    let tree = ProcessTree::rooted_at(pid, pid != own);
                    Observed { process, place, tree, groups, quota, with_generator }
                })
                .collect(),
            due: due.rev().collect(),
            readings: Vec::new(),
        }
    }

    /// Reads everything, if a stage begins or ends.
    pub(crate) fn read_if_due(&mut self, now: Moment) {
        if self.due.pop_if(|due| *due <= now).is_some() {
            self.read(now);
        }
    }

    fn read(&mut self, now: Moment) {
        self.readings.push(Reading {
            at: now,
            processes: self.observed.iter_mut().map(Observed::read).collect(),
            host: CpuTicks::read(),
        });
    }

    /// What each measured stage used. A stage that was cut short ends now.
    pub(crate) fn finish(
        mut self,
        now: Moment,
        stages: &[StageInfo],
        pages: &PageWatch,
    ) -> Vec<StageResources> {
        if !self.due.is_empty() {
            self.read(now);
        }
        let measured = stages.iter().enumerate().filter(|(_, stage)| !stage.warmup);
        measured.filter_map(|(index, stage)| self.between(index, stage, pages)).collect()
    }

    fn between(
        &self,
        index: usize,
        stage: &StageInfo,
        pages: &PageWatch,
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

impl Observed {
    fn read(&mut self) -> Option<ProcessReading> {
        let used = self.tree.read()?;
        Some(ProcessReading {
            cpu: used.cpu,
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
            cores: after.cpu.saturating_sub(before.cpu).as_secs_f64() / wall_s,
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
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        allowed.extend(list.into_iter().flat_map(kernel::cpu_list));
    }
    allowed.sort_unstable();
    allowed.dedup();
    u32::try_from(allowed.len()).ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut resources =
            Resources::new(std::slice::from_ref(&watched), Some(child.id()), due.into_iter());
        (0..1_200).step_by(20).for_each(|ms| resources.read_if_due(at(ms)));
        let stages = [stage("w1", true), stage("1", false), stage("2", false)];
        let found = resources.finish(at(1_600), &stages, &PageWatch::default());
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
            let observed = Resources::new(watched, at_target, std::iter::empty()).observed;
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
        let mut resources = Resources::new(&[watched], None, due);
        resources.read_if_due(at(0));
        child.kill().unwrap();
        child.wait().unwrap();
        resources.read_if_due(at(1_000));
        let found = resources.finish(at(1_000), &[stage("1", false)], &PageWatch::default());
        assert!(found[0].processes[0].gone && !found[0].processes[1].gone, "{found:?}");
    }
}
