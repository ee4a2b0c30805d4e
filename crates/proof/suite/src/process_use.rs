//! CPU time and memory of the processes of a measurement, and whether others used their host.

use plimsoll_engine::WatchedProcess;
use plimsoll_metrics::{ProcessUse, RunSummary};
use plimsoll_report::format::percent;

use crate::cores::Cores;
use crate::figures::BusyShares;
use crate::target::SuiteTarget;

/// A load that waited for a core for more than this share of the time, beyond that explained by the
/// suite's own processes, had a busy host.
const MOST_WAITING: f64 = 0.25;
/// The same, if it waited longer than it ran. Less is the ordinary price of a wake-up: some
/// microseconds of each of many thousands a second.
const MOST_OF_ITS_TIME: f64 = 0.1;

/// Load of other processes and machines on this host, by rule 701; `None` if it was quiet.
pub(crate) fn busy_host(summary: &RunSummary) -> Option<String> {
    let busy = summary.findings.iter().find(|finding| finding.code == 701)?;
    let reasons =
        [("others", "other programs used"), ("stolen", "steal"), ("throttled", "CPU throttling")];
    reasons.iter().find_map(|(key, words)| Some(format!("{words} {}", busy.values.get(*key)?)))
}

/// Load of other processes on the cores of the load, by the time that it waited for them.
pub(crate) fn busy_core(busy: &BusyShares, cores: &Cores) -> Option<String> {
    // Where the kernel chooses the cores, the gateway under test also runs on the cores of the
    // load.
    let own = match (cores.gateway, cores.shared()) {
        (None, _) => [busy.provider, busy.store, busy.gateway],
        (Some(_), true) => [busy.provider, busy.store, None],
        (Some(_), false) => [None; 3],
    };
    let waited = busy.waited? - own.into_iter().flatten().sum::<f64>();
    let ran = busy.busiest_worker.or(busy.generator).unwrap_or(0.0);
    let is_busy = waited > MOST_WAITING || (waited > MOST_OF_ITS_TIME && waited > ran);
    is_busy.then(|| format!("the load waited {} for a core", percent(waited)))
}

pub(crate) const GATEWAY: &str = "gateway";
pub(crate) const PROVIDER: &str = "provider";
pub(crate) const STORE: &str = "store";

/// The processes of a target, each by its part.
pub(crate) const fn parts(target: &SuiteTarget) -> [(&'static str, Option<u32>); 3] {
    [(GATEWAY, target.gateway_pid), (PROVIDER, target.provider_pid), (STORE, target.store_pid)]
}

/// The known processes, whose CPU time is measured.
pub(crate) fn watched<'n>(
    processes: impl IntoIterator<Item = (&'n str, Option<u32>)>,
) -> Vec<WatchedProcess> {
    let known = processes.into_iter().filter_map(|(name, pid)| Some((name.to_owned(), pid?)));
    known.map(|(name, pid)| WatchedProcess { name, pid }).collect()
}

/// CPU time of a process over the measured window, and the length of that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuTime {
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    /// Resident bytes at the end of the last stage.
    pub(crate) memory: f64,
}

/// The sum over the measured stages. A run of one stage has only the whole.
pub(crate) fn cpu_time(summary: &RunSummary, name: &str) -> Option<CpuTime> {
    let mut parts = summary
        .processes
        .iter()
        .filter(|process: &&ProcessUse| {
            let stage = process.stage.as_deref();
            process.name == name
                && if summary.metadata.stages.len() > 1 {
                    summary.metadata.stages.iter().any(|s| !s.warmup && Some(&*s.name) == stage)
                } else {
                    stage.is_none()
                }
        })
        .peekable();
    parts.peek()?;
    Some(parts.fold(CpuTime::default(), |sum, process| CpuTime {
        cpu_s: sum.cpu_s + process.cpu_s,
        wall_s: sum.wall_s + process.wall_s,
        memory: process.rss_bytes as f64,
    }))
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Finding, HostLoad, StageResources};

    use super::*;

    #[test]
    fn only_children_are_watched() {
        let watched_names = |gateway_pid, provider_pid| {
            let target = SuiteTarget { gateway_pid, provider_pid, ..SuiteTarget::default() };
            let watched = watched(parts(&target)).into_iter();
            watched.map(|process| (process.name, process.pid)).collect::<Vec<_>>()
        };
        assert_eq!(watched_names(None, None), []);
        let both = [("gateway".to_owned(), 7), ("provider".to_owned(), 8)];
        assert_eq!(watched_names(Some(7), Some(8)), both);
    }

    #[test]
    fn what_the_suite_runs_itself_makes_no_busy_host() {
        let apart = Cores { generator: vec![0], gateway: Some(1), provider: Some(2) };
        let shared = Cores { provider: Some(0), ..apart.clone() };
        let chosen_by_kernel = Cores::default();
        let of = |waited, [provider, store, gateway]: [f64; 3], cores| {
            let [provider, store, gateway] = [provider, store, gateway].map(Some);
            let busy = BusyShares { gateway, provider, store, waited, ..BusyShares::default() };
            busy_core(&busy, cores)
        };
        assert_eq!(of(Some(0.05), [0.0; 3], &apart), None);
        for (waited, used, cores, is_busy) in [
            (0.2, [0.2, 0.2, 0.9], &apart, true),
            (0.2, [0.2, 0.0, 0.0], &shared, false),
            (0.2, [0.0, 0.2, 0.0], &shared, false),
            (0.2, [0.0, 0.0, 0.9], &shared, true),
            // The user's gateway, and all processes on a single core.
            (0.6, [0.0, 0.0, 0.9], &chosen_by_kernel, false),
            (0.6, [0.3, 0.3, 0.0], &chosen_by_kernel, false),
            // Others had the rest.
            (0.6, [0.0, 0.0, 0.2], &chosen_by_kernel, true),
        ] {
            let found = of(Some(waited), used, cores).is_some();
            assert_eq!(found, is_busy, "{waited} {used:?} {cores:?}");
        }
    }

    #[test]
    fn a_host_is_busy_by_the_rule_of_every_run() {
        let mut summary = RunSummary::default();
        assert_eq!(busy_host(&summary), None);
        let host = Some(HostLoad { cpus: 4, busy: 1.0, stolen: 0.0 });
        summary.resources = vec![StageResources { host, ..StageResources::default() }];
        summary.find();
        assert_eq!(busy_host(&summary).unwrap(), "other programs used 100%");
        let found = |key| Finding::new(701).with(key, "12.0%");
        for (key, text) in [("stolen", "steal 12.0%"), ("throttled", "CPU throttling 12.0%")] {
            summary.findings = vec![found(key)];
            assert_eq!(busy_host(&summary).unwrap(), text);
        }
    }

    #[test]
    fn wake_ups_of_a_load_that_runs_make_no_busy_host() {
        let of = |waited, busiest_worker| {
            let (waited, busiest_worker) = (Some(waited), Some(busiest_worker));
            let busy = BusyShares { busiest_worker, waited, ..BusyShares::default() };
            busy_core(&busy, &Cores::default()).is_some()
        };
        // Measured: many wake-ups on a quiet host, and six busy loops on the load's core.
        for (waited, ran, is_busy) in [
            (0.11, 0.24, false),
            (0.19, 0.33, false),
            (0.36, 0.04, true),
            (0.15, 0.1, true),
            (0.3, 0.6, true),
        ] {
            assert_eq!(of(waited, ran), is_busy, "{waited} {ran}");
        }
    }
}
