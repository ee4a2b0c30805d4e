//! The windows in which workers did not look at their sockets, with their known causes.

use plimsoll_measure::{Moment, Nanos};
use plimsoll_metrics::{DisturbedWindow, InstrumentHealth};

use crate::health::HostLog;
use crate::loop_watch::{Pause, Pauses};

/// Windows that are reported; beyond it the longest.
const MAX_WINDOWS: usize = 200;
/// The share of a window that a worker was busy, or waited for a CPU, from which on that is named.
const NAMED_SHARE: f64 = 0.25;

/// Pauses of several workers that overlap.
#[derive(Clone, Debug, Default)]
struct Window {
    from: Moment,
    to: Moment,
    /// The workers.
    workers: Vec<usize>,
    /// Sums over their pauses.
    paused: Nanos,
    busy: Nanos,
    waited: Nanos,
}

impl Window {
    fn add(&mut self, worker: usize, pause: &Pause) {
        self.to = self.to.max(pause.to);
        if !self.workers.contains(&worker) {
            self.workers.push(worker);
        }
        self.paused += pause.length();
        self.busy += pause.busy;
        self.waited += pause.waited;
    }

    const fn length(&self) -> Nanos {
        self.to.since(self.from)
    }
}

/// Fills in the disturbed windows of a run that began at `origin`.
pub(crate) fn fill(
    health: &mut InstrumentHealth,
    origin: Moment,
    workers: &[Pauses],
    host: &HostLog,
) {
    let mut windows = merge(workers);
    let all = windows.len();
    windows.sort_by_key(|window| std::cmp::Reverse(window.length()));
    windows.truncate(MAX_WINDOWS);
    windows.sort_by_key(|window| window.from);
    let omitted = workers.iter().map(|pauses| pauses.omitted).sum::<u64>();
    health.disturbed_windows_omitted = Some(omitted + (all - windows.len()) as u64);
    health.disturbed_windows = windows.iter().map(|window| report(window, origin, host)).collect();
}

/// The pauses of all workers in the order of time, those that overlap in one window.
fn merge(workers: &[Pauses]) -> Vec<Window> {
    let mut pauses: Vec<(usize, &Pause)> = workers
        .iter()
        .enumerate()
        .flat_map(|(worker, pauses)| pauses.kept.iter().map(move |pause| (worker, pause)))
        .collect();
    pauses.sort_by_key(|(_, pause)| pause.from);
    let mut windows: Vec<Window> = Vec::new();
    for (worker, pause) in pauses {
        if windows.last().is_none_or(|last| last.to < pause.from) {
            windows.push(Window { from: pause.from, to: pause.to, ..Window::default() });
        }
        if let Some(window) = windows.last_mut() {
            window.add(worker, pause);
        }
    }
    windows
}

fn report(window: &Window, origin: Moment, host: &HostLog) -> DisturbedWindow {
    DisturbedWindow {
        start_s: window.from.since(origin).as_secs_f64(),
        length_s: window.length().as_secs_f64(),
        workers: u32::try_from(window.workers.len()).unwrap_or(u32::MAX),
        causes: causes(window, host),
    }
}

/// Description of the known causes.
fn causes(window: &Window, host: &HostLog) -> Vec<String> {
    let mut causes = Vec::new();
    let paused_s = window.paused.as_secs_f64().max(1e-9);
    let withheld: Vec<_> = host.during(window.from, window.to).collect();
    let stolen = withheld.iter().map(|period| period.stolen).fold(0.0, f64::max);
    if stolen > 0.0 {
        causes.push(format!("the hypervisor withheld {:.0} % of the CPU time", stolen * 100.0));
    }
    let throttled: Nanos = withheld.iter().map(|period| period.throttled).sum();
    if throttled > Nanos::ZERO {
        let ms = throttled.as_millis_f64();
        causes.push(format!("the CPU quota held the process up for {ms:.0} ms"));
    }
    if window.waited.as_secs_f64() / paused_s >= NAMED_SHARE {
        let ms = window.waited.as_millis_f64();
        causes.push(format!("workers waited {ms:.0} ms for a CPU"));
    }
    if window.busy.as_secs_f64() / paused_s >= NAMED_SHARE {
        let ms = window.busy.as_millis_f64();
        causes.push(format!("workers were busy for {ms:.0} ms"));
    }
    if causes.is_empty() {
        causes
            .push("workers neither ran nor waited for a CPU: was the process stopped?".to_owned());
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    fn pause(from: u64, to: u64, busy: u64, waited: u64) -> Pause {
        let (busy, waited) = (Nanos::from_millis(busy), Nanos::from_millis(waited));
        Pause { from: at(from), to: at(to), busy, waited }
    }

    fn filled(workers: &[Pauses]) -> InstrumentHealth {
        let mut health = InstrumentHealth::default();
        fill(&mut health, at(1_000), workers, &HostLog::default());
        health
    }

    #[test]
    fn pauses_of_several_workers_at_the_same_time_are_one_window() {
        let first = vec![pause(1_100, 1_200, 2, 80), pause(1_500, 1_510, 9, 0)];
        let second = vec![pause(1_150, 1_250, 1, 90), pause(1_900, 2_000, 0, 0)];
        let health = filled(&[first, second].map(|kept| Pauses { kept, omitted: 3 }));
        let found: Vec<_> = health
            .disturbed_windows
            .iter()
            .map(|window| (window.start_s, window.length_s, window.workers))
            .collect();
        assert_eq!(found, [(0.1, 0.15, 2), (0.5, 0.01, 1), (0.9, 0.1, 1)]);
        let causes: Vec<_> =
            health.disturbed_windows.iter().flat_map(|window| &window.causes).collect();
        assert_eq!(
            causes,
            [
                "workers waited 170 ms for a CPU",
                "workers were busy for 9 ms",
                "workers neither ran nor waited for a CPU: was the process stopped?"
            ]
        );
        assert_eq!(health.disturbed_windows_omitted, Some(6));
    }

    #[test]
    fn the_longest_windows_are_reported_in_the_order_of_time() {
        let kept = (0..250).map(|n| pause(n * 1_000, n * 1_000 + 2 + n % 7, 0, 0)).collect();
        let health = filled(&[Pauses { kept, omitted: 0 }]);
        assert_eq!(health.disturbed_windows.len(), MAX_WINDOWS);
        assert_eq!(health.disturbed_windows_omitted, Some(50));
        assert!(health.disturbed_windows.is_sorted_by_key(|window| window.start_s));
        // 36 of the 250 windows are 2 ms long; the 14 other missing ones are 3 ms long.
        let lengths = health.disturbed_windows.iter().map(|window| window.length_s * 1e3);
        assert!((2.9..3.1).contains(&lengths.fold(f64::MAX, f64::min)));
    }
}
