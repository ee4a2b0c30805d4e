//! Layer 2, LLM requests: cache hits, cache misses and the provider itself, many streams at once;
//! and the request log.

use std::time::Duration;

use plimsoll_harness::statistics::{Spread, paired_differences};
use plimsoll_harness::time;
use plimsoll_measure::Nanos;
use plimsoll_report::format::{digits, percent, time};

use super::super::{length, passes};
use super::gateway_layers::{audit, bare_with, with_identity};
use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::http_get::get;
use crate::measurement::{Length, Measurement};
use crate::result::{Figures, MeasurementResult};
use crate::runner::SuiteRunner;

/// Layer 2, measured.
#[derive(Default)]
pub(super) struct LlmLayers {
    /// Cache hits.
    pub(super) hit: Option<MeasurementResult>,
    /// The gateway's own cheapest endpoint in the same minutes.
    pub(super) live: Option<MeasurementResult>,
    /// Cache misses, at a rate that saturates neither gateway nor provider.
    pub(super) miss: Option<MeasurementResult>,
    /// The provider itself at that rate.
    pub(super) direct: Option<MeasurementResult>,
    /// Many streams at once.
    pub(super) streams: Option<MeasurementResult>,
}

impl LlmLayers {
    /// The time that the gateway adds to the provider's mean response time, paired by pass.
    pub(super) fn added(&self) -> Option<Spread> {
        let (miss, direct) = (self.miss.as_ref()?, self.direct.as_ref()?);
        let means = |result: &MeasurementResult| result.valid_figures(|f| f.mean_ms);
        Spread::of(&paired_differences(&means(direct), &means(miss)))
    }

    pub(super) fn bounds(&self) -> Vec<BoundResult> {
        let mut bounds = self.hit.as_ref().map(hit_bounds).unwrap_or_default();
        if let Some(added) = self.added() {
            let bound = BoundResult::value(
                "layer 2, cache miss: added to the provider's average",
                Some(added.median),
                Requirement::below(20.0, time),
            );
            bounds.push(bound.into_goal());
        }
        if let Some(streams) = &self.streams {
            let few = Requirement::below(0.01, percent);
            bounds.push(BoundResult::of(
                "streams at once: errors",
                streams,
                |f| f.error_share,
                few,
            ));
        }
        bounds
    }
}

/// Two bounds and three goals of cache hits.
fn hit_bounds(hit: &MeasurementResult) -> Vec<BoundResult> {
    let of = |figure: &str, value: fn(&Figures) -> Option<f64>, requirement| {
        BoundResult::of(&format!("layer 2, cache hit: {figure}"), hit, value, requirement)
    };
    vec![
        of("p99", |f| f.p99_ms, Requirement::below(50.0, time)),
        of("errors", |f| f.error_share, Requirement::below(0.01, percent)),
        of("throughput", |f| f.requests_per_s, Requirement::at_least(2_000.0, digits)).into_goal(),
        of("average", |f| f.mean_ms, Requirement::below(5.0, time)).into_goal(),
        of("p99", |f| f.p99_ms, Requirement::below(20.0, time)).into_goal(),
    ]
}

pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<LlmLayers, SuiteError> {
    let (hit, live) = hits(runner)?;
    let (miss, direct) = misses(runner)?;
    Ok(LlmLayers { hit, live, miss, direct, streams: streams(runner)? })
}

/// The layers of the cached path: tenant, cache, budget.
const CACHED: [&str; 5] = [
    "tenant={header: x-tenant-id}",
    "cache={}",
    "budgets={unit: tokens, default: 1000000000000}",
    "metrics={}",
    "request_id={}",
];

