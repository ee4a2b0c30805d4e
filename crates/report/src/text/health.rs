//! What the instrument measured of itself.

use plimsoll_metrics::{InstrumentHealth, Lag};

use super::Page;
use super::format;

pub(super) fn write(page: &mut Page, health: &InstrumentHealth) {
    page.heading("Instrument health");
    page.list(&[
        ("arrivals in time", arrivals(health)),
        ("pacing lag", health.pacing_lag_ms.map(lag)),
        ("dispatch lag", health.dispatch_lag_ms.map(lag)),
        ("read lag", health.read_lag_ms.map(lag)),
        ("receive times by", health.kernel_timestamps.map(stamps)),
        ("timer", health.timer.clone()),
        ("workers", workers(health)),
        ("CPU time", cpu(health)),
        ("context switches", switches(health)),
        ("steal", health.steal_share.map(format::share)),
        ("file descriptors", used(health.fd_peak, health.fd_limit)),
        ("local ports", health.ephemeral_ports.map(format::count)),
        ("connections", connections(health)),
        ("peak in flight", health.peak_in_flight.map(format::count)),
        ("conversations", conversations(health)),
        ("rows written", rows(health)),
        ("generator errors", Some(errors(health))),
    ]);
    for law in &health.littles_law {
        page.line(&format!(
            "  Little's law, {}: N {} in flight, X R {}, off by {}",
            law.stage,
            format::digits(law.in_flight),
            format::digits(law.rate_times_time),
            format::share(law.error())
        ));
    }
}

fn lag(lag: Lag) -> String {
    let [p50, p99, max] = [lag.p50, lag.p99, lag.max].map(format::time);
    format!("p50 {p50}, p99 {p99}, max {max}")
}

fn arrivals(health: &InstrumentHealth) -> Option<String> {
    let (planned, achieved) = (health.planned_arrivals?, health.achieved_arrivals?);
    Some(format!("{} of {} planned", format::count(achieved), format::count(planned)))
}

fn stamps(kernel: bool) -> String {
    if kernel { "the kernel's time stamps" } else { "the user-space clock" }.to_owned()
}

fn workers(health: &InstrumentHealth) -> Option<String> {
    let workers = health.workers?;
    let busiest = health.busiest_worker().map(format::share);
    Some(match busiest {
        Some(share) => format!("{workers}, the busiest used {share} of a CPU"),
        None => workers.to_string(),
    })
}

fn cpu(health: &InstrumentHealth) -> Option<String> {
    let (user, system) = (health.cpu_user_s?, health.cpu_system_s?);
    let wall = health.wall_s.map(|wall| format!(" in {wall:.1} s of wall time"));
    Some(format!("{user:.2} s user, {system:.2} s system{}", wall.unwrap_or_default()))
}

fn switches(health: &InstrumentHealth) -> Option<String> {
    let (own, forced) = (health.voluntary_switches?, health.involuntary_switches?);
    Some(format!("{} voluntary, {} forced", format::count(own), format::count(forced)))
}

fn used(peak: Option<u64>, limit: Option<u64>) -> Option<String> {
    let limit = format::count(limit?);
    Some(peak.map_or_else(
        || format!("limit {limit}"),
        |peak| format!("{} used of {limit}", format::count(peak)),
    ))
}

fn connections(health: &InstrumentHealth) -> Option<String> {
    let (opened, reused) = (health.connections_opened?, health.connections_reused?);
    Some(format!("{} opened, reused {} times", format::count(opened), format::count(reused)))
}

fn conversations(health: &InstrumentHealth) -> Option<String> {
    let c = health.conversations?;
    let [started, finished, abandoned] = [c.started, c.finished, c.abandoned].map(format::count);
    Some(format!("{started} started, {finished} finished, {abandoned} abandoned"))
}

fn rows(health: &InstrumentHealth) -> Option<String> {
    let lost = health.sink_overflowed.unwrap_or_default();
    Some(format!("{}, {} lost", format::count(health.sink_written?), format::count(lost)))
}

fn errors(health: &InstrumentHealth) -> String {
    let pairs: Vec<_> =
        health.generator_errors.iter().map(|(class, n)| format!("{class} x {n}")).collect();
    if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") }
}
