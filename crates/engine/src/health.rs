//! What the instrument costs and has at its disposal, read from the kernel.

use std::fs;

use nix::sys::resource::{Resource, Usage, UsageWho, getrlimit, getrusage};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::InstrumentHealth;

/// CPU time of a thread or process up to now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuTime {
    user: Nanos,
    system: Nanos,
    voluntary: u64,
    involuntary: u64,
}

impl CpuTime {
    /// Of the current thread.
    pub(crate) fn of_thread() -> Self {
        Self::read(UsageWho::RUSAGE_THREAD)
    }

    /// Of the whole process.
    pub(crate) fn of_process() -> Self {
        Self::read(UsageWho::RUSAGE_SELF)
    }

    fn read(who: UsageWho) -> Self {
        getrusage(who).map_or_else(|_| Self::default(), |usage| Self::from(&usage))
    }

    /// User and system time since `earlier`.
    pub(crate) fn busy_since(&self, earlier: &Self) -> Nanos {
        self.user.saturating_sub(earlier.user) + self.system.saturating_sub(earlier.system)
    }
}

impl From<&Usage> for CpuTime {
    fn from(usage: &Usage) -> Self {
        let count = |switches: i64| u64::try_from(switches).unwrap_or(0);
        Self {
            user: length(usage.user_time()),
            system: length(usage.system_time()),
            voluntary: count(usage.voluntary_context_switches()),
            involuntary: count(usage.involuntary_context_switches()),
        }
    }
}

fn length(time: nix::sys::time::TimeVal) -> Nanos {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Nanos::from_secs(part(time.tv_sec())) + Nanos::from_micros(part(time.tv_usec()))
}

/// A reading at the start of the load, to which one at the end is compared.
#[derive(Debug)]
pub(crate) struct Baseline {
    at: Moment,
    cpu: CpuTime,
    stolen: Option<(u64, u64)>,
}

impl Baseline {
    pub(crate) fn read(clock: &MonotonicClock) -> Self {
        Self { at: clock.now(), cpu: CpuTime::of_process(), stolen: stolen() }
    }

    /// Fills in what the process used since.
    pub(crate) fn fill(&self, clock: &MonotonicClock, health: &mut InstrumentHealth) {
        let cpu = CpuTime::of_process();
        health.wall_s = Some(clock.now().since(self.at).as_secs_f64());
        health.cpu_user_s = Some(cpu.user.saturating_sub(self.cpu.user).as_secs_f64());
        health.cpu_system_s = Some(cpu.system.saturating_sub(self.cpu.system).as_secs_f64());
        health.voluntary_switches = Some(cpu.voluntary.saturating_sub(self.cpu.voluntary));
        health.involuntary_switches = Some(cpu.involuntary.saturating_sub(self.cpu.involuntary));
        health.steal_share = self.stolen.zip(stolen()).and_then(|(before, after)| {
            let total = after.1.checked_sub(before.1).filter(|&total| total > 0)?;
            Some(after.0.saturating_sub(before.0) as f64 / total as f64)
        });
        health.fd_limit = getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft);
        health.ephemeral_ports =
            port_range().map(|(first, last)| u64::from(last.saturating_sub(first)) + 1);
    }
}

/// Stolen and total clock ticks of all CPUs (`/proc/stat`, proc(5)).
fn stolen() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest times are part of user.
    Some((*ticks.get(7)?, ticks.iter().take(8).sum()))
}

/// First and last local port for outgoing connections.
fn port_range() -> Option<(u16, u16)> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ports = range.split_whitespace().filter_map(|port| port.parse().ok());
    Some((ports.next()?, ports.next()?))
}

/// Descriptors that the process has open.
pub(crate) fn open_descriptors() -> Option<u64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}
