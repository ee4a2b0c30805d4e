//! Layer 2: cache hits, cache misses beside the provider, many streams at once; and the log.

use std::time::Duration;

use plimsoll_measure::Nanos;

use crate::bench::Bench;
use crate::cell::{Figures, MeasurementResult};
use crate::child::get;
use crate::error::SuiteError;
use crate::gate::{Bound, Gate};
use crate::job::{Job, Length};
use crate::statistics::Spread;
use crate::words::{millis, percent, rate};

use super::super::{length, passes};
use super::first::{audit, bare_with, with_identity};

/// Layer 2, measured.
#[derive(Default)]
pub(super) struct Second {
    /// Cache hits.
    pub(super) hit: Option<MeasurementResult>,
    /// The gateway's own cheapest endpoint in the same minutes.
    pub(super) live: Option<MeasurementResult>,
    /// Cache misses, at a rate that neither is full with.
    pub(super) miss: Option<MeasurementResult>,
    /// The provider itself at that rate.
    pub(super) direct: Option<MeasurementResult>,
    /// Many streams at once.
    pub(super) streams: Option<MeasurementResult>,
}

impl Second {
    /// What the gateway adds to the provider's mean response time, pass by pass.
    pub(super) fn added(&self) -> Option<Spread> {
        let (miss, direct) = (self.miss.as_ref()?, self.direct.as_ref()?);
        let valid = |f: &Figures| f.mean_ms.filter(|_| f.invalid.is_none());
        let pairs = miss.passes.iter().zip(&direct.passes);
        let added: Vec<_> = pairs.filter_map(|(m, d)| Some(valid(m)? - valid(d)?)).collect();
        Spread::of(&added)
    }

    pub(super) fn gates(&self) -> Vec<Gate> {
        let errors = |f: &Figures| f.error_share;
        let mut gates = Vec::new();
        if let Some(hit) = &self.hit {
            gates.push(Gate::of(
                "layer 2, cache hit: p99",
                hit,
                |f| f.p99_ms,
                Bound::below(50.0, millis),
            ));
            gates.push(Gate::of(
                "layer 2, cache hit: errors",
                hit,
                errors,
                Bound::below(0.01, percent),
            ));
            let throughput = Bound::at_least(2_000.0, rate);
            gates.push(
                Gate::of("layer 2, cache hit: throughput", hit, |f| f.requests_per_s, throughput)
                    .target(),
            );
            gates.push(
                Gate::of(
                    "layer 2, cache hit: average",
                    hit,
                    |f| f.mean_ms,
                    Bound::below(5.0, millis),
                )
                .target(),
            );
            gates.push(
                Gate::of("layer 2, cache hit: p99", hit, |f| f.p99_ms, Bound::below(20.0, millis))
                    .target(),
            );
        }
        if let Some(added) = self.added() {
            let gate = Gate::value(
                "layer 2, cache miss: added to the provider's average",
                Some(added.median),
                Bound::below(20.0, millis),
            );
            gates.push(gate.target());
        }
        if let Some(streams) = &self.streams {
            gates.push(Gate::of(
                "streams at once: errors",
                streams,
                errors,
                Bound::below(0.01, percent),
            ));
        }
        gates
    }
}

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Second, SuiteError> {
    let (hit, live) = hits(bench)?;
    let (miss, direct) = misses(bench)?;
    Ok(Second { hit, live, miss, direct, streams: streams(bench)? })
}

/// The layers of the cached path: tenant, cache, budget.
const CACHED: [&str; 5] = [
    "tenant={header: x-tenant-id}",
    "cache={}",
    "budgets={unit: tokens, default: 1000000000000}",
    "metrics={}",
    "request_id={}",
];

