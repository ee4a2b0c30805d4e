//! S4: a closed loop on `/metrics`, moderate and extreme, side by side.

use crate::bench::Bench;
use crate::cell::{Figures, MeasurementResult};
use crate::error::SuiteError;
use crate::finding;
use crate::job::{Job, Length};
use crate::report::{Report, Section};
use crate::sizing::{self, Capacity};
use crate::subject::Gateway;
use crate::table::Table;
use crate::words::{millis, plain, whole};

use super::{columns, length, passes};

const PATH: &str = "/metrics";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Report, SuiteError> {
    let gateway = match bench.target() {
        Some(subject) => Gateway::theirs(subject),
        None => bench.gateway("proxy", &[], None)?,
    };
    let order = bench.order;
    let loads = [("moderate", 100, length(order, 30)), ("extreme", 200, length(order, 60))];
    let jobs = loads.map(|(name, clients, length)| job(bench, &gateway, name, clients, length));
    let cells = bench.measure(&jobs, passes(order, 1, 3));
    bench.retire(&gateway);
    let mut report =
        Report::begin("quick", "a closed loop on /metrics, moderate and extreme", bench);
    report.sections.push(side_by_side(&cells));
    report.findings.extend(finding::saturation(PATH, &cells));
    report.findings.extend(steps(&cells));
    report.findings.extend(finding::degradation(PATH, &cells));
    report.findings.extend(cells.iter().filter_map(finding::sub_millisecond));
    report.sizing = capacity(&cells, bench).map(|capacity| {
        let (table, notes) = sizing::table(&[capacity], bench.order.size_for);
        Section { notes, ..Section::new("Instances of the gateway for a rate", table) }
    });
    report.references.push(reference());
    Ok(report.conclude())
}

fn job(bench: &Bench<'_>, gateway: &Gateway, name: &str, clients: u32, length: Length) -> Job {
    let clients = bench.order.clients.map_or(clients, |asked| asked * clients / 100);
    let label = format!("{name}, {clients} connections");
    Job::get(&label, &gateway.subject, PATH).clients(clients, length)
}

fn side_by_side(cells: &[MeasurementResult]) -> Section {
    let heads =
        ["Load", "RPS", "Avg", "p99", "Max", "MB/s", "Total", "Errors", "gateway CPU", "load CPU"];
    let mut table = Table::new(heads);
    for cell in cells {
        let figure = |of: fn(&Figures) -> Option<f64>| cell.figures().as_ref().and_then(of);
        table.row([
            columns::label(cell),
            columns::throughput(cell),
            millis(figure(|f| f.mean_ms)),
            millis(figure(|f| f.p99_ms)),
            millis(figure(|f| f.max_ms)),
            plain(figure(|f| f.megabytes_per_s)),
            columns::requests(cell),
            columns::errors(cell),
            columns::gateway_busy(cell),
            columns::load_busy(cell),
        ]);
    }
    Section::new("GET /metrics, as many requests as the connections carry", table)
        .note("times are response times of completed requests; MB are 10^6 bytes, heads included; CPU is of one core each")
}

/// What twice the connections brought, without an adjective that the figures do not carry.
fn steps(cells: &[MeasurementResult]) -> Option<finding::Finding> {
    let [few, many] = cells else { return None };
    if few.is_invalid() || many.is_invalid() {
        return None;
    }
    let (a, b) = (few.figures()?, many.figures()?);
    let rates = (b.requests_per_s? / a.requests_per_s? - 1.0) * 100.0;
    let times = b.mean_ms? / a.mean_ms?;
    let clients = f64::from(many.clients?) / f64::from(few.clients?);
    let who = finding::limiter(&b.busy).sentence(&b.busy);
    Some(finding::Finding::note(format!(
        "{clients:.1} times the connections changed throughput by {rates:+.1} % and made the average response {times:.2} times as long; {who}"
    )))
}

fn capacity(cells: &[MeasurementResult], bench: &Bench<'_>) -> Option<Capacity> {
    let valid =
        cells.iter().filter(|cell| !cell.is_invalid()).filter_map(MeasurementResult::figures);
    let best = valid.max_by(|a, b| {
        a.requests_per_s.unwrap_or(0.0).total_cmp(&b.requests_per_s.unwrap_or(0.0))
    })?;
    Some(Capacity {
        what: format!("gateway, GET {PATH}"),
        per_s: best.requests_per_s?,
        cores: best.busy.gateway,
        memory: bench.memory,
    })
}

/// The seed's figures, 2 loads on its own server.
fn reference() -> Section {
    let mut table = Table::new(["Load", "RPS", "Avg", "Max", "MB/s", "Total"]);
    for (name, rps, avg, max, mb, total) in [
        ("moderate: 4 threads, 100 connections, 30 s", 21_989, 4.59, 41.64, 71.88, 660_057),
        ("extreme: 8 threads, 200 connections, 60 s", 20_550, 9.90, 65.83, 67.42, 1_234_493),
    ] {
        let times = [millis(Some(avg)), millis(Some(max)), plain(Some(mb))];
        let [avg, max, mb] = times;
        table.row([name.to_owned(), whole(rps), avg, max, mb, whole(total)]);
    }
    Section::new("Reference: RustyGW v1.0.1, by wrk, on \"a standard cloud server\" (CPU not given)", table)
        .note("another gateway on other hardware, as its authors published it: not comparable with the rows above; wrk's MB are 2^20 bytes")
}
