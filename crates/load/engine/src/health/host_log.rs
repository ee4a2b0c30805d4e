//! Resources that the host withheld from the generator during the load, reported as causes.

use plimsoll_measure::{Moment, Nanos};

use super::cgroup;
use super::kernel::CpuTicks;

/// Time between two readings.
const PERIOD: Nanos = Nanos::from_millis(200);
/// The least share of stolen CPU time that is noted: the kernel counts it in ticks of 10 ms.
const MIN_STEAL: f64 = 0.05;
/// Periods that are kept.
const MAX_PERIODS: usize = 10_000;

/// A period in which the host withheld something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WithheldPeriod {
    pub(crate) from: Moment,
    pub(crate) to: Moment,
    /// Share of the CPU time that the hypervisor withheld.
    pub(crate) stolen: f64,
    /// How long the control group's quota held the process up.
    pub(crate) throttled: Nanos,
}

/// Counters of the host at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    at: Moment,
    ticks: Option<CpuTicks>,
    throttled: Option<Nanos>,
}

/// The periods of a run in which the host withheld something.
#[derive(Debug, Default)]
pub(crate) struct HostLog {
    last: Option<Reading>,
    periods: Vec<WithheldPeriod>,
}

impl HostLog {
    /// Reads the counters, if that is due.
    pub(crate) fn read_if_due(&mut self, now: Moment) {
        if self.last.is_none_or(|last| now.since(last.at) >= PERIOD) {
            self.note(Reading { at: now, ticks: CpuTicks::read(), throttled: cgroup::throttled() });
        }
    }

    fn note(&mut self, reading: Reading) {
        let Some(last) = self.last.replace(reading) else { return };
        let ticks = last.ticks.zip(reading.ticks);
        let stolen = ticks.and_then(|(before, after)| after.stolen_since(&before)).unwrap_or(0.0);
        let throttled = last.throttled.zip(reading.throttled);
        let throttled =
            throttled.map_or(Nanos::ZERO, |(before, after)| after.saturating_sub(before));
        let withheld = stolen >= MIN_STEAL || throttled > Nanos::ZERO;
        if withheld && self.periods.len() < MAX_PERIODS {
            let (from, to) = (last.at, reading.at);
            self.periods.push(WithheldPeriod { from, to, stolen, throttled });
        }
    }

    /// The periods that overlap with a window.
    pub(crate) fn during(
        &self,
        from: Moment,
        to: Moment,
    ) -> impl Iterator<Item = &WithheldPeriod> + '_ {
        let first = self.periods.partition_point(|period| period.to <= from);
        self.periods[first..].iter().take_while(move |period| period.from < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_without_steal_and_throttling_are_not_kept() {
        let at = |ms| Moment::EPOCH + Nanos::from_millis(ms);
        let mut log = HostLog::default();
        for (ms, stolen, total, throttled) in
            [(0, 5, 100, 7), (200, 6, 140, 7), (400, 16, 180, 7), (600, 16, 220, 57)]
        {
            log.note(Reading {
                at: at(ms),
                ticks: CpuTicks::parse(&format!("cpu {} 0 0 0 0 0 0 {stolen}", total - stolen)),
                throttled: Some(Nanos::from_millis(throttled)),
            });
        }
        let found: Vec<_> = log.during(at(0), at(1_000)).collect();
        let steal =
            WithheldPeriod { from: at(200), to: at(400), stolen: 0.25, ..Default::default() };
        let throttled = Nanos::from_millis(50);
        let quota = WithheldPeriod { from: at(400), to: at(600), stolen: 0.0, throttled };
        assert_eq!(found, [&steal, &quota]);
        assert_eq!(log.during(at(300), at(350)).count(), 1);
        assert_eq!(log.during(at(0), at(200)).count(), 0);
    }
}
