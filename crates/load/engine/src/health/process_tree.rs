//! CPU time and memory of a process and its descendants, from `/proc`.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use procfs::process::Process;

use super::cgroup::container_of;
use super::kernel::{process, processes};

/// Content of `/proc/PID/stat` for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// CPU time of all its threads, those that have ended included: user and system.
    pub cpu: Nanos,
    /// CPU time of its children that have ended and that it waited for, and of theirs.
    pub waited_for: Nanos,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// The process that started it, or that adopted it since.
    pub parent: u32,
    /// When it was started, in clock ticks since boot: distinguishes it from a later process with
    /// the same id.
    started: u64,
}

impl ProcessStat {
    /// Reads `/proc/PID/stat`; `None` if the process does not exist.
    pub fn read(pid: u32) -> Option<Self> {
        Self::read_of(&process(pid)?)
    }

    pub(super) fn read_of(process: &Process) -> Option<Self> {
        let stat = process.stat().ok()?;
        let tick = 1_000_000_000 / procfs::ticks_per_second();
        let waited_for = u64::try_from(stat.cutime + stat.cstime).ok()?;
        Some(Self {
            cpu: Nanos::new((stat.utime + stat.stime) * tick),
            waited_for: Nanos::new(waited_for * tick),
            rss_bytes: stat.rss * procfs::page_size(),
            threads: u64::try_from(stat.num_threads).ok()?,
            parent: u32::try_from(stat.ppid).ok()?,
            started: stat.starttime,
        })
    }

    /// CPU time of the process and of the children it waited for.
    fn total(&self) -> Nanos {
        self.cpu + self.waited_for
    }

    /// Whether the process still exists; its id may have been reused.
    fn is_alive(&self, pid: u32, now: &BTreeMap<u32, Self>) -> bool {
        now.get(&pid).is_some_and(|stat| stat.started == self.started)
    }
}

/// A process and its descendants, as far as they are alive.
pub fn process_family(pid: u32) -> BTreeMap<u32, ProcessStat> {
    let members = ProcessStat::read(pid).map(|stat| (pid, stat)).into_iter().collect();
    ProcessTree { members, descendants: true, kept: Nanos::ZERO }.find()
}

/// CPU time and memory of a tree of processes up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeUse {
    /// CPU time of all members, those that have ended included.
    pub(crate) cpu: Nanos,
    /// Sum of the resident memory. Pages that several processes share count for each of them.
    pub(crate) rss_bytes: u64,
    pub(crate) threads: u64,
    pub(crate) processes: u64,
}

/// A process and its descendants. A member remains one even if another process adopts it.
///
/// The CPU time of a member that has ended is not lost. If its parent waited for it, the kernel
/// adds it to the parent's `waited_for`. The missing part (the parent did not wait, or ended first)
/// is kept here, from the last reading that found the member.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    members: BTreeMap<u32, ProcessStat>,
    descendants: bool,
    kept: Nanos,
}

impl ProcessTree {
    /// The tree of a process, with the other processes of its container; without `descendants`,
    /// only the process itself.
    pub(crate) fn rooted_at(pid: u32, descendants: bool) -> Self {
        let container = if descendants { container_of(pid) } else { Vec::new() };
        let roots = container.into_iter().chain([pid]);
        let members = roots.filter_map(|pid| Some((pid, ProcessStat::read(pid)?))).collect();
        Self { members, descendants, kept: Nanos::ZERO }
    }

