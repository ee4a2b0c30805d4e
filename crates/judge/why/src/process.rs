//! Whether a watched process is at a limit of its own.

use plimsoll_metrics::{HostLoad, ProcessLoad, QuotaLoad, ThreadLoad};

use crate::result::State;

/// A process that uses this share of its CPUs is at its limit: what is left is lost between two
/// requests.
pub(crate) const FULL: f64 = 0.9;
/// Full threads limit a process if they do this part of its work. A compiler or collector beside
/// many workers does not.
const MAIN_PART: f64 = 0.5;
/// A quota that stops a process in this share of its periods limits it, whatever its mean use: the
/// use comes in bursts. Kubernetes' own alert (`CPUThrottlingHigh`) begins at a quarter.
const STOPPED: f64 = 0.5;
/// Periods from which on that share says something: a second of the usual 100 ms.
const PERIODS: u64 = 10;
/// Waiting for a CPU is scarcity if it is this share of the CPU time had: less is the usual wait of
/// a thread that wakes up.
const WAITS: f64 = 0.2;
/// And only while the host has no CPU left: many threads that wake up at once wait for each other
/// on an idle host too.
pub(crate) const HOST_FULL: f64 = 0.9;
/// Wait that is printed.
const NOTABLE: f64 = 0.01;

/// What is known of a process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcessState {
    pub(crate) state: State,
    /// Why it is at its limit, or why that is not known.
    pub(crate) because: Option<String>,
    /// Share of its limit that it used.
    pub(crate) used: f64,
    /// Its figures.
    pub(crate) figures: Vec<String>,
}

/// Judges a process in a stage.
pub(crate) fn judge(load: &ProcessLoad, host: Option<&HostLoad>) -> ProcessState {
    if load.gone {
        let (because, figure) = match &load.page {
            Some(page) => ("its page of metrics told nothing of most of the stage", page.clone()),
            None => ("it ended before the stage did", format!("pid {}", load.pid)),
        };
        let because = Some(because.to_owned());
        return ProcessState { state: State::Unknown, because, used: 0.0, figures: vec![figure] };
    }
    // A process on another host has nothing to do with the CPUs of this one.
    let host = host.filter(|_| load.page.is_none());
    let limit = limit(load);
    let used = used(load, limit);
    let found = of_cpus(load, limit, FULL)
        .or_else(|| of_threads(load, FULL))
        .or_else(|| of_quota(load))
        .or_else(|| of_waiting(load, limit, host?));
    let (state, because) = match found {
        Some(because) => (State::Saturated, Some(because)),
        None => withheld(load, limit, host)
            .or_else(|| unseen(load, limit))
            .map_or((State::Clear, None), |doubt| (State::Unknown, Some(doubt))),
    };
    ProcessState { state, because, used, figures: figures(load, limit) }
}

/// The CPUs that it can use; a quota that it shares with the generator is not its own.
fn limit(load: &ProcessLoad) -> Option<f64> {
    let quota = load.quota.as_ref().filter(|quota| !quota.with_generator).map(|quota| quota.cpus);
    let cpus = load.cpus.map(f64::from);
    [quota, cpus].into_iter().flatten().reduce(f64::min)
}

fn used(load: &ProcessLoad, limit: Option<f64>) -> f64 {
    let of_limit = limit.map_or(0.0, |limit| load.cores / limit);
    load.threads.iter().map(|thread| thread.cores).fold(of_limit, f64::max)
}

fn of_cpus(load: &ProcessLoad, limit: Option<f64>, full: f64) -> Option<String> {
    let limit = limit.filter(|limit| load.cores >= full * limit)?;
    Some(format!("{:.2} of {}", load.cores, cpus(limit)))
}

