//! Instrument health: Measurements of Plimsoll's own operation.

use plimsoll_metrics::{
    CalibrationQuote, Environment, InstrumentHealth, Lag, ProcessUse, RunSummary, samples_needed,
};

use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let health = &summary.health;
    let has_p99 = summary.results.accounting().scheduled >= samples_needed(0.99);
    let lag = |lag| lag_words(lag, has_p99);
    let mut chapter = Chapter::new("Instrument health");
    chapter.list([
        ("arrivals in time", arrivals(health)),
        ("pacing lag", health.pacing_lag_ms.map(lag)),
        ("dispatch lag", health.dispatch_lag_ms.map(lag)),
        ("read lag", health.read_lag_ms.map(lag)),
        ("receive times by", health.kernel_timestamps.map(|kernel| clock(health, kernel))),
        ("timer", timer(health)),
        ("workers", workers(health)),
        ("CPU time", cpu(health)),
        ("steal", health.steal_share.map(format::share)),
        ("CPU throttled", health.throttled_share.map(format::share)),
        ("file descriptors", used(health.fd_peak, health.fd_limit)),
        (
            "local ports",
            used(health.ports_peak, health.ephemeral_ports).map(|used| format!("up to {used}")),
        ),
        ("connections", connections(health)),
        ("sent again", retries(health)),
        ("TLS handshakes", handshakes(health)),
        ("flow control", stalls(health)),
        ("peak in flight", health.peak_in_flight.map(format::count)),
        ("conversations", conversations(health)),
        ("rows written", rows(health)),
        ("generator errors", Some(errors(health))),
        ("calibration", Some(calibration(health.calibration.as_ref()))),
    ]);
    chapter
}

/// Shows `-` for a percentile of too few values.
fn lag_words(lag: Lag, has_p99: bool) -> String {
    let [mean, p50, p99, max] = [lag.mean, lag.p50, lag.p99, lag.max].map(format::time);
    let p99 = if has_p99 { &p99 } else { format::DASH };
    format!("mean {mean}, p50 {p50}, p99 {p99}, max {max}")
}

fn arrivals(health: &InstrumentHealth) -> Option<String> {
    let (planned, achieved) = (health.planned_arrivals?, health.achieved_arrivals?);
    Some(format!("{} of {} planned", format::count(achieved), format::count(planned)))
}

/// The clock that was used, which may not be the requested one.
fn clock(health: &InstrumentHealth, kernel: bool) -> String {
    let clock = if kernel { "the kernel's time stamps" } else { "the user-space clock" };
    let Some((reads, unstamped)) = health.reads.zip(health.unstamped_reads) else {
        return clock.to_owned();
    };
    if unstamped == 0 {
        return clock.to_owned();
    }
    let [reads, unstamped] = [reads, unstamped].map(format::count);
    format!("{clock}; {unstamped} of {reads} reads had no time stamp of the kernel")
}