    /// The ids of the members that were alive when it was last read.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.keys().copied()
    }

    /// Looks for new members, and reads them all; `None` if none is left.
    pub(crate) fn read(&mut self) -> Option<TreeUse> {
        let now = self.find();
        self.update(now);
        self.total()
    }

    /// The members that are alive, and their descendants.
    fn find(&self) -> BTreeMap<u32, ProcessStat> {
        let mut found = BTreeMap::new();
        for (pid, known) in &self.members {
            if let Some(stat) = ProcessStat::read(*pid).filter(|stat| stat.started == known.started)
            {
                found.insert(*pid, stat);
            }
        }
        if !self.descendants {
            return found;
        }
        let mut unvisited: Vec<u32> = found.keys().copied().collect();
        while let Some(pid) = unvisited.pop() {
            let new = children(pid)
                .into_iter()
                .filter(|child| *child != std::process::id() && !found.contains_key(child));
            let new: Vec<_> =
                new.filter_map(|child| Some((child, ProcessStat::read(child)?))).collect();
            unvisited.extend(new.iter().map(|(child, _)| *child));
            found.extend(new);
        }
        found
    }

    /// Replaces the members, and keeps the CPU time of those that have ended and that no living
    /// member has waited for.
    fn update(&mut self, now: BTreeMap<u32, ProcessStat>) {
        // By the nearest ancestor that is alive.
        let mut ended: BTreeMap<Option<u32>, Nanos> = BTreeMap::new();
        for (pid, known) in &self.members {
            if known.is_alive(*pid, &now) {
                continue;
            }
            let mut ancestor = known.parent;
            let heir = loop {
                match self.members.get(&ancestor) {
                    Some(parent) if parent.is_alive(ancestor, &now) => break Some(ancestor),
                    Some(parent) => ancestor = parent.parent,
                    None => break None,
                }
            };
            let sum = ended.entry(heir).or_default();
            *sum += known.total();
        }
        for (heir, sum) in ended {
            let grown = heir.and_then(|pid| Some((now.get(&pid)?, self.members.get(&pid)?)));
            let waited_for = grown
                .map(|(after, before)| after.waited_for.saturating_sub(before.waited_for))
                .unwrap_or_default();
            self.kept += sum.saturating_sub(waited_for);
        }
        self.members = now;
    }

    fn total(&self) -> Option<TreeUse> {
        if self.members.is_empty() {
            return None;
        }
        let mut sum = TreeUse { cpu: self.kept, ..TreeUse::default() };
        for member in self.members.values() {
            let waited_for = if self.descendants { member.waited_for } else { Nanos::ZERO };
            sum.cpu += member.cpu + waited_for;
            sum.rss_bytes += member.rss_bytes;
            sum.threads += member.threads;
            sum.processes += 1;
        }
        Some(sum)
    }
}

/// The children of all threads of a process, from `/proc/PID/task/TID/children`. Kernels without
/// that file (`CONFIG_PROC_CHILDREN`) have the parent in each process's `stat`.
fn children(pid: u32) -> Vec<u32> {
    let tasks = process(pid).and_then(|process| process.tasks().ok()).into_iter().flatten();
    let lists: Vec<_> = tasks.flatten().filter_map(|task| task.children().ok()).collect();
    if lists.is_empty() { children_by_parent(pid) } else { lists.concat() }
}

