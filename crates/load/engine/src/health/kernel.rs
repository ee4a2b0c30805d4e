//! Counters in `/proc` and `/sys`: functions that read the files, and pure functions that parse
//! their text.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt as _;

use plimsoll_measure::Nanos;
use plimsoll_metrics::HostLoad;
use procfs::FromRead as _;
use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{Process, Schedstat};

/// Clock ticks of all CPUs since the host started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    cpus: u32,
    total: u64,
    idle: u64,
    stolen: u64,
}

impl CpuTicks {
    /// Reads the counters; `None` where the kernel has none.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The share of the time since `before` that the hypervisor withheld; `None` if no tick has
    /// passed.
    pub fn stolen_since(&self, before: &Self) -> Option<f64> {
        self.since(before).map(|load| load.stolen)
    }

    /// Activity of the CPUs since `before`; `None` if no tick has passed.
    pub(super) fn since(&self, before: &Self) -> Option<HostLoad> {
        let total = self.total.checked_sub(before.total).filter(|total| *total > 0)? as f64;
        let idle = self.idle.saturating_sub(before.idle) as f64 / total;
        let stolen = self.stolen.saturating_sub(before.stolen) as f64 / total;
        Some(HostLoad { cpus: self.cpus, busy: (1.0 - idle - stolen).max(0.0), stolen })
    }

    /// `proc_stat(5)`: user nice system idle iowait irq softirq steal; guest times are part of
    /// user.
    pub(super) fn parse(stat: &str) -> Option<Self> {
        let first = stat.lines().next()?.split_whitespace().skip(1);
        let ticks: Vec<u64> = first.filter_map(|number| number.parse().ok()).collect();
        let cpus = stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
        Some(Self {
            cpus: u32::try_from(cpus).ok()?,
            total: ticks.iter().take(8).sum(),
            idle: ticks.get(3)? + ticks.get(4)?,
            stolen: *ticks.get(7)?,
        })
    }
}

thread_local! {
    /// Each worker reads it some 250 times a second: opening it again would cost more than that.
    static SCHEDSTAT: Option<File> = File::open("/proc/thread-self/schedstat").ok();
}

/// Time that the current thread was ready to run and waited for a CPU.
pub(crate) fn waited() -> Option<Nanos> {
    // Three numbers of at most 20 digits.
    let mut text = [0; 64];
    let length = SCHEDSTAT.with(|file| file.as_ref()?.read_at(&mut text, 0).ok())?;
    let [_, waited] = times(&Schedstat::from_read(text.get(..length)?).ok()?);
    Some(waited)
}

