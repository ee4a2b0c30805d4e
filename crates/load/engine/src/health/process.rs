//! CPU time and memory of other processes, and of their descendants, over a run.

use std::ops::RangeInclusive;

use plimsoll_measure::{Moment, Nanos};
use plimsoll_metrics::{ProcessTrack, ProcessUse, Snapshot, StageInfo};

use super::process_tree::{ProcessTree, TreeUse};
use crate::progress::ProcessNow;

/// Time between looks for new descendants of the watched processes. One that lives shorter and that
/// its parent waits for counts all the same.
const LOOK: Nanos = Nanos::from_secs(1);

/// A process that is watched, with its descendants, while the load goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Name in reports.
    pub name: String,
    /// Its process id.
    pub pid: u32,
}

/// The watched processes of a run, read at the start of the run, and at the end of each stage and
/// of the run.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    watched: Vec<(WatchedProcess, ProcessTree)>,
    /// When they are to be read, the last one first.
    due: Vec<Moment>,
    /// When they were last looked at.
    looked: Moment,
    /// The moments of the readings, and the use of each process up to then.
    readings: Vec<Reading>,
    /// A reading at each look between them.
    looks: Vec<Reading>,
}

/// A moment, and what each process has used up to then.
type Reading = (Moment, Vec<Option<TreeUse>>);

impl Processes {
    /// These processes with their descendants, and this one without; no process at all where there
    /// is none to watch. `due` are the moments of the readings, in order.
    pub(crate) fn new(
        watched: &[WatchedProcess],
        due: impl DoubleEndedIterator<Item = Moment>,
    ) -> Self {
        if watched.is_empty() {
            return Self::default();
        }
        let own = WatchedProcess { name: "plimsoll".to_owned(), pid: std::process::id() };
        let own = (own.clone(), ProcessTree::rooted_at(own.pid, false));
        let watched = watched
            .iter()
            .map(|process: &WatchedProcess| {
                (process.clone(), ProcessTree::rooted_at(process.pid, true))
            })
            .chain([own])
            .collect();
        Self { watched, due: due.rev().collect(), ..Self::default() }
    }

    /// Reads what the processes use, if it is time.
    pub(crate) fn read_if_due(&mut self, now: Moment) {
        if self.due.pop_if(|due| *due <= now).is_some() {
            self.read(now);
        } else if !self.watched.is_empty() && now.since(self.looked) >= LOOK {
            self.looked = now;
            let readings = self.watched.iter_mut().map(|(_, tree)| tree.read()).collect();
            self.looks.push((now, readings));
        }
    }

    /// What each watched process uses, between the last two looks.
    pub(crate) fn now(&self) -> Vec<ProcessNow> {
        let last = self.looks.len().checked_sub(2).and_then(|first| self.looks.get(first..));
        let Some([(from, before), (to, after)]) = last else { return Vec::new() };
        let seconds = to.since(*from).as_secs_f64();
        self.watched
            .iter()
            .enumerate()
            .filter_map(|(index, (process, _)): (usize, &(WatchedProcess, ProcessTree))| {
                let now = *after.get(index)?;
                let used = now
                    .zip(*before.get(index)?)
                    .map(|(now, before)| now.cpu.saturating_sub(before.cpu));
                Some(ProcessNow {
                    name: process.name.clone(),
                    cores: used.filter(|_| seconds > 0.0).map(|used| used.as_secs_f64() / seconds),
                    rss_bytes: now.map(|now| now.rss_bytes),
                })
            })
            .collect()
    }

    /// The CPU time of each watched process at every reading and look since `origin`.
    pub(crate) fn tracks(&self, origin: Moment) -> Vec<ProcessTrack> {
        let mut track: Vec<_> = self.readings.iter().chain(&self.looks).collect();
        track.sort_by_key(|(at, _)| *at);
        self.watched
            .iter()
            .enumerate()
            .map(|(index, (process, _)): (usize, &(WatchedProcess, ProcessTree))| {
                let readings = track
                    .iter()
                    .filter_map(|(at, all): &&Reading| {
                        Some((at.since(origin), all.get(index)?.as_ref()?.cpu))
                    })
                    .collect();
                ProcessTrack { name: process.name.clone(), readings }
            })
            .collect()
    }

    fn read(&mut self, now: Moment) {
        let readings = self.watched.iter_mut().map(|(_, tree)| tree.read()).collect();
        self.readings.push((now, readings));
        self.looked = now;
    }

    /// The use of each process in the whole run, and in each stage where there are several.
    pub(crate) fn finish(
        mut self,
        now: Moment,
        stages: &[StageInfo],
        counted: &Snapshot,
    ) -> Vec<ProcessUse> {
        if self.watched.is_empty() {
            return Vec::new();
        }
        self.read(now);
        let mut used = Vec::new();
        for process in 0..self.watched.len() {
            let last = self.readings.len() - 1;
            let requests = counted.total(|_| true).counters().dispatched_in_stage;
            used.extend(self.between(process, 0..=last, None, requests));
            for (index, stage) in stages.iter().enumerate().filter(|_| stages.len() > 1) {
                let group = counted.total(|key| key.stage.index() == index);
                let requests = group.counters().dispatched_in_stage;
                let name = Some(stage.name.clone());
                used.extend(self.between(process, index..=index + 1, name, requests));
            }
        }
        used
    }

    /// The use of one process between two readings. If it ended meanwhile, up to the last reading
    /// that found it.
    fn between(
        &self,
        process: usize,
        readings: RangeInclusive<usize>,
        stage: Option<String>,
        requests: u64,
    ) -> Option<ProcessUse> {
        let (WatchedProcess { name, pid }, _) = self.watched.get(process)?;
        let between = self.readings.get(readings)?;
        let from = between.first()?;
        let before = from.1[process]?;
        let (at, after) = between.iter().rev().find_map(|(at, all)| Some((*at, all[process]?)))?;
        let wall_s = at.since(from.0).as_secs_f64();
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
            gone: between.last().is_none_or(|(last, _)| *last != at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage that is shorter than the time between two looks ends with a reading of its own.
    #[test]
    fn a_run_of_short_stages_has_a_track_from_its_start_to_its_end() {
        let at = |ms| Moment::EPOCH + Nanos::from_millis(ms);
        let own = WatchedProcess { name: "own".to_owned(), pid: std::process::id() };
        let due = [5_000, 5_800, 6_600].map(at);
        let mut processes = Processes::new(&[own], due.into_iter());
        (5_000..8_200).step_by(20).for_each(|ms| processes.read_if_due(at(ms)));
        let tracks = processes.tracks(at(5_000));
        assert_eq!(tracks.len(), 2, "the process and Plimsoll itself");
        for track in tracks {
            let moments: Vec<_> = track.readings.iter().map(|(at, _)| at.as_millis_f64()).collect();
            assert_eq!(moments, [0.0, 800.0, 1_600.0, 2_600.0]);
            assert!(track.readings.is_sorted(), "CPU time only grows");
        }
    }
}
