//! Resource use of this process, under the metric names of Prometheus' client libraries.

use std::fmt::Write as _;
use std::fs;

/// Ticks of CPU time in a second, as Linux shows them to programs (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

/// Appends the CPU time and memory of this process; appends nothing where the kernel does not
/// report them.
pub fn append(page: &mut String) {
    let cpu = cpu_s(&fs::read_to_string("/proc/self/stat").unwrap_or_default());
    metric(page, "process_cpu_seconds_total", "counter", "User and system CPU time.", cpu);
    let memory = resident("self");
    metric(page, "process_resident_memory_bytes", "gauge", "Memory that is resident.", memory);
}

/// Resident memory in bytes of a process, by its folder below `/proc` (`self` or its id).
pub fn resident(process: &str) -> Option<f64> {
    resident_bytes(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn metric(page: &mut String, name: &str, kind: &str, help: &str, value: Option<f64>) {
    if let Some(value) = value {
        // Writing to a string does not fail.
        let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
}

/// User and system time: fields 14 and 15 of `stat` (proc(5)), counted behind the program's name.
fn cpu_s(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut ticks = fields.split(' ').skip(11).map(|field| field.parse::<f64>().ok());
    Some((ticks.next()?? + ticks.next()??) / TICKS_PER_S)
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read_as_their_manual_says() {
        // A name with a parenthesis; utime 250 and stime 75 ticks.
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 75 0 0 20 0 1 0 9";
        assert_eq!(cpu_s(stat), Some(3.25));
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2_097_152.0));
        assert_eq!((cpu_s(""), resident_bytes("")), (None, None));
        let mut page = String::new();
        append(&mut page);
        assert_eq!(page.lines().count(), 6, "{page}");
    }
}
