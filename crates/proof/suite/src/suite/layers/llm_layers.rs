//! Layer 2, LLM requests: cache hits, cache misses and the provider itself, many streams at once;
//! and the request log.

use std::time::Duration;

use plimsoll_harness::statistics::{Spread, paired_differences};
use plimsoll_harness::time;
use plimsoll_measure::Nanos;
use plimsoll_report::format::{count, digits, percent, time};

use super::super::{length, passes};
use super::gateway_layers::{audit, bare_with, identity, with_identity};
use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::finding::FEWEST_PAIRS;
use crate::http_get::get;
use crate::measurement::{Length, Measurement};
use crate::result::{Figures, MeasurementResult};
use crate::runner::SuiteRunner;

/// Layer 2, measured.
#[derive(Default)]
pub(super) struct LlmLayers {
    /// Cache hits, if they are shown to be hits.
    pub(super) hit: Option<MeasurementResult>,
    /// What shows it.
    pub(super) proof: Option<String>,
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
        let means = |result: &MeasurementResult| result.usable_figures(|f| f.mean_ms);
        let added = Spread::of(&paired_differences(&means(direct), &means(miss)))?;
        (added.count >= FEWEST_PAIRS).then_some(added)
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
            bounds.push(BoundResult::of_errors(
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
        BoundResult::of_errors(
            "layer 2, cache hit: errors",
            hit,
            |f| f.error_share,
            Requirement::below(0.01, percent),
        ),
        of("throughput", |f| f.requests_per_s, Requirement::at_least(2_000.0, digits)).into_goal(),
        of("average", |f| f.mean_ms, Requirement::below(5.0, time)).into_goal(),
        of("p99", |f| f.p99_ms, Requirement::below(20.0, time)).into_goal(),
    ]
}

pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<LlmLayers, SuiteError> {
    let hits = hits(runner)?;
    let (miss, direct) = misses(runner)?;
    Ok(LlmLayers { miss, direct, streams: streams(runner)?, ..hits })
}

/// The layers of the cached path: tenant, cache, budget.
const CACHED: [&str; 5] = [
    "tenant={header: x-tenant-id, anonymous: true}",
    "cache={}",
    "budgets={unit: tokens, default: 1000000000000}",
    "metrics={}",
    "request_id={}",
];

/// One prompt again and again, if a cache is shown to answer it: the warm-up fills it.
fn hits(runner: &mut SuiteRunner<'_>) -> Result<LlmLayers, SuiteError> {
    if runner.is_interrupted() {
        return Ok(LlmLayers::default());
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
    if !runner.answers_chats(&gateway.target, false)? {
        return Ok(LlmLayers::default());
    }
    let headers = identity(&gateway.target);
    let proof = match runner.prove_cache(&gateway.target, headers)? {
        Ok(proof) => proof,
        Err(why) => {
            runner.miss("cache hits", &format!("not measured: {why}"));
            return Ok(LlmLayers::default());
        }
    };
    let clients = runner.options.clients.unwrap_or(30);
    let prompt =
        serde_json::json!({"mode": "pool", "prompts": ["Name three uses of a message queue."]});
    let hit = Measurement::chat("cache hit", &gateway.target, false, (8, 64))
        .with("content", prompt)
        .with("cache_mode", "allow");
    let mut measurements = vec![with_identity(hit).clients(clients, length)];
    if runner.serves(&gateway.target, LIVE)? {
        let live = Measurement::get("/health/live of the same gateway", &gateway.target, LIVE);
        measurements.push(live.clients(clients, length));
    }
    let address = gateway.address().map(str::to_owned);
    let counted = || address.as_deref().and_then(cache_counts);
    let before = counted();
    let mut results = runner.measure(&measurements, passes(runner.options, 3, 3)).into_iter();
    let (hit, live) = (results.next(), results.next());
    let counted = before.zip(counted()).map(|(before, after)| after.since(before));
    let proof = hit.as_ref().and_then(|hit| proven(runner, hit, counted, &proof));
    let hit = hit.filter(|_| proof.is_some());
    Ok(LlmLayers { hit, proof, live, ..LlmLayers::default() })
}

const LIVE: &str = "/health/live";

/// The proof for all of the measured requests where the gateway counts its hits, or else that of
/// the probe. Hits that the gateway did not count are none.
fn proven(
    runner: &mut SuiteRunner<'_>,
    hit: &MeasurementResult,
    counted: Option<CacheCounts>,
    proof: &str,
) -> Option<String> {
    if let Some(why) = hit.why_unusable() {
        return Some(format!("do not use these figures: {why}"));
    }
    let Some(CacheCounts { hits, misses }) = counted else {
        return Some(format!(
            "when it was tried, {proof}; how many of the measured answers were hits is not known"
        ));
    };
    let requests: u64 = hit.passes.iter().map(|pass| pass.requests).sum();
    let counts = format!(
        "the gateway counted {} hits and {} misses for {} measured requests and their warm-up",
        digits(hits),
        digits(misses),
        count(requests)
    );
    // The first question, in the warm-up, is a miss.
    if hits >= requests as f64 && misses <= 1.0 {
        return Some(format!("{counts}: every measured answer is a hit"));
    }
    runner.miss("cache hits", &format!("not shown: {counts}"));
    runner.results.iter_mut().filter(|result| result.label == hit.label).for_each(|result| {
        "equal chats, not shown to be hits".clone_into(&mut result.label);
    });
    None
}

/// What the reference gateway counted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CacheCounts {
    hits: f64,
    misses: f64,
}

impl CacheCounts {
    fn since(self, before: Self) -> Self {
        Self { hits: self.hits - before.hits, misses: self.misses - before.misses }
    }