fn timer(health: &InstrumentHealth) -> Option<String> {
    let step = health.clock_step_ns.map(|step| format!("clock steps of {step} ns"));
    let parts: Vec<_> = health.timer.iter().cloned().chain(step).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn calibration(quote: Option<&CalibrationQuote>) -> String {
    let Some(quote) = quote else {
        return "none on this host: `plimsoll calibrate` shows how accurate its figures are"
            .to_owned();
    };
    let floor = quote.floor_us.map(|us| format!("floor {}", format::time(us / 1e3)));
    let rate = quote.max_rate.map(|rate| format!("up to {}/s", format::digits(rate)));
    let mut parts = vec![
        quote.when.clone(),
        format!("{} tests passed, {}", quote.passed, quote.failed_words()),
    ];
    parts.extend(floor.into_iter().chain(rate));
    parts.join(", ")
}

fn workers(health: &InstrumentHealth) -> Option<String> {
    let workers = health.workers?;
    let busiest = health.busiest_worker().map(format::share);
    let waited = health.worker_wait_shares.iter().copied().reduce(f64::max).map(format::share);
    let busiest = busiest.map(|share| format!("the busiest used {share} of a CPU"));
    let waited = waited.map(|share| format!("waited for one up to {share} of the time"));
    let cpus: Vec<_> = health.worker_cpus.iter().map(ToString::to_string).collect();
    let bound = (!cpus.is_empty()).then(|| format!("each bound to a CPU ({})", cpus.join(", ")));
    let parts: Vec<_> =
        [Some(workers.to_string()), bound, busiest, waited].into_iter().flatten().collect();
    Some(parts.join(", "))
}

fn cpu(health: &InstrumentHealth) -> Option<String> {
    let (user, system) = (health.cpu_user_s?, health.cpu_system_s?);
    let wall = health.wall_s.map(|wall| format!(" in {wall:.1} s of wall time"));
    Some(format!("{user:.2} s user, {system:.2} s system{}", wall.unwrap_or_default()))
}

fn used(peak: Option<u64>, limit: Option<u64>) -> Option<String> {
    let (limit, most) = (format::count(limit?), limit?);
    Some(match peak {
        None => format!("limit {limit}"),
        Some(peak) if peak < most => format!("{} used of {limit}", format::count(peak)),
        Some(_) => format!("all {limit} used"),
    })
}

fn connections(health: &InstrumentHealth) -> Option<String> {
    let (opened, reused) = (health.connections_opened?, health.connections_reused?);
    let before = health.connections_before_run.filter(|&before| before > 0);
    let before = before.map(|before| format!(" (and {} before the run)", format::count(before)));
    Some(format!(
        "{} opened{}, reused {} times",
        format::count(opened),
        before.unwrap_or_default(),
        format::count(reused)
    ))
}

/// `None` if no request was sent twice.
fn retries(health: &InstrumentHealth) -> Option<String> {
    let retries = health.retries.filter(|&retries| retries > 0)?;
    let idle = health.retried_after_p50_ms.map(|idle| format!(", idle for {}", format::time(idle)));
    Some(format!(
        "{} requests that the target had not processed{}",
        format::count(retries),
        idle.unwrap_or_default()
    ))
}

/// `None` if no TLS was used.
fn handshakes(health: &InstrumentHealth) -> Option<String> {
    let (full, resumed) = (health.handshakes_full?, health.handshakes_resumed?);
    let share = resumed as f64 / (full + resumed).max(1) as f64;
    (full + resumed > 0).then(|| {
        let [full, resumed] = [full, resumed].map(format::count);
        format!("{full} full, {resumed} resumed ({})", format::share(share))
    })
}

/// `None` if nothing stalled.
fn stalls(health: &InstrumentHealth) -> Option<String> {
    let (send, receive) = (health.send_stalls?, health.receive_stalls?);
    (send + receive > 0).then(|| {
        let [send, receive] = [send, receive].map(format::count);
        format!("{send} requests waited for the target's windows, {receive} responses for ours")
    })
}

fn conversations(health: &InstrumentHealth) -> Option<String> {
    let c = health.conversations?;
    let [started, finished, early] = [c.started, c.finished, c.ended_early].map(format::count);
    let waits = match c.retry_after_waits {
        0 => String::new(),
        waits => format!(
            "; {} waits as Retry-After asks, {:.1}s together",
            format::count(waits),
            c.retry_after_wait_s
        ),
    };
    Some(format!("{started} started, {finished} finished, {early} ended early{waits}"))
}

fn rows(health: &InstrumentHealth) -> Option<String> {
    let counts = [health.sink_written?, health.sink_left_out?, health.sink_overflowed?];
    let [written, left_out, lost] = counts.map(format::count);
    let of = format::count(health.sink_offered?);
    Some(format!("{written} of {of}, {left_out} left out by sampling, {lost} lost"))
}

fn errors(health: &InstrumentHealth) -> String {
    let pairs: Vec<_> =
        health.generator_errors.iter().map(|(class, n)| format!("{class} x {n}")).collect();
    if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") }
}

// CPU time and memory of the watched processes.

pub(super) fn processes_chapter(summary: &RunSummary) -> Chapter {
    let heading = "Processes (CPU time is counted by the kernel in ticks, mostly of 10 ms)";
    let mut chapter = Chapter::new(heading);
    let mut table =
        Table::new(["", "pid", "stage", "cores", "CPU/request", "memory", "processes", "threads"]);
    for process in &summary.processes {
        table.row(row(process));
    }
    chapter.table(&table);
    chapter
}

fn row(process: &ProcessUse) -> Vec<String> {
    let gone = if process.gone { " (ended)" } else { "" };
    vec![
        format!("{}{gone}", process.name),
        process.pid.to_string(),
        process.stage.clone().unwrap_or_else(|| "whole run".to_owned()),
        format!("{:.2}", process.cores),
        format::time_or_dash(process.cpu_us_per_request.map(|us| us / 1e3)),
        format::bytes(process.rss_bytes as f64),
        if process.processes > 0 { process.processes.to_string() } else { "1".to_owned() },
        process.threads.to_string(),
    ]
}

// The machine that the load came from.

/// The machine of a result: name and value of each fact.
pub fn environment(e: &Environment) -> [(&'static str, Option<String>); 13] {
    [
        ("CPU", e.cpu_model.clone()),
        ("logical CPUs", e.cpu_count.map(|n| n.to_string())),
        ("CPU quota", e.cpu_quota.map(|quota| format!("{quota} CPUs"))),
        ("CPU affinity", e.cpu_affinity.clone()),
        ("governor", e.cpu_governor.clone()),
        ("memory", e.memory_bytes.map(|bytes| format::bytes(bytes as f64))),
        ("kernel", e.kernel.clone()),
        ("clock source", e.clock_source.clone()),
        ("open files limit", e.fd_limit.map(format::count)),
        ("local port range", e.port_range.map(|(first, last)| format!("{first}-{last}"))),
        ("load average", e.load_average.map(|(one, five, more)| format!("{one} {five} {more}"))),
        ("steal before", e.steal_share.map(format::share)),
        ("versions", versions(e)),
    ]
}

fn versions(environment: &Environment) -> Option<String> {
    let pairs: Vec<_> =
        environment.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}