/// One prompt again and again: the warm-up fills the cache, and every measured answer comes from
/// it.
fn hits(
    runner: &mut SuiteRunner<'_>,
) -> Result<(Option<MeasurementResult>, Option<MeasurementResult>), SuiteError> {
    if runner.is_interrupted() {
        return Ok((None, None));
    }
    let length = length(runner.options, 30);
    let provider = match runner.target() {
        Some(_) => None,
        None => Some(runner.provider(&[])?),
    };
    let gateway = match runner.target() {
        Some(target) => crate::target::Gateway::external(target),
        None => runner.gateway("layers", &bare_with(&CACHED), provider.as_ref())?,
    };
    let clients = runner.options.clients.unwrap_or(30);
    let prompt =
        serde_json::json!({"mode": "pool", "prompts": ["Name three uses of a message queue."]});
    let hit = Measurement::chat("cache hit", &gateway.target, false, (8, 64))
        .with("content", prompt)
        .with("cache_mode", "allow");
    let live =
        Measurement::get("/health/live of the same gateway", &gateway.target, "/health/live");
    let measurements = [with_identity(hit).clients(clients, length), live.clients(clients, length)];
    let mut results = runner.measure(&measurements, passes(runner.options, 3, 2)).into_iter();
    runner.record_memory(&gateway);
    let (hit, live) = (results.next(), results.next());
    if let Some(counts) = gateway.address().and_then(cache_counts) {
        runner.log(&format!("cache of the gateway: {counts}"));
    }
    Ok((hit, live))
}

/// The cache counters in the gateway's metrics, in a line.
fn cache_counts(address: &str) -> Option<String> {
    let response = get(address, "/metrics", Duration::from_secs(2)).ok()?;
    let lines =
        response.body.lines().filter(|line| line.contains("cache") && !line.starts_with('#'));
    let lines: Vec<_> = lines.take(6).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Prompts that never repeat, so that every one goes to the provider; and the provider itself.
fn misses(
    runner: &mut SuiteRunner<'_>,
) -> Result<(Option<MeasurementResult>, Option<MeasurementResult>), SuiteError> {
    if runner.target().is_some() {
        runner.skip(
            "cache misses beside the provider",
            "the suite does not load the target's provider directly",
        );
        return Ok((None, None));
    }
    if runner.is_interrupted() {
        return Ok((None, None));
    }
    // A provider with a delay, as real ones have, short enough to see what the gateway adds.
    let provider = runner.provider(&["--ttft", "20ms"])?;
    let gateway = runner.gateway("layers", &bare_with(&CACHED), Some(&provider))?;
    let length = length(runner.options, 30);
    let measurement = |label: &str, target: &crate::target::SuiteTarget| {
        with_identity(Measurement::chat(label, target, false, (128, 64))).rate(500.0, length)
    };
    let measurements = [
        measurement("cache miss through the gateway, 500/s", &gateway.target),
        measurement("the provider itself, 500/s", &provider.target()),
    ];
    let mut results = runner.measure(&measurements, passes(runner.options, 3, 2)).into_iter();
    Ok((results.next(), results.next()))
}

/// As many streams at once as in the published benchmark, each with 20 events at reading speed.
fn streams(runner: &mut SuiteRunner<'_>) -> Result<Option<MeasurementResult>, SuiteError> {
    if runner.target().is_some() {
        runner.skip(
            "10,000 concurrent streams",
            "whether the target's provider carries them is not known; use `plimsoll run`",
        );
        return Ok(None);
    }
    if runner.is_interrupted() {
        return Ok(None);
    }
    let (streams, warmup, measured) =
        if runner.options.quick { (1_000, 3, 4) } else { (10_000, 15, 30) };
    let provider = runner.provider(&["--ttft", "100ms", "--gap", "200ms", "--tokens", "20"])?;
    let gateway = runner.gateway("layers", &bare_with(&CACHED), Some(&provider))?;
    let length = Length::new(Nanos::from_secs(warmup), Nanos::from_secs(measured));
    let label = format!("{streams} SSE streams at once");
    let measurement = with_identity(Measurement::chat(&label, &gateway.target, true, (32, 20)));
    let measurement =
        measurement.with("timeout", "60s").with("drain", "15s").clients(streams, length);
    let results = runner.measure(&[measurement], 1);
    runner.record_memory(&gateway);
    Ok(results.into_iter().next())
}

/// The request log: the rows as the gateway counts them, and the lines of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestLog {
    pub(super) accepted: Option<f64>,
    pub(super) written: Option<f64>,
    pub(super) dropped: Option<f64>,
    /// Lines in the file after the gateway has ended.
    pub(super) lines: u64,
    pub(super) per_s: Option<f64>,
    pub(super) result: MeasurementResult,
}