/// One question again and again: the warm-up fills the cache, and every measured answer comes from it.
fn hits(
    bench: &mut Bench<'_>,
) -> Result<(Option<MeasurementResult>, Option<MeasurementResult>), SuiteError> {
    if bench.is_over() {
        return Ok((None, None));
    }
    let length = length(bench.order, 30);
    let provider = match bench.target() {
        Some(_) => None,
        None => Some(bench.provider(&[])?),
    };
    let gateway = match bench.target() {
        Some(subject) => crate::subject::Gateway::theirs(subject),
        None => bench.gateway("layers", &bare_with(&CACHED), provider.as_ref())?,
    };
    let clients = bench.order.clients.unwrap_or(30);
    let question =
        serde_json::json!({"mode": "pool", "prompts": ["Name three uses of a message queue."]});
    let hit = Job::chat("cache hit", &gateway.subject, false, (8, 64))
        .with("content", question)
        .with("cache_mode", "allow");
    let live = Job::get("/health/live of the same gateway", &gateway.subject, "/health/live");
    let jobs = [with_identity(hit).clients(clients, length), live.clients(clients, length)];
    let mut cells = bench.measure(&jobs, passes(bench.order, 3, 2)).into_iter();
    bench.retire(&gateway);
    let (hit, live) = (cells.next(), cells.next());
    if let Some(counts) = gateway.address().and_then(cache_counts) {
        bench.say(&format!("cache of the gateway: {counts}"));
    }
    Ok((hit, live))
}

/// What the gateway's metrics say of its cache, in a line.
fn cache_counts(address: &str) -> Option<String> {
    let answer = get(address, "/metrics", Duration::from_secs(2)).ok()?;
    let lines = answer.body.lines().filter(|line| line.contains("cache") && !line.starts_with('#'));
    let lines: Vec<_> = lines.take(6).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Each prompt once, so that every one goes to the provider, beside the provider itself.
fn misses(
    bench: &mut Bench<'_>,
) -> Result<(Option<MeasurementResult>, Option<MeasurementResult>), SuiteError> {
    if bench.target().is_some() {
        bench.skip(
            "cache misses beside the provider",
            "the target's provider is not ours to load directly",
        );
        return Ok((None, None));
    }
    if bench.is_over() {
        return Ok((None, None));
    }
    // A provider that takes its time, as real ones do, and little enough to see what is added.
    let provider = bench.provider(&["--ttft", "20ms"])?;
    let gateway = bench.gateway("layers", &bare_with(&CACHED), Some(&provider))?;
    let length = length(bench.order, 30);
    let job = |label: &str, subject: &crate::subject::Subject| {
        with_identity(Job::chat(label, subject, false, (128, 64))).rate(500.0, length)
    };
    let jobs = [
        job("cache miss through the gateway, 500/s", &gateway.subject),
        job("the provider itself, 500/s", &provider.subject()),
    ];
    let mut cells = bench.measure(&jobs, passes(bench.order, 3, 2)).into_iter();
    Ok((cells.next(), cells.next()))
}

/// As many streams at once as the seed promises, each of 20 events at a reader's pace.
fn streams(bench: &mut Bench<'_>) -> Result<Option<MeasurementResult>, SuiteError> {
    if bench.target().is_some() {
        bench.skip(
            "10,000 concurrent streams",
            "whether the target's provider carries them is not known; use `plimsoll run`",
        );
        return Ok(None);
    }
    if bench.is_over() {
        return Ok(None);
    }
    let (streams, warmup, measured) =
        if bench.order.quick { (1_000, 3, 4) } else { (10_000, 15, 30) };
    let provider = bench.provider(&["--ttft", "100ms", "--gap", "200ms", "--tokens", "20"])?;
    let gateway = bench.gateway("layers", &bare_with(&CACHED), Some(&provider))?;
    let length = Length::new(Nanos::from_secs(warmup), Nanos::from_secs(measured));
    let label = format!("{streams} SSE streams at once");
    let job = with_identity(Job::chat(&label, &gateway.subject, true, (32, 20)));
    let job = job.with("timeout", "60s").with("drain", "15s").clients(streams, length);
    let cells = bench.measure(&[job], 1);
    bench.retire(&gateway);
    Ok(cells.into_iter().next())
}

/// Rows of the request log, as the gateway counts them.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) accepted: Option<f64>,
    pub(super) written: Option<f64>,
    pub(super) dropped: Option<f64>,
    /// Lines in the file after the gateway has ended.
    pub(super) lines: u64,
    pub(super) per_s: Option<f64>,
    pub(super) cell: MeasurementResult,
}

impl Log {
    /// Accepted = written + dropped, and as many lines as written.
    pub(super) fn gates(&self) -> Vec<Gate> {
        let missing = self.accepted.zip(self.written).zip(self.dropped);
        let missing =
            missing.map(|((accepted, written), dropped)| (accepted - written - dropped).abs());
        // The request for the metrics makes a row itself, after they were read: one line more is none too many.
        let lost = self.written.map(|written| (written - self.lines as f64).max(0.0));
        let none = Bound::at_most(0.0, rate);
        vec![
            Gate::value("request log: accepted - written - dropped", missing, none),
            Gate::value("request log: written, and not in the file", lost, none),
            Gate::value("request log: rows/s", self.per_s, Bound::at_least(50_000.0, rate))
                .target(),
        ]
    }
}

