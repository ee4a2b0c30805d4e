//! Steal: CPU time that the hypervisor gave to other virtual machines.

use super::file;

/// CPU time of all processors since boot, in clock ticks (`/proc/stat`, proc(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    stolen: u64,
    all: u64,
}

impl CpuTicks {
    /// Reads the counters.
    pub(crate) fn read() -> Option<Self> {
        Self::parse(&file("/proc/stat")?)
    }

    /// The share of time stolen since the earlier ticks; `None` if no tick has passed.
    pub(crate) fn share_since(before: Option<Self>) -> Option<f64> {
        Self::read()?.share(before?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest times are part of user.
        Some(Self { stolen: *ticks.get(7)?, all: ticks.iter().take(8).sum() })
    }

    fn share(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        Some(self.stolen.saturating_sub(before.stolen) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_counts_only_the_time_between_two_readings() {
        let before = CpuTicks::parse("cpu  10 0 10 80 0 0 0 0 5 5\ncpu0 1 2 3\n").unwrap();
        let after = CpuTicks::parse("cpu  40 0 20 130 0 0 0 10 7 7\n").unwrap();
        assert_eq!((before.all, after.all), (100, 200));
        assert_eq!(after.share(before), Some(0.1));
        assert_eq!(before.share(before), None);
        assert_eq!(CpuTicks::parse("cpu  1 2 3\n"), None);
    }
}
