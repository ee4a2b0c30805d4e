//! CPU affinity: each worker is bound to one CPU.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread, for the scheduler's calls.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// CPUs for `workers` threads, one each, out of those that this process may use; `None` where that
/// is useless or impossible: a single CPU, or fewer CPUs than workers.
pub(crate) fn choose_cpus(workers: u16) -> Option<Vec<usize>> {
    let set = sched_getaffinity(THIS_THREAD).ok()?;
    let allowed = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false));
    choose(&allowed.collect::<Vec<_>>(), workers)
}

/// The last of the allowed ones: interrupts and other processes are usually on the first.
fn choose(allowed: &[usize], workers: u16) -> Option<Vec<usize>> {
    let spare = allowed.len().checked_sub(usize::from(workers))?;
    (allowed.len() > 1).then(|| allowed[spare..].to_vec())
}

/// Binds the calling thread to one CPU; false if the kernel refuses.
pub(crate) fn pin_current_thread(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu).is_ok() && sched_setaffinity(THIS_THREAD, &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_gets_its_own_allowed_cpu_or_none_is_bound() {
        for (allowed, workers, choose_cpus) in [
            (&[0, 1, 2, 3][..], 2, Some(vec![2, 3])),
            (&[2, 5], 2, Some(vec![2, 5])),
            (&[2, 5], 3, None),
            (&[0], 1, None),
            (&[], 1, None),
        ] {
            assert_eq!(choose(allowed, workers), choose_cpus, "{allowed:?} {workers}");
        }
    }

    #[test]
    fn a_bound_thread_may_use_its_cpu_alone() {
        let before = sched_getaffinity(THIS_THREAD).unwrap();
        let first = (0..CpuSet::count()).find(|&cpu| before.is_set(cpu).unwrap()).unwrap();
        let after = std::thread::spawn(move || {
            assert!(pin_current_thread(first));
            sched_getaffinity(THIS_THREAD).unwrap()
        });
        let after = after.join().unwrap();
        let set = (0..CpuSet::count()).filter(|&cpu| after.is_set(cpu).unwrap());
        assert_eq!(set.collect::<Vec<_>>(), [first]);
        assert_eq!(sched_getaffinity(THIS_THREAD).unwrap(), before, "other threads are left alone");
    }
}