/// Every request makes a row: as many as the gateway answers.
pub(super) fn log(bench: &mut Bench<'_>) -> Result<Option<Log>, SuiteError> {
    if bench.target().is_some() {
        bench.skip("log writing", "the target's log is not ours to count");
        return Ok(None);
    }
    if bench.is_over() {
        return Ok(None);
    }
    let file = "audit.jsonl";
    let sets = bare_with(&["metrics={}", &audit(bench, file)]);
    let gateway = bench.gateway("layers", &sets, None)?;
    let length = length(bench.order, 10);
    let job = Job::get("request log: a row for every request", &gateway.subject, "/");
    let cells = bench.measure(&[job.clients(200, length)], 1);
    let address = gateway.address().unwrap_or_default().to_owned();
    let counts = settled(&address);
    drop(gateway);
    let path = bench.order.folder.join(file);
    let text = std::fs::read(&path).unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n').count().saturating_sub(1) as u64;
    // A row is a few hundred bytes, and there may be millions.
    let _ = std::fs::remove_file(&path);
    let cell = cells.into_iter().next().unwrap_or_default();
    let per_s = cell.figures().and_then(|figures| figures.requests_per_s);
    let of = |state: &str| counts.iter().find(|(name, _)| name == state).map(|(_, n)| *n);
    let (accepted, written) = (of("accepted").or_else(|| of("offered")), of("written"));
    Ok(Some(Log { accepted, written, dropped: of("dropped"), lines, per_s, cell }))
}

/// The gateway's counts of rows once the last batch is out.
fn settled(address: &str) -> Vec<(String, f64)> {
    std::thread::park_timeout(Duration::from_millis(600));
    let body = get(address, "/metrics", Duration::from_secs(2)).map(|answer| answer.body);
    rows(&body.unwrap_or_default())
}

/// `..audit_rows{state="written"} 12` as pairs.
fn rows(metrics: &str) -> Vec<(String, f64)> {
    let pair = |line: &str| {
        let (labels, value) = line.split_once("audit_rows")?.1.split_once("} ")?;
        let state = labels.split('"').nth(1)?;
        Some((state.to_owned(), value.trim().parse().ok()?))
    };
    metrics.lines().filter(|line| !line.starts_with('#')).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_from_the_metrics() {
        let text = "# TYPE gateway_audit_rows gauge\ngateway_audit_rows{state=\"written\"} 12\ngateway_audit_rows{state=\"dropped\"} 3\nother 1\n";
        assert_eq!(rows(text), [("written".to_owned(), 12.0), ("dropped".to_owned(), 3.0)]);
    }

    #[test]
    fn what_the_log_lost_is_seen() {
        let log = |accepted, written, dropped, lines| Log {
            accepted: Some(accepted),
            written: Some(written),
            dropped: Some(dropped),
            lines,
            ..Log::default()
        };
        for (log, words) in [
            (log(10.0, 7.0, 3.0, 7), ["PASS", "PASS", "no telling"]),
            (log(10.0, 7.0, 2.0, 7), ["FAIL", "PASS", "no telling"]),
            (log(10.0, 10.0, 0.0, 9), ["PASS", "FAIL", "no telling"]),
            (log(10.0, 10.0, 0.0, 11), ["PASS", "PASS", "no telling"]),
        ] {
            let gates = log.gates();
            assert_eq!(gates.iter().map(Gate::word).collect::<Vec<_>>(), words, "{log:?}");
        }
    }

    #[test]
    fn what_the_gateway_adds_is_paired_by_pass() {
        let cell = |means: &[f64]| MeasurementResult {
            passes: means
                .iter()
                .map(|mean| Figures { mean_ms: Some(*mean), ..Figures::default() })
                .collect(),
            ..MeasurementResult::default()
        };
        let second = Second {
            miss: Some(cell(&[20.3, 25.3, 21.3])),
            direct: Some(cell(&[20.0, 25.0, 21.0])),
            ..Second::default()
        };
        let added = second.added().unwrap();
        assert!((added.median - 0.3).abs() < 1e-9 && (added.high - added.low).abs() < 1e-9);
    }
}