/// Threads that always have work: a server with one thread is at its limit with one CPU, however
/// many there are.
fn of_threads(load: &ProcessLoad, full: f64) -> Option<String> {
    let all: Vec<_> = load
        .threads
        .iter()
        .filter(|thread: &&ThreadLoad| thread.cores + thread.waiting >= full)
        .collect();
    let work: f64 = all.iter().map(|thread| thread.cores).sum();
    if all.is_empty() || work < MAIN_PART * load.cores {
        return None;
    }
    let first = all.first()?;
    let waits = match first.waiting {
        waiting if waiting >= NOTABLE => format!(" and waited for a CPU {waiting:.2}"),
        _ => String::new(),
    };
    let ran = format!("ran {:.2} of the time{waits}", first.cores);
    Some(match all.len() {
        1 => format!("its thread `{}` {ran}", first.name),
        several => format!("{several} threads like `{}`, which {ran}", first.name),
    })
}

fn of_quota(load: &ProcessLoad) -> Option<String> {
    let quota = load.quota.as_ref().filter(|quota| !quota.with_generator)?;
    let stopped = quota.throttled_periods as f64 / quota.periods.max(1) as f64;
    (quota.periods >= PERIODS && stopped >= STOPPED).then(|| stops(quota))
}

fn stops(quota: &QuotaLoad) -> String {
    let QuotaLoad { throttled_periods, periods, .. } = quota;
    format!(
        "a quota of {} stopped it in {throttled_periods} of {periods} periods",
        cpus(quota.cpus)
    )
}

fn of_waiting(load: &ProcessLoad, limit: Option<f64>, host: &HostLoad) -> Option<String> {
    let (waiting, limit) = (load.waiting?, limit?);
    let starved = waiting >= WAITS * load.cores && load.cores + waiting >= FULL * limit;
    (starved && host.busy + host.stolen >= HOST_FULL).then(|| {
        let ran = load.cores;
        format!("it ran on {ran:.2} CPUs and waited for {waiting:.2} more on a full host")
    })
}

/// Whether it may have been at its limit, had the hypervisor not withheld CPU time. Kernels differ
/// in whether they count that time as its own.
fn withheld(load: &ProcessLoad, limit: Option<f64>, host: Option<&HostLoad>) -> Option<String> {
    let HostLoad { busy, stolen, .. } = host?;
    let full = FULL * (1.0 - stolen / (busy + stolen).max(f64::MIN_POSITIVE));
    let close = of_cpus(load, limit, full).or_else(|| of_threads(load, full))?;
    Some(format!("{close}, while the hypervisor withheld {:.0} % of the CPUs", stolen * 100.0))
}

/// What a page of metrics does not tell: the CPUs that the process may use, and its threads.
fn unseen(load: &ProcessLoad, limit: Option<f64>) -> Option<String> {
    load.page.as_ref()?;
    let cores = load.cores;
    match limit {
        None => Some(format!("{cores:.2} CPUs of how many is not known: add #cpus=N to its URL")),
        Some(limit) if cores >= FULL => Some(format!(
            "{cores:.2} of {}, and its threads are not seen: one of them may be full",
            cpus(limit)
        )),
        Some(_) => None,
    }
}

fn figures(load: &ProcessLoad, limit: Option<f64>) -> Vec<String> {
    let mut parts = vec![match limit {
        Some(limit) => format!("{:.2} of {}", load.cores, cpus(limit)),
        None => format!("{:.2} CPUs", load.cores),
    }];
    let waits = load.waiting.filter(|waiting| *waiting >= NOTABLE);
    parts.extend(waits.map(|waiting| format!("waits {waiting:.2}")));
    let busiest = load
        .threads
        .iter()
        .max_by(|one: &&ThreadLoad, other: &&ThreadLoad| one.cores.total_cmp(&other.cores))
        .filter(|_| load.threads.len() > 1);
    parts.extend(
        busiest.map(|thread| format!("busiest thread `{}` {:.2}", thread.name, thread.cores)),
    );
    let stopped = load.quota.as_ref().filter(|quota| quota.throttled_periods > 0);
    parts.extend(stopped.map(stops));
    parts.extend(load.page.clone());
    parts
}

/// `1 CPU`, `2 CPUs`, `0.5 CPU`.
fn cpus(number: f64) -> String {
    let unit = if number > 1.0 { "CPUs" } else { "CPU" };
    let rounded = (number * 100.0).round() / 100.0;
    format!("{rounded} {unit}")
}
