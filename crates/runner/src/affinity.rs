//! CPU affinity of the calling thread. Threads and processes that it starts inherit it.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread, in the terms of the scheduler's calls.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// The CPUs that the calling thread may use, in ascending order; empty if they cannot be read.
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(THIS_THREAD) else { return Vec::new() };
    (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()
}

/// Restricts the calling thread, and everything that it starts from now on, to some CPUs.
///
/// # Errors
/// `cpus` is empty, or contains no CPU that this process may use.
pub fn pin_current_thread(cpus: &[usize]) -> nix::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu)?;
    }
    sched_setaffinity(THIS_THREAD, &set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_use_its_cpu_alone_and_others_are_left_as_they_were() {
        let before = allowed_cpus();
        let first = before[0];
        let after = std::thread::spawn(move || {
            pin_current_thread(&[first]).unwrap();
            // A thread inherits the CPUs of the pinned thread that starts it.
            std::thread::spawn(allowed_cpus).join().unwrap()
        });
        assert_eq!(after.join().unwrap(), [first]);
        assert_eq!(allowed_cpus(), before);
    }

    #[test]
    fn no_cpu_at_all_is_refused() {
        std::thread::spawn(|| assert!(pin_current_thread(&[]).is_err())).join().unwrap();
    }
}
