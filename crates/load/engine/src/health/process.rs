//! CPU time and memory of other processes, from `/proc`.

use std::fs;
use std::ops::RangeInclusive;

use nix::unistd::{SysconfVar, sysconf};
use plimsoll_measure::{Moment, Nanos};
use plimsoll_metrics::{ProcessUse, Snapshot, StageInfo};

/// A process that is watched while the load goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Name in reports.
    pub name: String,
    /// Its process id.
    pub pid: u32,
}

/// CPU time and memory of a process up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// CPU time of all its threads, those that have ended included: user and system.
    pub cpu: Nanos,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// When it was started, in clock ticks since boot: tells it from a later process with the same
    /// id.
    started: u64,
}

impl ProcessStat {
    /// Reads `/proc/PID/stat`; `None` where there is no such process.
    pub fn of(pid: u32) -> Option<Self> {
        let unit = |name| u64::try_from(sysconf(name).ok()??).ok();
        let (ticks, page) = (unit(SysconfVar::CLK_TCK)?, unit(SysconfVar::PAGE_SIZE)?);
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, ticks, page)
    }

    /// `proc_pid_stat(5)`. The name of the program, which is in brackets, may contain blanks and
    /// brackets.
    fn parse(stat: &str, ticks_per_s: u64, page: u64) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // The first after the name is field 3 of the manual.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = field(14)? + field(15)?;
        Some(Self {
            cpu: Nanos::new(ticks.saturating_mul(1_000_000_000 / ticks_per_s.max(1))),
            rss_bytes: field(24)?.saturating_mul(page),
            threads: field(20)?,
            started: field(22)?,
        })
    }
}

/// The watched processes of a run, read at the start of the run, and at the end of each stage and
/// of the run.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    watched: Vec<WatchedProcess>,
    /// When they are to be read, the last one first.
    due: Vec<Moment>,
    /// The moments of the readings, and the use of each process up to then.
    readings: Vec<(Moment, Vec<Option<ProcessStat>>)>,
}

impl Processes {
    /// These processes and this one; no process at all where there is none to watch. `due` are the
    /// moments of the readings, in order.
    pub(crate) fn new(
        watched: &[WatchedProcess],
        due: impl DoubleEndedIterator<Item = Moment>,
    ) -> Self {
        if watched.is_empty() {
            return Self::default();
        }
        let own = WatchedProcess { name: "plimsoll".to_owned(), pid: std::process::id() };
        let watched = watched.iter().cloned().chain([own]).collect();
        Self { watched, due: due.rev().collect(), readings: Vec::new() }
    }

    /// Reads what the processes use, if it is time.
    pub(crate) fn read_if_due(&mut self, now: Moment) {
        if self.due.pop_if(|due| *due <= now).is_some() {
            self.read(now);
        }
    }

    fn read(&mut self, now: Moment) {
        let readings = self.watched.iter().map(|process| ProcessStat::of(process.pid)).collect();
        self.readings.push((now, readings));
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
        let WatchedProcess { name, pid } = self.watched.get(process)?.clone();
        let between = self.readings.get(readings)?;
        let from = between.first()?;
        let before = from.1[process];
        let same = |reading: &ProcessStat| before.is_none_or(|b| b.started == reading.started);
        let found =
            between.iter().rev().find_map(|(at, all)| Some((*at, all[process].filter(same)?)));
        let (at, after) = found?;
        let before = before?;
        let wall_s = at.since(from.0).as_secs_f64();
        let cpu_s = after.cpu.saturating_sub(before.cpu).as_secs_f64();
        Some(ProcessUse {
            name,
            pid,
            stage,
            wall_s,
            cpu_s,
            cores: if wall_s > 0.0 { cpu_s / wall_s } else { 0.0 },
            cpu_us_per_request: (requests > 0).then(|| cpu_s * 1e6 / requests as f64),
            rss_bytes: after.rss_bytes,
            threads: after.threads,
            gone: between.last().is_none_or(|(last, _)| *last != at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4711 (a (b) c) S 1 2 3 0 -1 4194304 900 0 1 0 250 50 7 7 20 0 9 0 123456 99999999 512 \
        18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0";

    #[test]
    fn the_kernels_file_is_parsed_as_its_manual_page_says() {
        let reading = ProcessStat::parse(STAT, 100, 4_096).unwrap();
        assert_eq!(reading.cpu, Nanos::from_secs(3));
        assert_eq!((reading.threads, reading.rss_bytes), (9, 512 * 4_096));
        assert_eq!(ProcessStat::parse("1 (x) S 1", 100, 4_096), None);
        assert_eq!(ProcessStat::of(u32::MAX), None);
    }

    /// A thread that was busy for a while: the kernel's count agrees with the thread's own clock,
    /// to a few ticks.
    #[test]
    fn threads_that_have_ended_count() {
        let pid = std::process::id();
        let before = ProcessStat::of(pid).unwrap();
        let busy = std::thread::spawn(|| {
            let cpu = crate::health::CpuTime::of_thread();
            while crate::health::CpuTime::of_thread().busy_since(&cpu) < Nanos::from_millis(200) {}
        });
        busy.join().unwrap();
        let after = ProcessStat::of(pid).unwrap();
        let used = after.cpu.saturating_sub(before.cpu);
        assert!(used >= Nanos::from_millis(170), "{used}");
        assert!(after.rss_bytes > 100_000 && after.started == before.started);
    }
}