/// Time on a CPU, and time ready to run without one.
pub(super) fn times(schedstat: &Schedstat) -> [Nanos; 2] {
    [schedstat.sum_exec_runtime, schedstat.run_delay].map(Nanos::new)
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

/// Local ports for outgoing connections.
pub(super) fn ephemeral_ports() -> Option<RangeInclusive<u16>> {
    ephemeral_ports_in(&fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

/// The first and the last of them.
fn ephemeral_ports_in(range: &str) -> Option<RangeInclusive<u16>> {
    let mut ports = range.split_whitespace().filter_map(|port| port.parse().ok());
    Some(ports.next()?..=ports.next()?)
}

/// Local ports that connections to one remote address have taken, of the one that has most of
/// them. Each local address has all ports for each remote address and port.
pub(super) fn ports_to_one_address(ports: &RangeInclusive<u16>) -> u64 {
    most_to_one_address(sockets(), ports)
}

/// The same of these sockets. A connection that its server closed waits with the server's port,
/// which is none of `ports`.
fn most_to_one_address(
    sockets: impl Iterator<Item = TcpNetEntry>,
    ports: &RangeInclusive<u16>,
) -> u64 {
    let mut taken: HashMap<_, u64> = HashMap::new();
    for socket in sockets {
        let local = socket.local_address;
        if ports.contains(&local.port()) && socket.state != TcpState::Listen {
            *taken.entry((local.ip(), socket.remote_address)).or_default() += 1;
        }
    }
    taken.into_values().max().unwrap_or_default()
}

/// Descriptors that the process has open.
pub(super) fn open_descriptors() -> Option<u64> {
    u64::try_from(Process::myself().ok()?.fd_count().ok()?).ok()
}

/// The TCP sockets of this network namespace.
pub(super) fn sockets() -> impl Iterator<Item = TcpNetEntry> {
    [procfs::net::tcp(), procfs::net::tcp6()].into_iter().flatten().flatten()
}

/// A process of this host, if it exists.
pub(super) fn process(pid: u32) -> Option<Process> {
    Process::new(i32::try_from(pid).ok()?).ok()
}

/// Every process that is visible here, with its id.
pub(super) fn processes() -> impl Iterator<Item = (u32, Process)> {
    let all = procfs::process::all_processes().into_iter().flatten().flatten();
    all.filter_map(|process| Some((u32::try_from(process.pid).ok()?, process)))
}

#[cfg(test)]
mod tests {
    use procfs::FromReadSI as _;
    use procfs::net::TcpNetEntries;

    use super::*;

    /// Two connections to port 8080 and one to 9090 of 127.0.0.1, from ports 50000 to 50002; the
    /// server's end of one that it closed, and a socket that listens.
    const TABLE: &str = "sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode\n\
        0: 0100007F:C350 0100007F:1F90 01 0:0 0:0 0 0 0 40\n\
        1: 0100007F:C351 0100007F:1F90 06 0:0 0:0 0 0 0 41\n\
        2: 0100007F:C352 0100007F:2382 01 0:0 0:0 0 0 0 42\n\
        3: 0100007F:1F90 0100007F:C353 06 0:0 0:0 0 0 0 43\n\
        4: 0100007F:C354 00000000:0000 0A 0:0 0:0 0 0 0 44\n";

    #[test]
    fn ports_are_taken_for_each_remote_address_apart() {
        let taken = |ports| {
            let table = TcpNetEntries::from_read(TABLE.as_bytes(), procfs::current_system_info());
            most_to_one_address(table.unwrap().0.into_iter(), &ports)
        };
        assert_eq!(taken(32_768..=60_999), 2);
        assert_eq!(taken(8_000..=9_000), 1);
        assert_eq!(taken(1..=2), 0);
    }

    #[test]
    fn an_open_connection_has_taken_a_port() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let open: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        assert!(ports_to_one_address(&ephemeral_ports().unwrap()) >= 3);
        drop(open);
    }

    #[test]
    fn the_kernels_files_are_parsed_as_their_manual_pages_say() {
        let stat = "cpu  100 1 20 800 5 0 3 7 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let ticks = CpuTicks::parse(stat).unwrap();
        assert_eq!((ticks.stolen, ticks.total, ticks.cpus), (7, 936, 1));
        let sockstat = "sockets: used 9\nTCP: inuse 4 orphan 0 tw 21 alloc 5 mem 0\n";
        assert_eq!(time_wait_in(sockstat), Some(21));
        assert_eq!(ephemeral_ports_in("32768\t60999\n"), Some(32_768..=60_999));
    }

    #[test]
    fn the_share_counts_only_the_time_between_two_readings() {
        let before = CpuTicks::parse("cpu  10 0 10 80 0 0 0 0 5 5\ncpu0 1 2 3\n").unwrap();
        let after = CpuTicks::parse("cpu  40 0 20 130 0 0 0 10 7 7\n").unwrap();
        assert_eq!((before.total, after.total), (100, 200));
        assert_eq!(after.stolen_since(&before), Some(0.1));
        assert_eq!(before.stolen_since(&before), None);
        assert_eq!(CpuTicks::parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn the_host_is_busy_where_it_neither_rests_nor_is_withheld() {
        let stat = |user, idle, stolen| {
            let text =
                format!("cpu  {user} 0 0 {idle} 10 0 0 {stolen} 5 0\ncpu0 1\ncpu1 1\nintr 7\n");
            CpuTicks::parse(&text).unwrap()
        };
        let load = stat(160, 130, 20).since(&stat(100, 100, 10)).unwrap();
        assert_eq!((load.cpus, load.busy, load.stolen), (2, 0.6, 0.1));
        assert_eq!(stat(1, 1, 1).since(&stat(1, 1, 1)), None);
        assert_eq!(CpuTicks::parse(""), None);
    }
}
