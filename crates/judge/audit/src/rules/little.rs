//! Little's law: requests in flight = rate x mean time. Each connection of HTTP/1.1 carries one
//! request at a time, so it is at most the number of clients; far below, something else than the
//! target took their time.

use super::{at, digits, mean, records, show};
use crate::document::Tool;
use crate::finding::{Finding, Findings, Level};
use crate::heading::{Quantity, Stat};
use crate::reading::Reading;
use crate::record::{Record, Value};

/// Rate and mean may count slightly different windows.
const SLACK: f64 = 1.1;

/// What carries several requests on one connection, or several connections per client.
const MULTIPLEXED: [&str; 9] = [
    "http/2",
    "http2",
    " h2 ",
    "h2c",
    "pipelining",
    "pipelined",
    "grpc",
    "per thread",
    "multiplex",
];

/// Reasons for clients that do not send all the time.
const PAUSES: [&str; 13] = [
    "think",
    "sleep",
    "pause",
    "pacing",
    "open loop",
    "open-loop",
    "arrival rate",
    "arrival-rate",
    "constant rate",
    "fixed rate",
    " -q ",
    " -r",
    "target rps",
];

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    let multiplexed = reading.mentions(&MULTIPLEXED);
    let wrk = reading.is_of(Tool::Wrk);
    for record in records(reading) {
        let (Some(rate), Some(clients)) =
            (record.only(Quantity::Rate), record.only(Quantity::Clients))
        else {
            continue;
        };
        for of in record.subjects() {
            let fits = of == rate.of || of.is_empty() || rate.of.is_empty();
            let times = record.quantiles(of);
            let Some(time) = record.mean(of).or_else(|| times.first().map(|(_, value)| *value))
            else {
                continue;
            };
            if !fits || !time.has_unit || record.get(time.quantity, of).is_none() {
                continue;
            }
            let facts = Facts { record, of, rate, clients, time };
            if !(multiplexed || wrk && facts.corrected_by_wrk()) {
                findings_add(findings, facts.too_many());
            }
            let from_tool = reading.tables.iter().any(|table| table.tool.is_some());
            if !(multiplexed || from_tool || reading.mentions(&PAUSES)) {
                findings_add(findings, facts.too_few());
            }
        }
    }
}

fn findings_add(findings: &mut Findings, finding: Option<Finding>) {
    if let Some(finding) = finding {
        findings.add(finding);
    }
}

struct Facts<'record> {
    record: &'record Record,
    of: &'record str,
    rate: &'record Value,
    clients: &'record Value,
    time: &'record Value,
}

impl Facts<'_> {
    /// The least mean that is stated, or that the percentiles allow.
    fn least_mean(&self) -> f64 {
        let mean = self.record.mean(self.of).map(|mean| mean.number.low);
        mean.unwrap_or_else(|| mean::least(self.record, self.of))
    }

    /// wrk adds samples behind each one longer than twice the usual interval, for those that it did
    /// not send: its mean is then not of the requests that its rate counts.
    fn corrected_by_wrk(&self) -> bool {
        let interval = self.clients.number.value / self.rate.number.low.max(f64::MIN_POSITIVE);
        let max = self.record.get(Quantity::Time(Stat::Max), self.of);
        max.is_none_or(|max| max.number.high >= 2.0 * interval)
    }

    fn too_many(&self) -> Option<Finding> {
        let least = self.least_mean();
        let in_flight = self.rate.number.low * least;
        let threads = self.record.only(Quantity::Threads).map_or(1.0, |value| value.number.value);
        let clients = self.clients.number.high;
        let per_thread = clients * threads.max(1.0);
        // Clients of each thread, as some tools count them.
        let explained = threads > 1.0 && in_flight <= per_thread * SLACK;
        if in_flight <= clients * SLACK || explained {
            return None;
        }
        let mut finding = at(self.rate, &[self.clients, self.time], Level::Impossible, "little");
        finding.because = format!(
            "{} x at least {} = at least {} requests in flight; {} clients have at most {}",
            show(self.rate.number.low, Quantity::Rate),
            show(least, self.time.quantity),
            digits(in_flight),
            digits(clients),
            digits(clients)
        );
        let rate = show(clients / least.max(f64::MIN_POSITIVE), Quantity::Rate);
        finding.fix = format!("at most {rate}, or {} clients", digits(in_flight.ceil()));
        Some(finding)
    }

    fn too_few(&self) -> Option<Finding> {
        let mean = self.record.mean(self.of)?;
        let clients = self.clients.number.low;
        let in_flight = self.rate.number.high * mean.number.high;
        if in_flight >= clients * 0.5 || self.record.only(Quantity::OfferedRate).is_some() {
            return None;
        }
        let mut finding = at(self.rate, &[self.clients, mean], Level::CannotTell, "little");
        let idle = (1.0 - in_flight / clients) * 100.0;
        finding.because = format!(
            "{} x {} = {} requests in flight of {} clients: for {idle:.0} % of their time the \
             clients waited for something else than the target",
            self.rate.number.text,
            mean.number.text,
            digits(self.rate.number.value * mean.number.value),
            digits(clients)
        );
        let fix = "the think time, or a client that is not itself the limit; until then the rate \
                   is not the capacity of the target";
        fix.clone_into(&mut finding.fix);
        Some(finding)
    }
}
