//! Counters in `/proc` and `/sys`: functions that read the files, and pure functions that parse
//! their text.

use std::fs;

use plimsoll_measure::Nanos;

/// Stolen and total clock ticks of all CPUs.
pub(super) fn stolen() -> Option<(u64, u64)> {
    stolen_in(&fs::read_to_string("/proc/stat").ok()?)
}

/// `proc_stat(5)`: user nice system idle iowait irq softirq steal; guest times are part of user.
fn stolen_in(stat: &str) -> Option<(u64, u64)> {
    let ticks: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().take(8).sum()))
}

/// Time that the current thread was ready to run and waited for a CPU.
pub(super) fn waited() -> Option<Nanos> {
    waited_in(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Documentation/scheduler/sched-stats: time on the CPU, time waiting for it, time slices.
fn waited_in(schedstat: &str) -> Option<Nanos> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Nanos::new)
}

/// TCP segments sent again, by the whole network namespace.
pub(super) fn retransmits() -> Option<u64> {
    retransmits_in(&fs::read_to_string("/proc/net/snmp").ok()?)
}

/// RFC 1213, tcpRetransSegs: a line of names and a line of values.
fn retransmits_in(snmp: &str) -> Option<u64> {
    let mut tcp = snmp.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (tcp.next()?, tcp.next()?);
    let place = names.split_whitespace().position(|name| name == "RetransSegs")?;
    values.split_whitespace().nth(place)?.parse().ok()
}

/// Connections whose port is not yet released, in the whole network namespace.
pub(super) fn time_wait() -> Option<u64> {
    time_wait_in(&fs::read_to_string("/proc/net/sockstat").ok()?)
}

fn time_wait_in(sockstat: &str) -> Option<u64> {
    let tcp = sockstat.lines().find(|line| line.starts_with("TCP:"))?;
    let mut words = tcp.split_whitespace().skip_while(|word| *word != "tw");
    words.nth(1)?.parse().ok()
}

/// Time for which the control group's CPU quota held its processes up; `None` without a quota.
pub(super) fn throttled() -> Option<Nanos> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut stats = cpu_stats(&groups).into_iter().map(fs::read_to_string);
    throttled_in(&stats.find_map(Result::ok)?)
}

/// Where a process in these control groups may find its `cpu.stat`: in a container the group's own
/// path is often not visible, and the root is the group.
fn cpu_stats(groups: &str) -> Vec<String> {
    let lines = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let mounts = lines.filter_map(|(controllers, path)| match controllers {
        "" => Some(("/sys/fs/cgroup".to_owned(), path)),
        names if names.split(',').any(|name| name == "cpu") => {
            Some((format!("/sys/fs/cgroup/{names}"), path))
        }
        _ => None,
    });
    let paths = |(mount, path): (String, &str)| {
        let path = path.trim_end_matches('/');
        [format!("{mount}{path}/cpu.stat"), format!("{mount}/cpu.stat")]
    };
    mounts.flat_map(paths).collect()
}

/// Microseconds in version 2 of control groups, nanoseconds in version 1.
fn throttled_in(cpu_stat: &str) -> Option<Nanos> {
    let value = |name: &str| {
        let line = cpu_stat.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    let micros = value("throttled_usec ").map(Nanos::from_micros);
    micros.or_else(|| value("throttled_time ").map(Nanos::new))
}

/// Local ports for outgoing connections.
pub(super) fn ephemeral_ports() -> Option<u64> {
    ephemeral_ports_in(&fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

/// The first and the last of them.
fn ephemeral_ports_in(range: &str) -> Option<u64> {
    let mut ports = range.split_whitespace().filter_map(|port| port.parse::<u64>().ok());
    let (first, last) = (ports.next()?, ports.next()?);
    Some(last.saturating_sub(first) + 1)
}

/// Descriptors that the process has open.
pub(super) fn open_descriptors() -> Option<u64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_parsed_as_their_manual_pages_say() {
        let stat = "cpu  100 1 20 800 5 0 3 7 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(stolen_in(stat), Some((7, 936)));
        assert_eq!(waited_in("120000 4500 17\n"), Some(Nanos::new(4_500)));
        let snmp =
            "Ip: Forwarding\nIp: 1\nTcp: RtoMin InSegs RetransSegs InErrs\nTcp: 200 981 13 0\n";
        assert_eq!(retransmits_in(snmp), Some(13));
        let sockstat = "sockets: used 9\nTCP: inuse 4 orphan 0 tw 21 alloc 5 mem 0\n";
        assert_eq!(time_wait_in(sockstat), Some(21));
        assert_eq!(ephemeral_ports_in("32768\t60999\n"), Some(28_232));
        let second = "usage_usec 5\nnr_throttled 2\nthrottled_usec 1500\n";
        assert_eq!(throttled_in(second), Some(Nanos::from_micros(1_500)));
        let first = "nr_periods 9\nnr_throttled 2\nthrottled_time 7000\n";
        assert_eq!(throttled_in(first), Some(Nanos::new(7_000)));
        assert_eq!(throttled_in("usage_usec 5\n"), None);
    }

    #[test]
    fn the_quota_is_looked_for_in_the_groups_of_either_version() {
        assert_eq!(
            cpu_stats("0::/user.slice/run\n"),
            ["/sys/fs/cgroup/user.slice/run/cpu.stat", "/sys/fs/cgroup/cpu.stat"]
        );
        assert_eq!(
            cpu_stats("5:cpuset:/\n3:cpu,cpuacct:/box\n"),
            ["/sys/fs/cgroup/cpu,cpuacct/box/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/cpu.stat"]
        );
    }
}
