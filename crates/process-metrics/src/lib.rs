//! Resource use of this process, under the metric names of Prometheus' client libraries.

use std::fmt::Write as _;
use std::path::Path;

use procfs::process::{Process, Stat};

/// Appends the CPU time and memory of this process; appends nothing where the kernel does not
/// report them.
pub fn append(page: &mut String) {
    let cpu = process("self")
        .map(|stat| (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64);
    metric(page, "process_cpu_seconds_total", "counter", "User and system CPU time.", cpu);
    let memory = resident("self");
    metric(page, "process_resident_memory_bytes", "gauge", "Memory that is resident.", memory);
}

/// Resident memory in bytes of a process, by its folder below `/proc` (`self` or its id).
pub fn resident(folder: &str) -> Option<f64> {
    process(folder).map(|stat| (stat.rss * procfs::page_size()) as f64)
}

fn process(folder: &str) -> Option<Stat> {
    Process::new_with_root(Path::new("/proc").join(folder)).ok()?.stat().ok()
}

fn metric(page: &mut String, name: &str, kind: &str, help: &str, value: Option<f64>) {
    if let Some(value) = value {
        // Writing to a string does not fail.
        let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_use_of_this_process() {
        let mut page = String::new();
        append(&mut page);
        assert_eq!(page.lines().count(), 6, "{page}");
        assert!(resident("self") > Some(100_000.0));
        assert_eq!(resident("4194305"), None, "above the highest id of Linux");
    }
}
