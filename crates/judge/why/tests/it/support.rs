//! Summaries of invented runs.

use plimsoll_metrics::{
    Counters, Edges, Group, HostLoad, InstrumentHealth, Lag, LoadModel, ProcessLoad, ProcessPlace,
    Rates, RunEnd, RunInfo, RunMetadata, RunSummary, Snapshot, StageInfo, StageResources,
    TargetInfo, ThreadLoad,
};
use plimsoll_why::{Observed, Suspect, Why, why};
use serde_json::json;

/// Length of each stage in seconds.
pub(crate) const SECONDS: f64 = 10.0;

/// A run with one target, whose figures a test changes.
pub(crate) struct Case(pub(crate) RunSummary);

impl Case {
    /// A run without stages.
    pub(crate) fn empty() -> Self {
        let target = TargetInfo {
            name: "main".to_owned(),
            url: "http://127.0.0.1:8080".to_owned(),
            ..TargetInfo::default()
        };
        let run = RunInfo { ended: RunEnd::Complete, ..RunInfo::default() };
        let metadata = RunMetadata { run, targets: vec![target], ..RunMetadata::default() };
        let lag = Lag { p50: 0.05, p99: 0.3, max: 1.0, mean: 0.06 };
        let health = InstrumentHealth { dispatch_lag_ms: Some(lag), ..InstrumentHealth::default() };
        let summary = RunSummary::build(metadata, health, &Snapshot::new(), &[]).unwrap();
        let mut case = Self(summary);
        case.0.results.by_stage.clear();
        case
    }

    /// Closed stages with a fifth of the users and with all of them, whose times grow as much.
    /// Every user always waits, at 100 requests/s, and everything is watched and idle.
    pub(crate) fn closed(users: u32) -> Self {
        Self::level(users / 5).with_closed(users, 25.0)
    }

    /// The same with constant times.
    pub(crate) fn flat(users: u32) -> Self {
        Self::level(users / 5).with_closed(users, 5.0)
    }

    /// One closed stage, which cannot show whether times grow.
    pub(crate) fn level(users: u32) -> Self {
        Self::empty().with_closed(users, 5.0)
    }

    /// Adds a closed stage with this median service time.
    pub(crate) fn with_closed(mut self, users: u32, median_ms: f64) -> Self {
        let name = format!("{users}:10s");
        let info = StageInfo {
            name: name.clone(),
            model: LoadModel::Closed,
            users: Some(users.into()),
            mean_in_flight: Some(f64::from(users) * 0.98),
            duration_s: SECONDS,
            ..StageInfo::default()
        };
        let counters = Counters {
            scheduled: 1_000,
            dispatched_in_stage: 1_000,
            completed: 1_000,
            completed_in_stage: 1_000,
            ..Counters::default()
        };
        self.add(info, &counters, median_ms);
        self.0.resources.push(idle(&name));
        self
    }

    /// An open stage that reached this rate, with all processes monitored and idle.
    pub(crate) fn open(per_second: u64) -> Self {
        Self::empty().with_open(per_second, 5.0)
    }

    pub(crate) fn with_open(mut self, per_second: u64, median_ms: f64) -> Self {
        let name = format!("@{per_second}:10s");
        let info = StageInfo {
            name: name.clone(),
            model: LoadModel::Open,
            mean_in_flight: Some(2.0),
            duration_s: SECONDS,
            ..StageInfo::default()
        };
        let all = per_second * 10;
        let counters = Counters {
            scheduled: all,
            arrivals_planned: all,
            arrivals_in_stage: all,
            dispatched_in_stage: all,
            completed: all,
            completed_in_stage: all,
            ..Counters::default()
        };
        self.add(info, &counters, median_ms);
        self.0.resources.push(idle(&name));
        self
    }

    fn add(&mut self, info: StageInfo, counters: &Counters, median_ms: f64) {
        let group = Group {
            stage: Some(info.name.clone()),
            duration_s: SECONDS,
            counters: *counters,
            distributions: [("service_time_ms".to_owned(), times(counters.completed, median_ms))]
                .into(),
            ..Group::default()
        };
        self.0.results.by_stage.push(group);
        self.0.metadata.stages.push(info);
    }

    /// The counters of the last stage.
    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.0.results.by_stage.last_mut().unwrap().counters
    }

    pub(crate) fn stage(&mut self) -> &mut StageInfo {
        self.0.metadata.stages.last_mut().unwrap()
    }

    /// Resources used by the last stage.
    pub(crate) fn resources(&mut self) -> &mut StageResources {
        self.0.resources.last_mut().unwrap()
    }

    pub(crate) fn process(&mut self, name: &str) -> &mut ProcessLoad {
        self.resources().processes.iter_mut().find(|process| process.name == name).unwrap()
    }

    /// Removes the evidence on a process.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.resources().processes.retain(|process| process.name != name);
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn why(&self) -> Why {
        why(&self.summary())
    }

    /// The summary, with the rates of its counters.
    pub(crate) fn summary(&self) -> RunSummary {
        let mut summary = self.0.clone();
        for group in &mut summary.results.by_stage {
            group.rates = Rates::compute(&group.counters, &Edges::default(), group.duration_s);
        }
        summary
    }

    /// Code of the finding.
    pub(crate) fn code(&self) -> Option<u16> {
        self.why().finding.map(|finding| finding.code)
    }

    pub(crate) fn observed(&self, suspect: Suspect) -> Observed {
        let mut observed = self.why().observed.into_iter();
        observed.find(|observed| observed.suspect == suspect).unwrap()
    }
}

/// Times with these figures.
pub(crate) fn times(count: u64, ms: f64) -> plimsoll_metrics::DistributionSummary {
    let json = json!({
        "count": count, "sum": ms * count as f64, "mean": ms, "min": ms, "max": ms, "p50": ms,
        "histogram": "",
    });
    serde_json::from_value(json).unwrap()
}

/// A mostly idle gateway, upstream and generator on four CPUs.
fn idle(stage: &str) -> StageResources {
    let own = ProcessLoad { place: ProcessPlace::Plimsoll, ..process("plimsoll", 1, 0.2) };
    StageResources {
        stage: stage.to_owned(),
        wall_s: SECONDS,
        processes: vec![process("gateway", 2, 0.3), process("upstream", 3, 0.1), own],
        host: Some(HostLoad { cpus: 4, busy: 0.2, stolen: 0.0 }),
    }
}

/// A process with one busy thread, which may use four CPUs.
pub(crate) fn process(name: &str, pid: u32, cores: f64) -> ProcessLoad {
    let thread = ThreadLoad { name: format!("{name}-main"), cores, waiting: 0.0 };
    ProcessLoad {
        name: name.to_owned(),
        pid,
        cores,
        waiting: Some(0.0),
        threads: vec![thread],
        cpus: Some(4),
        ..ProcessLoad::default()
    }
}

/// Gives a process threads that ran and waited for these shares of the time.
pub(crate) fn threads(process: &mut ProcessLoad, each: &[(f64, f64)]) {
    process.threads = each
        .iter()
        .map(|(cores, waiting): &(f64, f64)| ThreadLoad {
            name: "worker".to_owned(),
            cores: *cores,
            waiting: *waiting,
        })
        .collect();
    process.cores = each.iter().map(|(cores, _)| cores).sum();
    process.waiting = Some(each.iter().map(|(_, waiting)| waiting).sum());
}