    /// The counters in the gateway's metrics.
    fn of(metrics: &str) -> Option<Self> {
        let of = |state: &str| {
            let label = format!("state=\"{state}\"");
            let is_counter = |line: &&str| {
                line.contains("cache") && line.contains(&label) && !line.starts_with('#')
            };
            metrics.lines().find(is_counter)?.rsplit_once(' ')?.1.parse().ok()
        };
        Some(Self { hits: of("hit")?, misses: of("miss")? })
    }
}

fn cache_counts(address: &str) -> Option<CacheCounts> {
    CacheCounts::of(&get(address, "/metrics", Duration::from_secs(2)).ok()?.body)
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
    let mut results = runner.measure(&measurements, passes(runner.options, 3, 3)).into_iter();
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
    let (wanted, warmup, measured) =
        if runner.options.quick { (1_000, 3, 4) } else { (10_000, 15, 30) };
    let provider = runner.provider(&["--ttft", "100ms", "--gap", "200ms", "--tokens", "20"])?;
    let gateway = runner.gateway("layers", &bare_with(&CACHED), Some(&provider))?;
    let length = Length::new(Nanos::from_secs(warmup), Nanos::from_secs(measured));
    let (most, whose) = runner.most_connections(&gateway.target);
    let Some(streams) = fitting(wanted, most) else {
        runner.skip("many streams at once", &format!("the open files of {whose} allow {most}"));
        return Ok(None);
    };
    if streams < wanted {
        let why = format!(
            "measured with {}, which is what the open files of {whose} allow; raise the hard limit (`ulimit -Hn`) above {}",
            count(u64::from(streams)),
            count(2 * u64::from(wanted) + 200)
        );
        runner.skip(&format!("{} concurrent streams", count(u64::from(wanted))), &why);
    }
    let label = format!("{streams} SSE streams at once");
    let measurement = with_identity(Measurement::chat(&label, &gateway.target, true, (32, 20)));
    let measurement =
        measurement.with("timeout", "60s").with("drain", "15s").clients(streams, length);
    let results = runner.measure(&[measurement], 1);
    Ok(results.into_iter().next())
}

/// As many streams as wanted, or the round number below that open files allow; `None` if they are
/// too few to be called many.
fn fitting(wanted: u32, most: u64) -> Option<u32> {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let streams = if wanted <= most { wanted } else { most / 100 * 100 };
    (streams >= 100).then_some(streams)
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
                .map(|mean| Figures { requests: 9, mean_ms: Some(*mean), ..Figures::default() })
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
        let pair = LlmLayers { miss: Some(result(&[20.3, 25.3])), ..llm };
        assert_eq!(pair.added(), None, "two pairs are too few");
    }

    #[test]
    fn streams_are_as_many_as_open_files_allow() {
        for (wanted, most, streams) in [
            (10_000, u64::MAX, Some(10_000)),
            (10_000, 10_000, Some(10_000)),
            // 20,000 files of a gateway that takes two for each stream.
            (10_000, 9_936, Some(9_900)),
            (1_000, 448, Some(400)),
            (1_000, 99, None),
        ] {
            assert_eq!(fitting(wanted, most), streams, "{wanted} of {most}");
        }
    }

    #[test]
    fn hits_are_what_the_gateway_counted() {
        let text = "# HELP g_cache LLM requests\ng_cache_total{state=\"miss\"} 3\ng_cache_total{state=\"hit\"} 12\n";
        let counts = CacheCounts { hits: 12.0, misses: 3.0 };
        assert_eq!(CacheCounts::of(text), Some(counts));
        let before = CacheCounts { hits: 2.0, misses: 2.0 };
        assert_eq!(counts.since(before), CacheCounts { hits: 10.0, misses: 1.0 });
        assert_eq!(CacheCounts::of("# no cache\n"), None);
    }
}
