//! CPU time and memory of the processes of a measurement, and whether others used their host.

use plimsoll_engine::WatchedProcess;
use plimsoll_metrics::{InstrumentHealth, ProcessUse, RunSummary, StageResources};
use plimsoll_report::format::percent;

use crate::cores::Cores;
use crate::figures::BusyShares;
use crate::target::SuiteTarget;

/// A host with more steal than this is busy: its processes, including the gateway, were stopped for
/// that share of the time.
const MOST_STEAL: f64 = 0.1;
/// The same limit for a load that waited for a core, beyond the time explained by the suite's own
/// processes.
const MOST_WAITING: f64 = 0.25;
/// The same, if it waited longer than it ran. Less is the ordinary price of a wake-up: some
/// microseconds of each of many thousands a second.
const MOST_OF_ITS_TIME: f64 = 0.1;
/// The same where less than the first share of the CPUs' time was idle, and other processes than
/// the suite's had more than the second.
const LEAST_IDLE: f64 = 0.05;
const MOST_OF_OTHERS: f64 = 0.25;

/// The share of CPU time that other processes used, where it is too high and no CPU was idle. The
/// stages must list every process that the suite needs.
pub(crate) fn crowded(stages: &[StageResources]) -> Option<f64> {
    let (mut wall, mut cpus, mut idle, mut others) = (0.0, 0.0, 0.0, 0.0);
    for stage in stages {
        let host = stage.host.as_ref()?;
        let own: f64 = stage.processes.iter().map(|process| process.cores).sum();
        let all = f64::from(host.cpus);
        wall += stage.wall_s;
        cpus += all * stage.wall_s;
        idle += (1.0 - host.busy - host.stolen) * all * stage.wall_s;
        others += (host.busy * all - own) * stage.wall_s;
    }
    let is_crowded = wall > 0.0 && idle < LEAST_IDLE * cpus && others > MOST_OF_OTHERS * cpus;
    is_crowded.then(|| others / cpus)
}

/// Load of other processes and machines on this host; `None` if it was quiet. `others`: see
/// [`crowded`].
pub(crate) fn busy_host(
    health: &InstrumentHealth,
    busy: &BusyShares,
    cores: &Cores,
    others: Option<f64>,
) -> Option<String> {
    if let Some(steal) = health.steal_share.filter(|steal| *steal > MOST_STEAL) {
        return Some(format!("steal {}", percent(steal)));
    }
    if let Some(others) = others {
        return Some(format!("other programs used {}", percent(others)));
    }
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
    use plimsoll_metrics::{HostLoad, ProcessLoad};

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
        let of = |steal_share, waited, [provider, store, gateway]: [f64; 3], cores| {
            let health = InstrumentHealth { steal_share, ..InstrumentHealth::default() };
            let [provider, store, gateway] = [provider, store, gateway].map(Some);
            let busy = BusyShares { gateway, provider, store, waited, ..BusyShares::default() };
            busy_host(&health, &busy, cores, None)
        };
        assert_eq!(of(Some(0.06), Some(0.05), [0.0; 3], &apart), None);
        let stolen = of(Some(0.12), None, [0.0; 3], &apart).unwrap();
        assert_eq!(stolen, "steal 12.0%");
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
            let found = of(None, Some(waited), used, cores).is_some();
            assert_eq!(found, is_busy, "{waited} {used:?} {cores:?}");
        }
    }

    #[test]
    fn only_a_full_host_with_other_processes_is_crowded() {
        let of = |busy, own: &[f64]| {
            let host = HostLoad { cpus: 4, busy, stolen: 0.0 };
            crowded(&[StageResources {
                wall_s: 2.0,
                processes: own
                    .iter()
                    .map(|cores| ProcessLoad { cores: *cores, ..ProcessLoad::default() })
                    .collect(),
                host: Some(host),
                ..StageResources::default()
            }])
        };
        assert_eq!(of(1.0, &[0.5, 0.5]), Some(0.75));
        assert_eq!(of(0.98, &[1.9, 1.9]), None, "the suite itself filled it");
        assert_eq!(of(0.9, &[0.5, 0.5]), None, "there was time left");
        assert_eq!(crowded(&[]), None);
        assert_eq!(crowded(&[StageResources::default()]), None, "the kernel does not tell");
        let text = busy_host(
            &InstrumentHealth::default(),
            &BusyShares::default(),
            &Cores::default(),
            Some(0.75),
        );
        assert_eq!(text.unwrap(), "other programs used 75.0%");
    }

    #[test]
    fn wake_ups_of_a_load_that_runs_make_no_busy_host() {
        let of = |waited, busiest_worker| {
            let (waited, busiest_worker) = (Some(waited), Some(busiest_worker));
            let busy = BusyShares { busiest_worker, waited, ..BusyShares::default() };
            busy_host(&InstrumentHealth::default(), &busy, &Cores::default(), None).is_some()
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
