//! Workers on CPUs of their own.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread, in the terms of the scheduler's calls.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// CPUs for `workers` threads, one each, out of those that this process may use; `None` where that is no gain or not
/// possible: one CPU alone, or fewer CPUs than workers.
pub(crate) fn places(workers: u16) -> Option<Vec<usize>> {
    let set = sched_getaffinity(THIS_THREAD).ok()?;
    let allowed = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false));
    choose(&allowed.collect::<Vec<_>>(), workers)
}

/// The last of the allowed ones: interrupts and other people's work are usually on the first.
fn choose(allowed: &[usize], workers: u16) -> Option<Vec<usize>> {
    let spare = allowed.len().checked_sub(usize::from(workers))?;
    (allowed.len() > 1).then(|| allowed[spare..].to_vec())
}

/// Binds the calling thread to one CPU; false if the kernel refuses.
pub(crate) fn bind(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu).is_ok() && sched_setaffinity(THIS_THREAD, &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_gets_an_allowed_cpu_of_its_own_or_none_is_bound() {
        for (allowed, workers, places) in [
            (&[0, 1, 2, 3][..], 2, Some(vec![2, 3])),
            (&[2, 5], 2, Some(vec![2, 5])),
            (&[2, 5], 3, None),
            (&[0], 1, None),
            (&[], 1, None),
        ] {
            assert_eq!(choose(allowed, workers), places, "{allowed:?} {workers}");
        }
    }

    #[test]
    fn a_bound_thread_may_use_its_cpu_alone() {
        let before = sched_getaffinity(THIS_THREAD).unwrap();
        let first = (0..CpuSet::count()).find(|&cpu| before.is_set(cpu).unwrap()).unwrap();
        let after = std::thread::spawn(move || {
            assert!(bind(first));
            sched_getaffinity(THIS_THREAD).unwrap()
        });
        let after = after.join().unwrap();
        let set = (0..CpuSet::count()).filter(|&cpu| after.is_set(cpu).unwrap());
        assert_eq!(set.collect::<Vec<_>>(), [first]);
        assert_eq!(sched_getaffinity(THIS_THREAD).unwrap(), before, "other threads are left alone");
    }
}
