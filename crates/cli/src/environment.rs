//! The properties of this machine that reports show, read from the kernel.

use std::collections::BTreeMap;
use std::fs::{self, File};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use plimsoll_engine::{CpuTicks, cpu_quota};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::Environment;
use plimsoll_runner::time::sleep;

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
        cpu_model: file("/proc/cpuinfo").and_then(|text| model(&text)),
        cpu_count: file("/sys/devices/system/cpu/online").and_then(|text| count_processors(&text)),
        cpu_quota: cpu_quota(),
        cpu_affinity: file("/proc/self/status").and_then(|text| affinity(&text)),
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

/// The speed of the fastest network card that reports one.
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

// The processors, read from `/proc` and `/sys`.

/// The model of the first processor in `/proc/cpuinfo`; missing on some architectures.
fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The number of processors in a list like `0-3,8`.
pub(crate) fn count_processors(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The processors that this process may run on (`/proc/self/status`).
fn affinity(status: &str) -> Option<String> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

// Location and limits of this machine, as far as its files show them: for the reports of suites.

/// Name and value of each known fact.
pub(crate) fn place_lines() -> Vec<(String, String)> {
    [
        ("instance", instance()),
        ("distribution", file("/etc/os-release").and_then(|text| distribution(&text))),
        ("limits", limits()),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

/// The maker and the product: in clouds often the type of the instance.
fn instance() -> Option<String> {
    let parts: Vec<_> = ["sys_vendor", "product_name"]
        .into_iter()
        .filter_map(|name| file(&format!("/sys/class/dmi/id/{name}")))
        .collect();
    let text = parts.join(", ");
    (!text.is_empty()).then_some(text)
}

/// `PRETTY_NAME` of os-release(5).
fn distribution(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

/// Limits of this process's control group (cgroups(7), version 2).
fn limits() -> Option<String> {
    let groups = file("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let [cpu, memory, processes] = ["cpu.max", "memory.max", "pids.max"].map(|name| {
        let own = file(&format!("/sys/fs/cgroup{}/{name}", group.trim_end_matches('/')));
        // In a container the own group is mounted as the root.
        own.or_else(|| file(&format!("/sys/fs/cgroup/{name}")))
    });
    let cpu = cpu.and_then(|text| cores(&text));
    let others = [("bytes of memory", memory), ("processes", processes)];
    let others = others.into_iter().filter_map(|(what, limit)| {
        limit.filter(|limit| limit != "max").map(|limit| format!("{what} {limit}"))
    });
    let parts: Vec<_> =
        cpu.map(|cores| format!("{cores} cores")).into_iter().chain(others).collect();
    let text =
        if parts.is_empty() { "none in its control group".to_owned() } else { parts.join(", ") };
    Some(text)
}

/// `cpu.max`: microseconds of CPU time in a period, and the period.
fn cores(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?)
}

// The limit on open files, and the kernel's table of them. Every connection takes one descriptor.

/// Descriptors that a run needs besides its connections.
const RESERVED: u64 = 64;

/// Descriptors that the kernel's table has room for from the start: 8 bytes each.
const TABLE: u64 = 65_536;

/// The limit on open files, raised as far as the system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FdLimit {
    /// The limit when the process started.
    pub(crate) before: u64,
    /// The limit now.
    pub(crate) now: u64,
}

impl FdLimit {
    /// Raises the soft limit to the hard one, and has the table of open files made once and for
    /// all. Call it before the process has threads. `None` where the system does not report its
    /// limits.
    pub(crate) fn raise() -> Option<Self> {
        let (before, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        if before < hard {
            // If the system refuses, the old limit holds and is reported.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
        let (now, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        reserve_table(now.min(TABLE));
        Some(Self { before, now })
    }

    /// The message for the user, if the limit was raised.
    pub(crate) fn raised_message(self) -> Option<String> {
        let Self { before, now } = self;
        (now > before).then(|| format!("limit on open files raised from {before} to {now}"))
    }

    /// The warning for the user, if a load may need more descriptors than the limit.
    pub(crate) fn warning(self, connections: u64) -> Option<String> {
        let now = self.now;
        (connections + RESERVED > now).then(|| {
            format!(
                "the load may need {connections} connections, but only {now} files may be open; raise the hard limit (`ulimit -Hn`), or divide the load with --shard"
            )
        })
    }
}

/// Makes the kernel enlarge the table of open files to this size.
///
/// The table grows when descriptor 256, 512, 1024 and so on is opened. In a process with threads
/// the kernel then waits until no CPU can still read the old one (`expand_fdtable` calls
/// `synchronize_rcu`), some 10 to 20 ms in which the thread that opens a connection is blocked. The
/// table never shrinks, so opening and closing one descriptor is enough.
fn reserve_table(files: u64) {
    let highest = i32::try_from(files).unwrap_or(i32::MAX) - 1;
    // Without it the load may pause briefly, which is reported: not worth an error.
    if let Ok(any) = File::open("/dev/null")
        && let Ok(taken) = fcntl(&any, FcntlArg::F_DUPFD_CLOEXEC(highest))
    {
        let _ = nix::unistd::close(taken);
    }
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

#[cfg(test)]
mod cpu_tests {
    use super::*;

    #[test]
    fn the_model_is_that_of_the_first_processor() {
        let text =
            "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.50GHz\nmodel name\t: other";
        assert_eq!(model(text).as_deref(), Some("Some CPU @ 2.50GHz"));
        assert_eq!(model("processor\t: 0"), None);
    }

    #[test]
    fn lists_of_processors_are_counted() {
        for (list, number) in [
            ("0", Some(1)),
            ("0-3,8", Some(5)),
            ("0-0", Some(1)),
            ("", None),
            ("3-1", None),
            ("a", None),
        ] {
            assert_eq!(count_processors(list), number, "{list}");
        }
    }

    #[test]
    fn the_affinity_is_a_list() {
        let text = "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nMems_allowed:\t1";
        assert_eq!(affinity(text).as_deref(), Some("0-1"));
    }
}

#[cfg(test)]
mod place_tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_parsed() {
        let text = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n";
        assert_eq!(distribution(text).as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!(distribution("PRETTY_NAME='Arch Linux'").as_deref(), Some("Arch Linux"));
        assert_eq!(distribution("NAME=x"), None);
        assert_eq!(cores("150000 100000"), Some(1.5));
        assert_eq!(cores("max 100000"), None);
    }
}

#[cfg(test)]
mod fd_limit_tests {
    use super::*;

    #[test]
    fn only_a_raised_or_a_low_limit_gives_a_message() {
        let raised = FdLimit { before: 1_024, now: 4_096 };
        assert_eq!(
            raised.raised_message().as_deref(),
            Some("limit on open files raised from 1024 to 4096")
        );
        assert_eq!(FdLimit { before: 4_096, now: 4_096 }.raised_message(), None);
        assert_eq!(raised.warning(4_032), None);
        assert!(raised.warning(4_033).is_some());
    }

    /// The kernel tells the size of the table.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_table_has_room_for_all_connections_before_the_first() {
        let limit = FdLimit::raise().unwrap().now;
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        assert!(size.trim().parse::<u64>().unwrap() >= limit.min(TABLE), "{size}");
    }

    #[test]
    fn raising_twice_changes_nothing_more() {
        let first = FdLimit::raise().unwrap();
        let second = FdLimit::raise().unwrap();
        assert_eq!(second, FdLimit { before: first.now, now: first.now });
    }
}
