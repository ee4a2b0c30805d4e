//! The resources that the generator uses and has available, read from the kernel.

pub(crate) mod cgroup;
mod host_log;
pub(crate) mod kernel;
pub(crate) mod listener;
pub(crate) mod metrics_page;
pub(crate) mod page_watch;
pub(crate) mod process;
pub(crate) mod process_tree;
pub(crate) mod server_page;
pub(crate) mod substrate;
mod threads;

pub(crate) use host_log::HostLog;
use kernel::CpuTicks;
use nix::sys::resource::{Resource, Usage, UsageWho, getrlimit, getrusage};
use plimsoll_measure::{Clock, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::InstrumentHealth;

/// CPU time of a thread or process up to now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuTime {
    user: Nanos,
    system: Nanos,
    /// Time ready to run without a CPU; of a thread only.
    waited: Nanos,
}

impl CpuTime {
    /// Usage of the current thread.
    pub(crate) fn of_thread() -> Self {
        let waited = kernel::waited().unwrap_or_default();
        Self { waited, ..Self::read(UsageWho::RUSAGE_THREAD) }
    }

    /// Usage of the whole process.
    pub(crate) fn of_process() -> Self {
        Self::read(UsageWho::RUSAGE_SELF)
    }

    /// Time spent waiting for a CPU since `earlier`.
    pub(crate) fn waited_since(&self, earlier: &Self) -> Nanos {
        self.waited.saturating_sub(earlier.waited)
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
        Self {
            user: nanos(usage.user_time()),
            system: nanos(usage.system_time()),
            waited: Nanos::ZERO,
        }
    }
}

fn nanos(time: nix::sys::time::TimeVal) -> Nanos {
    Nanos::from_secs(unsigned(time.tv_sec())) + Nanos::from_micros(unsigned(time.tv_usec()))
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A reading at the start of the load, for comparison with one at the end.
#[derive(Debug)]
pub(crate) struct Baseline {
    at: Moment,
    cpu: CpuTime,
    clock_step: Option<Nanos>,
    stolen: Option<CpuTicks>,
    throttled: Option<Nanos>,
}

impl Baseline {
    pub(crate) fn read(clock: &MonotonicClock) -> Self {
        Self {
            at: clock.now(),
            cpu: CpuTime::of_process(),
            clock_step: clock_step(clock),
            stolen: CpuTicks::read(),
            throttled: cgroup::throttled(),
        }
    }

    /// Fills in the usage of the process since then.
    pub(crate) fn fill(&self, clock: &MonotonicClock, health: &mut InstrumentHealth) {
        let wall = clock.now().since(self.at).as_secs_f64();
        health.wall_s = Some(wall);
        self.fill_cpu(health);
        health.clock_step_ns = self.clock_step.map(Nanos::as_u64);
        let ticks = self.stolen.zip(CpuTicks::read());
        health.steal_share = ticks.and_then(|(before, after)| after.stolen_since(&before));
        let throttled = self.throttled.zip(cgroup::throttled());
        health.throttled_share =
            throttled.map(|(before, after)| after.saturating_sub(before).as_secs_f64() / wall);
        health.fd_limit = getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft);
        health.ephemeral_ports = kernel::ephemeral_ports().map(|ports| ports.len() as u64);
    }

    fn fill_cpu(&self, health: &mut InstrumentHealth) {
        let cpu = CpuTime::of_process();
        health.cpu_user_s = Some(cpu.user.saturating_sub(self.cpu.user).as_secs_f64());
        health.cpu_system_s = Some(cpu.system.saturating_sub(self.cpu.system).as_secs_f64());
    }
}

/// The smallest step between readings of a clock: its precision, or the time that a reading takes,
/// whichever is larger. `None` for a clock that does not move within a million readings (20 ms).
fn clock_step(clock: &impl Clock) -> Option<Nanos> {
    let mut last = clock.now();
    let steps = (0..1_000_000).filter_map(|_| {
        let before = std::mem::replace(&mut last, clock.now());
        Some(last.since(before)).filter(|step| *step > Nanos::ZERO)
    });
    steps.take(64).min()
}

/// Peak use of resources that have a limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peaks {
    descriptors: Option<u64>,
    /// The ports in use, or an upper bound that is far below their number: every open descriptor
    /// may be a connection with its own port, and connections in `TIME_WAIT` are counted for the
    /// whole host.
    ports: Option<u64>,
    /// The upper bound at which they were last counted.
    counted_at: u64,
}

/// The ports in use are counted again where there may be a tenth more of them: a count reads a line
/// for each connection of the host.
const COUNTED_ABOVE: u64 = 10;

impl Peaks {
    /// Raises the peaks to the current use.
    pub(crate) fn update(&mut self) {
        let open = kernel::open_descriptors();
        self.descriptors = self.descriptors.max(open);
        let most = open.zip(kernel::time_wait()).map(|(open, waiting)| open + waiting);
        let Some((most, range)) = most.zip(kernel::ephemeral_ports()) else { return };
        if most <= range.len() as u64 / 4 * 3 {
            self.ports = self.ports.max(Some(most));
        } else if most > self.counted_at + self.counted_at / COUNTED_ABOVE {
            self.counted_at = most;
            self.ports = self.ports.max(Some(kernel::ports_to_one_address(&range)));
        }
    }

    /// Fills in the peaks.
    pub(crate) const fn fill(&self, health: &mut InstrumentHealth) {
        (health.fd_peak, health.ports_peak) = (self.descriptors, self.ports);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Moves on by 250 ns at every fourth reading.
    #[derive(Default)]
    struct Coarse(Cell<u64>);

    impl Clock for Coarse {
        fn now(&self) -> Moment {
            self.0.set(self.0.get() + 1);
            Moment::from_nanos(self.0.get() / 4 * 250)
        }
    }

    #[test]
    fn the_step_of_a_coarse_clock_is_found() {
        assert_eq!(clock_step(&Coarse::default()), Some(Nanos::new(250)));
        assert_eq!(clock_step(&plimsoll_measure::ManualClock::default()), None);
    }
}
