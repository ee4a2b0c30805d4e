//! Cache hits, if they are shown to be hits.

use std::time::Duration;

use plimsoll_metrics::Bias;
use plimsoll_report::format::{count, digits, or_dash, percent};

use super::CACHED;
use crate::bound::{Limit, Quantity, judge};
use crate::error::SuiteError;
use crate::http_get::{get, metric_value};
use crate::measurement::Measurement;
use crate::ratio::Ratio;
use crate::report::{Contents, Section};
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::sizing;
use crate::suite::layers::gateway_layers::{bare_with, identity, with_identity};
use crate::suite::layers::{metrics, unjudged};
use crate::suite::{length, passes};

/// The published goals, and the bounds that decide.
const THROUGHPUT: Limit = Quantity::THROUGHPUT.goal(2_000.0);
const AVERAGE: Limit = Quantity::AVERAGE.goal(5.0);
const P99: Limit = Quantity::P99.goal(20.0);
const BOUNDS: [Limit; 2] = [Quantity::P99.bound(50.0), Quantity::ERRORS.bound(0.01)];

/// One prompt again and again, if a cache is shown to answer it: the warm-up fills it. Returns
/// whether the gateway answers chats.
pub(super) fn measure(
    runner: &mut SuiteRunner<'_>,
    contents: &mut Contents,
) -> Result<bool, SuiteError> {
    if runner.is_interrupted() {
        return Ok(false);
    }
    let length = length(runner.options, 30);
    let (gateway, _provider) = runner.subject("layers", &bare_with(&CACHED))?;
    runner.section = "Layer 2 - LLM gateway, cache hits";
    if !runner.answers_chats(&gateway.target, false)? {
        return Ok(false);
    }
    let headers = identity(&gateway.target);
    let proof = match runner.prove_cache(&gateway.target, headers)? {
        Ok(proof) => proof,
        Err(why) => {
            runner.miss("cache hits", &why);
            return Ok(true);
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
    let before = gateway.address().and_then(CacheCounts::fetch);
    let results = runner.measure(&measurements, passes(runner.options, 3, 3));
    let after = gateway.address().and_then(CacheCounts::fetch);
    let counted = before.zip(after).map(|(before, after)| after.since(before));
    let Some(hit) = results.first() else { return Ok(true) };
    if let Some(proof) = proven(runner, hit, counted, &proof) {
        let is_ours = runner.target().is_none();
        contents.sections.push(section(hit, results.get(1), is_ours).note(proof));
        let goals = [THROUGHPUT, AVERAGE, P99];
        let all = BOUNDS.into_iter().chain(goals).collect::<Vec<_>>();
        contents.bounds.extend(judge("layer 2, cache hit", hit, &all));
        contents.capacities.push(sizing::capacity("layer 2, cache hits", &[hit]));
    }
    Ok(true)
}

fn section(hit: &MeasurementResult, live: Option<&MeasurementResult>, is_ours: bool) -> Section {
    let rates = hit.throughput().zip(live.and_then(MeasurementResult::throughput));
    let of_live = rates.and_then(|(hit, live)| Ratio::new(hit, live, Bias::Takes));
    let of_live = or_dash(of_live, |share| share.text(percent));
    let table = metrics([
        THROUGHPUT.row("Cache-hit throughput", Some(hit)),
        AVERAGE.row("Cache-hit average", Some(hit)),
        P99.row("Cache-hit P99", Some(hit)),
        Quantity::ERRORS.goal(0.000_1).row("Cache-hit error rate", Some(hit)),
        unjudged("Cache-hit rate over /health/live of the same gateway", of_live, ">= 50%"),
    ]);
    // What else a target does for a hit is not known.
    let with = if is_ours { " (tenant, cache and budget check on every request)" } else { "" };
    Section::new(format!("Layer 2 - LLM gateway, cache hits{with}"), table)
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
        return Some(format!("INVALID: {why}"));
    }
    let Some(CacheCounts { hits, misses }) = counted else {
        return Some(format!("hits not counted; {proof}"));
    };
    let requests: u64 = hit.passes.iter().map(|pass| pass.requests).sum();
    let counts = format!(
        "{} hits, {} misses, {} measured requests",
        digits(hits),
        digits(misses),
        count(requests)
    );
    // The first question, in the warm-up, is a miss.
    if hits >= requests as f64 && misses <= 1.0 {
        return Some(counts);
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
        let hits = metric_value(metrics, &["cache", "state=\"hit\""])?;
        Some(Self { hits, misses: metric_value(metrics, &["cache", "state=\"miss\""])? })
    }

    fn fetch(address: &str) -> Option<Self> {
        Self::from_metrics(&get(address, "/metrics", Duration::from_secs(2)).ok()?.body)
    }
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
