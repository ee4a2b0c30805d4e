//! Decides whether a process is at the limit of its own CPU time, or lacks CPU time that others
//! use.

use plimsoll_metrics::{HostLoad, ProcessLoad, ProcessPlace, QuotaLoad, ThreadLoad};

use crate::result::State;

/// Share of its CPUs from which a process is at its limit; the rest is lost between requests.
const FULL: f64 = 0.9;
/// Share of a process's work that full threads must do to be its limit, and of a throttled group's
/// work that a process must do. A compiler or collector next to many workers does less.
pub(crate) const MAIN_PART: f64 = 0.5;
/// Share of throttled periods from which a quota limits a process, whatever its mean use, because
/// the use comes in bursts. Kubernetes' own alert (`CPUThrottlingHigh`) begins at a quarter.
const STOPPED: f64 = 0.5;
/// Minimum number of periods for that share: one second with the usual 100 ms.
const PERIODS: u64 = 10;
/// Time spent waiting for a CPU, relative to the CPU time used, from which CPU is scarce. Less is
/// the normal wakeup latency of threads.
const WAITS: f64 = 0.2;
/// Share of the time for which a full host's CPUs are busy.
const HOST_FULL: f64 = 0.9;

/// State of a process in a stage, with its evidence. `main_part` is the share of its work that full
/// threads must do.
pub(crate) fn judge(
    load: &ProcessLoad,
    host: Option<&HostLoad>,
    main_part: f64,
) -> (State, String) {
    if load.gone {
        return (State::Unknown, "not observed for most of the stage".to_owned());
    }
    // A process on another host does not use this host's CPUs.
    let host = host.filter(|_| load.page.is_none());
    let limit = limit(load);
    if let Some(full) = of_cpus(load, limit, FULL).or_else(|| of_quota(load)) {
        return (State::Full, full);
    }
    let thread = full_threads(load, FULL, main_part);
    if let Some((thread, shown)) = thread.filter(|(thread, _)| !lacks(thread.cores, thread.waiting))
    {
        return (State::Full, format!("{shown} ran for {:.2} of the time", thread.cores));
    }
    let waiting = load.waiting.unwrap_or_default();
    let wants_all = limit.is_some_and(|limit| load.cores + waiting >= FULL * limit);
    if (full_threads(load, FULL, main_part).is_some() || wants_all)
        && lacks(load.cores, waiting)
        && host.is_some_and(|host| others_use(load, host))
    {
        let ran = load.cores;
        return (State::Starved, format!("ran on {ran:.2} CPUs and waited for {waiting:.2} more"));
    }
    let doubt = withheld(load, limit, host, main_part).or_else(|| unseen(load, limit));
    let left = || limit.map_or_else(String::new, |limit| of(load.cores, limit));
    doubt.map_or_else(|| (State::Clear, left()), |doubt| (State::Unknown, doubt))
}

/// Whether a process or thread got too little CPU time.
fn lacks(cores: f64, waiting: f64) -> bool {
    waiting >= WAITS * cores
}

/// Whether others use its CPUs. Threads that wake up at the same moment wait for each other even on
/// an idle host, and a quota makes a process wait too.
fn others_use(load: &ProcessLoad, host: &HostLoad) -> bool {
    let is_pinned = load.cpus.is_some_and(|cpus| cpus < host.cpus);
    let is_throttled = load.quota.as_ref().is_some_and(|quota| quota.throttled_periods > 0);
    is_full(host) || (is_pinned && !is_throttled)
}

/// Whether all CPUs of a host are busy.
pub(crate) fn is_full(host: &HostLoad) -> bool {
    host.busy + host.stolen >= HOST_FULL
}

/// The quota of the process. One that Plimsoll is under counts for Plimsoll alone.
fn own_quota(load: &ProcessLoad) -> Option<&QuotaLoad> {
    let is_plimsoll = load.place == ProcessPlace::Plimsoll;
    load.quota.as_ref().filter(|quota| is_plimsoll || !quota.with_generator)
}

/// Number of CPUs available to the process.
pub(crate) fn limit(load: &ProcessLoad) -> Option<f64> {
    let quota = own_quota(load).map(|quota| quota.cpus);
    let cpus = load.cpus.map(f64::from);
    [quota, cpus].into_iter().flatten().reduce(f64::min)
}

fn of_cpus(load: &ProcessLoad, limit: Option<f64>, full: f64) -> Option<String> {
    limit.filter(|limit| load.cores >= full * limit).map(|limit| of(load.cores, limit))
}

fn of(cores: f64, limit: f64) -> String {
    let unit = if limit > 1.0 { "CPUs" } else { "CPU" };
    format!("{cores:.2} of {} {unit}", (limit * 100.0).round() / 100.0)
}

fn of_quota(load: &ProcessLoad) -> Option<String> {
    let QuotaLoad { cpus, periods, throttled_periods, .. } = *own_quota(load)?;
    let stopped = throttled_periods as f64 / periods.max(1) as f64;
    // The group used at least that share of the quota, perhaps by programs that are not monitored.
    let is_main = load.cores >= MAIN_PART * stopped * cpus;
    (periods >= PERIODS && stopped >= STOPPED && is_main).then(|| {
        format!("its quota of {cpus} CPUs stopped it in {throttled_periods} of {periods} periods")
    })
}

/// The busiest of the saturated threads, and their name. A single-threaded server is at its limit
/// with one CPU, however many there are.
fn full_threads(load: &ProcessLoad, full: f64, main_part: f64) -> Option<(&ThreadLoad, String)> {
    let all: Vec<_> =
        load.threads.iter().filter(|thread| thread.cores + thread.waiting >= full).collect();
    let work: f64 = all.iter().map(|thread| thread.cores).sum();
    let first = all.first().filter(|_| work >= main_part * load.cores)?;
    let name = &first.name;
    Some((
        first,
        match all.len() {
            1 => format!("thread `{name}`"),
            several => format!("{several} threads like `{name}`"),
        },
    ))
}

/// Whether the hypervisor may have kept it from its limit by withholding CPU time. Kernels
/// differ in whether they charge that time to the process.
fn withheld(
    load: &ProcessLoad,
    limit: Option<f64>,
    host: Option<&HostLoad>,
    main_part: f64,
) -> Option<String> {
    let HostLoad { busy, stolen, .. } = host?;
    let full = FULL * (1.0 - stolen / (busy + stolen).max(f64::MIN_POSITIVE));
    let is_close = of_cpus(load, limit, full).is_some()
        || full_threads(load, full, main_part).is_some_and(|(first, _)| first.cores >= full);
    is_close.then(|| format!("the hypervisor withheld {:.0} % of the CPUs", stolen * 100.0))
}

/// Explains that a metrics page shows neither a process's available CPUs nor its threads.
fn unseen(load: &ProcessLoad, limit: Option<f64>) -> Option<String> {
    load.page.as_ref()?;
    match limit {
        None => Some("its CPUs are unknown: add #cpus=N to its URL".to_owned()),
        Some(_) => (load.cores >= FULL).then(|| "its threads are not visible".to_owned()),
    }
}
