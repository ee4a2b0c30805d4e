//! CPU time of the threads of processes, and how long they waited for a CPU.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use plimsoll_metrics::ThreadLoad;
use procfs::process::Task;

use super::kernel::{process, times};

/// Threads that a stage lists.
const LISTED: usize = 16;
/// Threads that are read: a process with more of them is not to cost the host its CPU time.
const MOST: usize = 4_096;

/// A thread up to now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadReading {
    name: String,
    ran: Nanos,
    waited: Nanos,
}

/// Threads by id.
pub(super) type Threads = BTreeMap<i32, ThreadReading>;

/// Every thread of these processes.
pub(super) fn read(processes: impl Iterator<Item = u32>) -> Threads {
    let mut threads = Threads::new();
    for process in processes.filter_map(process) {
        let tasks = process.tasks().into_iter().flatten().flatten();
        let tasks = tasks.take(MOST.saturating_sub(threads.len()));
        threads.extend(tasks.filter_map(|task| Some((task.tid, read_one(&task)?))));
    }
    threads
}

fn read_one(task: &Task) -> Option<ThreadReading> {
    let [ran, waited] = times(&task.schedstat().ok()?);
    Some(ThreadReading { name: task.stat().ok()?.comm, ran, waited })
}

/// How long all threads waited, divided by the time, and the busiest ones. A thread that began
/// meanwhile counts from its beginning; one whose time went back is another one with its id.
pub(super) fn between(
    before: &Threads,
    after: &Threads,
    wall_s: f64,
) -> (Option<f64>, Vec<ThreadLoad>) {
    if after.is_empty() || wall_s <= 0.0 {
        return (None, Vec::new());
    }
    let mut loads: Vec<_> = after
        .iter()
        .map(|(id, now)| {
            let earlier = before.get(id).filter(|then| then.ran <= now.ran);
            let (ran, waited) = earlier.map(|then| (then.ran, then.waited)).unwrap_or_default();
            ThreadLoad {
                name: now.name.clone(),
                cores: now.ran.saturating_sub(ran).as_secs_f64() / wall_s,
                waiting: now.waited.saturating_sub(waited).as_secs_f64() / wall_s,
            }
        })
        .collect();
    let waiting = loads.iter().map(|load| load.waiting).sum();
    loads.sort_by(|one, other| (other.cores + other.waiting).total_cmp(&(one.cores + one.waiting)));
    loads.truncate(LISTED);
    loads.retain(|load| load.cores > 0.0);
    (Some(waiting), loads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(name: &str, ran_ms: u64, waited_ms: u64) -> ThreadReading {
        let [ran, waited] = [ran_ms, waited_ms].map(Nanos::from_millis);
        ThreadReading { name: name.to_owned(), ran, waited }
    }

    /// In 2 s: one ran 1.8 s, a new one 0.4 s, one rested, one ended, one id was taken anew.
    #[test]
    fn threads_are_compared_by_their_ids() {
        let before = Threads::from([
            (1, thread("main", 5_000, 100)),
            (2, thread("rests", 700, 7)),
            (3, thread("ended", 900, 9)),
            (4, thread("old", 10_000, 50)),
        ]);
        let after = Threads::from([
            (1, thread("main", 6_800, 300)),
            (2, thread("rests", 700, 7)),
            (4, thread("anew", 200, 20)),
            (5, thread("new", 400, 80)),
        ]);
        let (waiting, loads) = between(&before, &after, 2.0);
        let shown: Vec<_> =
            loads.iter().map(|load| (load.name.as_str(), load.cores, load.waiting)).collect();
        assert_eq!(shown, [("main", 0.9, 0.1), ("new", 0.2, 0.04), ("anew", 0.1, 0.01)]);
        assert!((waiting.unwrap() - 0.15).abs() < 1e-12, "{waiting:?}");
        assert_eq!(between(&before, &Threads::new(), 2.0), (None, Vec::new()));
    }

    #[test]
    fn a_busy_thread_of_this_process_is_found_by_its_name() {
        let own = || read(std::iter::once(std::process::id()));
        let before = own();
        if before.is_empty() {
            // The kernel has no such counters.
            return;
        }
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let (ready, started) = std::sync::mpsc::channel();
        let busy = std::thread::Builder::new().name("busy-one".to_owned());
        let busy = busy.spawn(move || {
            let cpu = crate::health::CpuTime::of_thread();
            let used = || crate::health::CpuTime::of_thread().busy_since(&cpu);
            while used() < Nanos::from_millis(100) {}
            ready.send(()).unwrap();
            wait.recv().unwrap_err();
        });
        started.recv().unwrap();
        // Simulates a stage of one second.
        let (_, loads) = between(&before, &own(), 1.0);
        drop(done);
        busy.unwrap().join().unwrap();
        let found = loads.iter().find(|load| load.name == "busy-one").unwrap();
        assert!(found.cores >= 0.08, "{loads:?}");
    }
}
