//! The quick suite: a closed loop on `/metrics`, moderate and extreme, side by side.

mod readiness;

use plimsoll_report::format::{count, digits};

use super::columns::{
    self, AVG, BYTES, Column, ERRORS, GW_CORE, LOAD_CORE, MAX, P99, RPS, SECONDS, THREADS,
};
use super::{length, passes};
use crate::error::SuiteError;
use crate::measurement::Measurement;
use crate::report::{Section, published};
use crate::result::MeasurementResult;
use crate::runner::{Pass, SuiteRunner};
use crate::target::Gateway;
use crate::{finding, sizing};

const PATH: &str = "/metrics";

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    let gateway = match runner.target() {
        Some(target) => Gateway::external(target),
        // Its metrics tell of every route that was asked for.
        None => runner.launch("proxy", &[], None, PATH)?,
    };
    let options = runner.options;
    // The factor multiplies the clients and threads of the moderate load.
    let loads = [("moderate", 1, length(options, 30)), ("extreme", 2, length(options, 60))];
    let mut results = Vec::new();
    let mut thirds = vec![Vec::new(); loads.len()];
    runner.section = "GET /metrics";
    if runner.serves(&gateway.target, PATH)? {
        runner.probe_limits(&Measurement::get("burst", &gateway.target, PATH))?;
        let measurements = loads.map(|(name, factor, length)| {
            let clients = options.clients.unwrap_or(100) * u32::from(factor);
            let threads = options.threads.map(|threads: u16| threads.saturating_mul(factor));
            let label = format!("{name}, {clients} connections");
            let request = Measurement::get(&label, &gateway.target, PATH).threads(threads);
            request.clients_in_parts(clients, length, readiness::PARTS)
        });
        let mut keep =
            |load: usize, pass: &Pass| thirds[load].push(readiness::thirds(&pass.summary));
        let passes = passes(options, 1, 3);
        results = runner.measure_by(&measurements, passes, &mut keep);
    }
    runner.ask_version(&gateway);
    let table = side_by_side(&results);
    let readiness = readiness::section(&results, &thirds);
    let scaling = finding::scaling([(PATH, &results[..])]);
    let levels: Vec<_> = results.iter().collect();
    runner.report.sections.extend(std::iter::once(table).chain(scaling).chain(readiness));
    runner.capacities.push(sizing::capacity(&format!("gateway, GET {PATH}"), &levels));
    runner.report.references.push(published("Reference: RustyGW"));
    Ok(())
}

const MB_PER_S: Column =
    ("MB/s", |r| columns::beside_rate(r, |f| Some(digits(f.megabytes_per_s?))));
const GBIT_PER_S: Column =
    ("Gbit/s", |r| columns::beside_rate(r, |f| Some(digits(f.megabytes_per_s? * 8.0 / 1e3))));
const TOTAL: Column = ("Total", |r| columns::beside_rate(r, |f| Some(count(f.answers()?))));

fn side_by_side(results: &[MeasurementResult]) -> Section {
    let columns = &[
        RPS, AVG, P99, MAX, MB_PER_S, TOTAL, ERRORS, GW_CORE, LOAD_CORE, THREADS, GBIT_PER_S,
        BYTES, SECONDS,
    ];
    let table = columns::results("Load", columns, results);
    Section::new("GET /metrics, as many requests as the connections carry", table)
}
