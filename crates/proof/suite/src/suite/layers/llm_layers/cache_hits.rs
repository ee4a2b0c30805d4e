//! Cache hits, if they are shown to be hits.

use std::time::Duration;

use plimsoll_metrics::BoundedFigure;
use plimsoll_report::format::{count, digits, percent, time};

use super::{CACHED, LlmLayers};
use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::http_get::get;
use crate::measurement::Measurement;
use crate::result::{Figures, MeasurementResult};
use crate::runner::SuiteRunner;
use crate::suite::layers::gateway_layers::{bare_with, identity, with_identity};
use crate::suite::{length, passes};
use crate::target::Gateway;

/// Two bounds and three goals of cache hits.
pub(super) fn bounds(hit: &MeasurementResult) -> Vec<BoundResult> {
    let of = |figure: &str, value: fn(&Figures) -> Option<BoundedFigure>, requirement| {
        BoundResult::of_figure(&format!("layer 2, cache hit: {figure}"), hit, value, requirement)
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

/// One prompt again and again, if a cache is shown to answer it: the warm-up fills it.
pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<LlmLayers, SuiteError> {
    if runner.is_interrupted() {
        return Ok(LlmLayers::default());
    }
    let length = length(runner.options, 30);
    let provider = match runner.target() {
        Some(_) => None,
        None => Some(runner.provider(&[])?),
    };
    let gateway = match runner.target() {
        Some(target) => Gateway::external(target),
        None => runner.gateway("layers", &bare_with(&CACHED), provider.as_ref())?,
    };
    runner.section = "Layer 2 - LLM gateway, cache hits";
    if !runner.answers_chats(&gateway.target, false)? {
        return Ok(LlmLayers::default());
    }
    let headers = identity(&gateway.target);
    let proof = match runner.prove_cache(&gateway.target, headers)? {
        Ok(proof) => proof,
        Err(why) => {
            runner.miss("cache hits", &why);
            return Ok(LlmLayers { answers: true, ..LlmLayers::default() });
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
    let before = address.as_deref().and_then(cache_counts);
    let mut results = runner.measure(&measurements, passes(runner.options, 3, 3)).into_iter();
    let (hit, live) = (results.next(), results.next());
    let after = address.as_deref().and_then(cache_counts);
    let counted = before.zip(after).map(|(before, after)| after.since(before));
    let proof = hit.as_ref().and_then(|hit| proven(runner, hit, counted, &proof));
    let hit = hit.filter(|_| proof.is_some());
    Ok(LlmLayers { answers: true, hit, proof, live, ..LlmLayers::default() })
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
        let is_busy = hit.busy_host().is_some();
        let so = if is_busy { "" } else { ": every measured answer is a hit" };
        return Some(format!("{counts}{so}"));
    }
    runner.miss("cache hits", &counts);
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
    fn from_metrics(metrics: &str) -> Option<Self> {
        let [hits, misses] = ["state=\"hit\"", "state=\"miss\""].map(|label| {
            let mut lines = metrics.lines().filter(|line| !line.starts_with('#'));
            let line = lines.find(|line| line.contains("cache") && line.contains(label))?;
            line.rsplit_once(' ')?.1.parse().ok()
        });
        Some(Self { hits: hits?, misses: misses? })
    }
}

fn cache_counts(address: &str) -> Option<CacheCounts> {
    CacheCounts::from_metrics(&get(address, "/metrics", Duration::from_secs(2)).ok()?.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_what_the_gateway_counted() {
        let text = "# HELP g_cache LLM requests\ng_cache_total{state=\"miss\"} 3\ng_cache_total{state=\"hit\"} 12\n";
        let counts = CacheCounts { hits: 12.0, misses: 3.0 };
        assert_eq!(CacheCounts::from_metrics(text), Some(counts));
        let before = CacheCounts { hits: 2.0, misses: 2.0 };
        assert_eq!(counts.since(before), CacheCounts { hits: 10.0, misses: 1.0 });
        assert_eq!(CacheCounts::from_metrics("# no cache\n"), None);
    }
}
