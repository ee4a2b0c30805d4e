//! Cache hits, if they are shown to be hits.

use plimsoll_metrics::Bias;
use plimsoll_report::format::{count, digits, or_dash, percent};

use super::CACHED;
use crate::bound::{Limit, Quantity, judge};
use crate::error::SuiteError;
use crate::http_get::counters;
use crate::measurement::Measurement;
use crate::ratio::Ratio;
use crate::report::Section;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::sizing;
use crate::suite::layers::gateway_layers::{identity, with_identity};
use crate::suite::layers::{metrics, unjudged};
use crate::suite::{length, passes};
use crate::target::Gateway;

/// The published goals, and the bounds that decide.
const THROUGHPUT: Limit = Quantity::THROUGHPUT.goal(2_000.0);
const AVERAGE: Limit = Quantity::AVERAGE.goal(5.0);
const P99: Limit = Quantity::P99.goal(20.0);
const BOUNDS: [Limit; 2] = [Quantity::P99.bound(50.0), Quantity::ERRORS.bound(0.01)];

/// One prompt again and again, if a cache is shown to answer it: the warm-up fills it. Returns
/// whether the gateway answers chats.
pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<bool, SuiteError> {
    if runner.is_interrupted() {
        return Ok(false);
    }
    let length = length(runner.options, 30);
    let (gateway, _provider) = runner.subject("layers", CACHED)?;
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
    let before = cache_counts(&gateway);
    let results = runner.measure(&measurements, passes(runner.options, 3, 3));
    let after = cache_counts(&gateway);
    let counted = before.zip(after);
    let counted = counted.map(|(before, after)| [after[0] - before[0], after[1] - before[1]]);
    let Some(hit) = results.first() else { return Ok(true) };
    if let Some(proof) = proven(runner, hit, counted, &proof) {
        let is_ours = runner.target().is_none();
        runner.report.sections.push(section(hit, results.get(1), is_ours).note(proof));
        let goals = [THROUGHPUT, AVERAGE, P99];
        let all = BOUNDS.into_iter().chain(goals).collect::<Vec<_>>();
        runner.report.bounds.extend(judge("layer 2, cache hit", hit, &all));
        runner.capacities.push(sizing::capacity("layer 2, cache hits", &[hit]));
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
    // Other work that a target does for a hit is unknown.
    let with = if is_ours { " (tenant, cache and budget check on every request)" } else { "" };
    Section::new(format!("Layer 2 - LLM gateway, cache hits{with}"), table)
}

const LIVE: &str = "/health/live";

/// The proof for all measured requests where the gateway counts its hits, otherwise the proof of
/// the probe. Only hits that the gateway counted are hits.
fn proven(
    runner: &mut SuiteRunner<'_>,
    hit: &MeasurementResult,
    counted: Option<[f64; 2]>,
    proof: &str,
) -> Option<String> {
    if let Some(why) = hit.why_unusable() {
        return Some(format!("INVALID: {why}"));
    }
    let Some([hits, misses]) = counted else {
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
    let own = runner.report.measurements.iter_mut().filter(|result| result.label == hit.label);
    own.for_each(|result| "equal chats, not shown to be hits".clone_into(&mut result.label));
    None
}

/// Hits and misses, as the reference gateway counted them.
fn cache_counts(gateway: &Gateway) -> Option<[f64; 2]> {
    let states = ["state=\"hit\"", "state=\"miss\""].map(|state| ["cache", state]);
    let [hits, misses] = counters(gateway.address()?, states);
    Some([hits?, misses?])
}
