//! The properties of this machine that reports show, read from the kernel.

mod cpu;
pub(crate) mod place;

use std::collections::BTreeMap;
use std::fs;

use plimsoll_engine::{CpuTicks, cpu_quota};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::Environment;

use crate::fd_limit::FdLimit;
use plimsoll_runner::time::sleep;

pub(crate) use cpu::count as processor_count;

/// The shortest time over which stolen CPU time is measured.
const STEAL_INTERVAL: Nanos = Nanos::from_millis(50);

/// A scan of the machine. Measuring the CPU time that the hypervisor steals takes time, so the scan
/// has a start and an end.
pub(crate) struct EnvironmentScan {
    environment: Environment,
    before: Option<CpuTicks>,
    clock: MonotonicClock,
}

impl EnvironmentScan {
    /// Reads everything but the stolen CPU time, which is measured from now on.
    pub(crate) fn start(fd_limit: Option<FdLimit>) -> Self {
        let (before, clock) = (CpuTicks::read(), MonotonicClock::start());
        Self { environment: read_files(fd_limit), before, clock }
    }

    /// The environment without the stolen CPU time.
    pub(crate) fn so_far(&self) -> Environment {
        self.environment.clone()
    }

    /// The whole environment. Waits until the stolen CPU time was measured for long enough.
    pub(crate) fn finish(self) -> Environment {
        sleep(STEAL_INTERVAL.saturating_sub(self.clock.now().since(Moment::EPOCH)));
        let ticks = self.before.zip(CpuTicks::read());
        let steal_share = ticks.and_then(|(before, after)| after.stolen_since(&before));
        Environment { steal_share, ..self.environment }
    }
}

/// The environment as reports show it. Takes 50 ms, over which stolen CPU time is measured.
pub(crate) fn read(fd_limit: Option<FdLimit>) -> Environment {
    EnvironmentScan::start(fd_limit).finish()
}

fn read_files(fd_limit: Option<FdLimit>) -> Environment {
    Environment {
        cpu_model: file("/proc/cpuinfo").and_then(|text| cpu::model(&text)),
        cpu_count: file("/sys/devices/system/cpu/online").and_then(|text| cpu::count(&text)),
        cpu_quota: cpu_quota(),
        cpu_affinity: file("/proc/self/status").and_then(|text| cpu::affinity(&text)),
        cpu_governor: file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_bytes: memory("MemTotal"),
        kernel: kernel(),
        clock_source: file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        fd_limit: fd_limit.map(|fd_limit| fd_limit.now),
        port_range: file("/proc/sys/net/ipv4/ip_local_port_range").and_then(|text| pair(&text)),
        link_mbit: link_mbit(),
        load_average: file("/proc/loadavg").and_then(|text| load_average(&text)),
        steal_share: None,
        versions: versions(),
    }
}

/// The content of a kernel file, without the line end.
pub(crate) fn file(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// A number in a kernel file.
pub(crate) fn number(path: &str) -> Option<u64> {
    file(path)?.parse().ok()
}

/// A size of `/proc/meminfo`, in bytes.
pub(crate) fn memory(name: &str) -> Option<u64> {
    meminfo(&file("/proc/meminfo")?, name)
}

fn meminfo(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn kernel() -> Option<String> {
    let (system, release) = (file("/proc/sys/kernel/ostype")?, file("/proc/sys/kernel/osrelease")?);
    Some(format!("{system} {release}"))
}

/// The speed of the fastest network card that says one.
fn link_mbit() -> Option<f64> {
    let cards = fs::read_dir("/sys/class/net").ok()?;
    let speeds = cards.filter_map(|card| {
        let speed = fs::read_to_string(card.ok()?.path().join("speed")).ok()?;
        speed.trim().parse::<f64>().ok()
    });
    speeds.filter(|speed| *speed > 0.0).reduce(f64::max)
}

fn pair(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once(char::is_whitespace)?;
    Some((first.parse().ok()?, last.trim().parse().ok()?))
}

fn load_average(text: &str) -> Option<(f64, f64, f64)> {
    let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?, numbers.next()?))
}

fn versions() -> BTreeMap<String, String> {
    let features = if cfg!(feature = "jemalloc") { "jemalloc" } else { "none" };
    let platform = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    [
        ("plimsoll", env!("CARGO_PKG_VERSION")),
        ("build", env!("PLIMSOLL_BUILD_PROFILE")),
        ("features", features),
        ("platform", &platform),
    ]
    .map(|(name, version)| (name.to_owned(), version.to_owned()))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_are_parsed() {
        assert_eq!(pair("32768\t60999"), Some((32_768, 60_999)));
        assert_eq!(pair("1"), None);
        assert_eq!(load_average("0.25 1.50 12.00 3/123 4567"), Some((0.25, 1.5, 12.0)));
        assert_eq!(load_average("0.25 x"), None);
        let text =
            "MemTotal:       24643248 kB\nMemFree:         123 kB\nMemAvailable:  22000000 kB";
        assert_eq!(meminfo(text, "MemTotal"), Some(24_643_248 * 1024));
        assert_eq!(meminfo(text, "MemAvailable"), Some(22_000_000 * 1024));
        assert_eq!(meminfo(text, "Mem"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_memory_and_ports() {
        let environment = read(None);
        assert!(environment.kernel.is_some() && environment.memory_bytes.is_some());
        assert!(environment.port_range.is_some_and(|(first, last)| first < last));
        assert!(environment.cpu_count.is_some_and(|count| count >= 1));
        assert_eq!(environment.fd_limit, None);
    }
}