impl RequestLog {
    /// Accepted = written + dropped, and as many lines as written.
    pub(super) fn bounds(&self) -> Vec<BoundResult> {
        let missing = self.accepted.zip(self.written).zip(self.dropped);
        let missing =
            missing.map(|((accepted, written), dropped)| (accepted - written - dropped).abs());
        // The request for the metrics makes a row itself, after they were read: the file may have
        // one line more.
        let lost = self.written.map(|written| (written - self.lines as f64).max(0.0));
        let none = Requirement::at_most(0.0, digits);
        vec![
            BoundResult::value("request log: accepted - written - dropped", missing, none),
            BoundResult::value("request log: written, and not in the file", lost, none),
            BoundResult::value(
                "request log: rows/s",
                self.per_s,
                Requirement::at_least(50_000.0, digits),
            )
            .into_goal(),
        ]
    }
}

/// Loads a gateway that writes a row for every request, and compares its counts with the file.
pub(super) fn log(runner: &mut SuiteRunner<'_>) -> Result<Option<RequestLog>, SuiteError> {
    if runner.target().is_some() {
        runner.skip("log writing", "the suite cannot read the target's log");
        return Ok(None);
    }
    if runner.is_interrupted() {
        return Ok(None);
    }
    let file = "audit.jsonl";
    let sets = bare_with(&["metrics={}", &audit(runner, file)]);
    let gateway = runner.gateway("layers", &sets, None)?;
    let length = length(runner.options, 10);
    let measurement =
        Measurement::get("request log: a row for every request", &gateway.target, "/");
    let results = runner.measure(&[measurement.clients(200, length)], 1);
    let address = gateway.address().unwrap_or_default().to_owned();
    let counts = final_row_counts(&address);
    drop(gateway);
    let path = runner.options.folder.join(file);
    let text = std::fs::read(&path).unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n').count().saturating_sub(1) as u64;
    // A row is a few hundred bytes, and there may be millions.
    let _ = std::fs::remove_file(&path);
    let result = results.into_iter().next().unwrap_or_default();
    let per_s = result.figures().and_then(|figures| figures.requests_per_s);
    let of = |state: &str| counts.iter().find(|(name, _)| name == state).map(|(_, n)| *n);
    let (accepted, written) = (of("accepted").or_else(|| of("offered")), of("written"));
    Ok(Some(RequestLog { accepted, written, dropped: of("dropped"), lines, per_s, result }))
}

/// The gateway's counts of rows after the last batch was written.
fn final_row_counts(address: &str) -> Vec<(String, f64)> {
    time::sleep(Duration::from_millis(600));
    let body = get(address, "/metrics", Duration::from_secs(2)).map(|response| response.body);
    row_counts(&body.unwrap_or_default())
}

/// Parses `..audit_rows{state="written"} 12` into pairs.
fn row_counts(metrics: &str) -> Vec<(String, f64)> {
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
        assert_eq!(row_counts(text), [("written".to_owned(), 12.0), ("dropped".to_owned(), 3.0)]);
    }

    #[test]
    fn lost_rows_of_the_log_are_found() {
        let log = |accepted, written, dropped, lines| RequestLog {
            accepted: Some(accepted),
            written: Some(written),
            dropped: Some(dropped),
            lines,
            ..RequestLog::default()
        };
        for (log, words) in [
            (log(10.0, 7.0, 3.0, 7), ["PASS", "PASS", "inconclusive"]),
            (log(10.0, 7.0, 2.0, 7), ["FAIL", "PASS", "inconclusive"]),
            (log(10.0, 10.0, 0.0, 9), ["PASS", "FAIL", "inconclusive"]),
            (log(10.0, 10.0, 0.0, 11), ["PASS", "PASS", "inconclusive"]),
        ] {
            let bounds = log.bounds();
            assert_eq!(
                bounds.iter().map(BoundResult::status).collect::<Vec<_>>(),
                words,
                "{log:?}"
            );
        }
    }

    #[test]
    fn what_the_gateway_adds_is_paired_by_pass() {
        let result = |means: &[f64]| MeasurementResult {
            passes: means
                .iter()
                .map(|mean| Figures { mean_ms: Some(*mean), ..Figures::default() })
                .collect(),
            ..MeasurementResult::default()
        };
        let llm = LlmLayers {
            miss: Some(result(&[20.3, 25.3, 21.3])),
            direct: Some(result(&[20.0, 25.0, 21.0])),
            ..LlmLayers::default()
        };
        let added = llm.added().unwrap();
        assert!((added.median - 0.3).abs() < 1e-9 && (added.high - added.low).abs() < 1e-9);
    }
}