fn children_by_parent(parent: u32) -> Vec<u32> {
    let all = processes().filter_map(|(pid, process)| Some((pid, ProcessStat::read_of(&process)?)));
    all.filter(|(_, stat)| stat.parent == parent).map(|(pid, _)| pid).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::health::CpuTime;

    #[test]
    fn a_process_that_does_not_exist_has_no_reading() {
        assert_eq!(ProcessStat::read(u32::MAX), None);
        assert_eq!(ProcessStat::read(4_194_305), None, "above the highest id of Linux");
    }

    /// A thread that was busy for a while: the kernel's count agrees with the thread's own clock,
    /// to a few ticks.
    #[test]
    fn threads_that_have_ended_count() {
        let pid = std::process::id();
        let before = ProcessStat::read(pid).unwrap();
        let busy = std::thread::spawn(|| {
            let cpu = CpuTime::of_thread();
            while CpuTime::of_thread().busy_since(&cpu) < Nanos::from_millis(200) {}
        });
        busy.join().unwrap();
        let after = ProcessStat::read(pid).unwrap();
        let used = after.cpu.saturating_sub(before.cpu);
        assert!(used >= Nanos::from_millis(170), "{used}");
        assert!(after.rss_bytes > 100_000 && after.started == before.started);
    }

    const fn ms(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    /// A process with this parent, CPU time and waited-for CPU time in milliseconds.
    fn process(parent: u32, cpu: u64, waited_for: u64) -> ProcessStat {
        let started = 1;
        let (cpu, waited_for) = (ms(cpu), ms(waited_for));
        ProcessStat { cpu, waited_for, rss_bytes: 1_000, threads: 1, parent, started }
    }

    /// The CPU time of a tree, in ms, after each of these readings of its members.
    fn readings<const N: usize>(all: [&[(u32, ProcessStat)]; N]) -> [u64; N] {
        let mut tree =
            ProcessTree { members: BTreeMap::new(), descendants: true, kept: Nanos::ZERO };
        all.map(|members| {
            tree.update(members.iter().copied().collect());
            tree.total().map_or(0, |total| total.cpu.as_u64() / 1_000_000)
        })
    }

    #[test]
    fn the_time_of_a_child_that_ended_counts_once() {
        let master = |waited_for| (1, process(0, 10, waited_for));
        let worker = |cpu| (2, process(1, cpu, 0));
        // The master waited for it, and so for 5 ms after the last reading too.
        assert_eq!(readings([&[master(0), worker(300)], &[master(305)]]), [310, 315]);
        // The parent did not wait.
        assert_eq!(readings([&[master(0), worker(300)], &[master(0)]]), [310, 310]);
        // A worker that was never seen ended too.
        assert_eq!(readings([&[master(0)], &[master(40)]]), [10, 50]);
        // Its successor has the same id.
        let successor = (2, ProcessStat { started: 9, ..process(1, 7, 0) });
        assert_eq!(readings([&[master(0), worker(300)], &[master(0), successor]]), [310, 317]);
    }

    #[test]
    fn grandchildren_and_orphans_count() {
        let master = |waited_for| (1, process(0, 10, waited_for));
        let (middle, leaf) = ((2, process(1, 20, 0)), (3, process(2, 400, 0)));
        let all: &[_] = &[master(0), middle, leaf];
        // The middle ended, and process 1 of the host adopted the leaf.
        let orphan = (3, process(1, 450, 0));
        assert_eq!(readings([all, &[master(20), orphan], &[master(20)]]), [430, 480, 480]);
        // Both ended: the middle waited for the leaf, and the master for the middle.
        assert_eq!(readings([all, &[master(430)]]), [430, 440]);
        // Both ended, and only the middle was waited for.
        assert_eq!(readings([all, &[master(20)]]), [430, 430]);
    }

    /// A real master that does nothing, and a worker that uses CPU time.
    #[test]
    fn workers_of_a_real_master_are_found_and_outlive_themselves() {
        // The shell counts its own children's time only when it has waited for them.
        let script = "exec 3<&0; (i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; \
            read x <&3; exit 0) & wait $!; echo waited; read x";
        let mut master = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut tree = ProcessTree::rooted_at(master.id(), true);
        let mut lines = BufReader::new(master.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "done");
        let busy = tree.read().unwrap();
        let alone = ProcessTree::rooted_at(master.id(), false).read().unwrap();
        assert_eq!((busy.processes, alone.processes), (2, 1));
        assert!(busy.cpu >= alone.cpu + ms(50), "{busy:?} {alone:?}");
        let mut stdin = master.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, b"\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "waited");
        let after = tree.read().unwrap();
        assert_eq!(after.processes, 1);
        assert!(after.cpu >= busy.cpu && after.cpu <= busy.cpu + ms(100), "{after:?} {busy:?}");
        drop(stdin);
        master.wait().unwrap();
        assert_eq!(tree.read(), None);
    }
}
