//! Layer 2, LLM requests: cache hits, cache misses and the provider itself, many streams at once.

use plimsoll_measure::Nanos;
use plimsoll_metrics::Bias;
use plimsoll_report::format::{count, digits, or_dash, percent, time};

use super::gateway_layers::{behind, identity, with_identity};
use super::{metrics, unjudged};
use crate::bound::{BoundResult, Limit, Quantity, Requirement, judge};
use crate::error::SuiteError;
use crate::http_get::counters;
use crate::measurement::{Length, Measurement};
use crate::ratio::Ratio;
use crate::report::Section;
use crate::result::MeasurementResult;
use crate::runner::{NO_DIRECT, SuiteRunner};
use crate::sizing;
use crate::suite::columns::{
    self, Column, ERRORS, GAP_P99, GW_CORE, LOAD_CORE, RPS, TTFT_P50, TTFT_P99,
};
use crate::suite::{PAIRS_PER_S, TIMES_SHORT, comparison_length, length, passes};
use crate::target::{Gateway, SuiteTarget};

pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    let answers = measure_cache_hits(runner)?;
    misses(runner, answers)?;
    streams(runner)
}

/// The settings of the cached path: tenant, cache, budget.
const CACHED: &str = "cached";

/// The name of the gateway beside its provider.
const GATEWAY: &str = "gateway";

/// Prompts that never repeat, so that every one goes to the provider; and the provider itself, of
/// the user's gateway if the suite may ask that, too. `answers`: whether the gateway answers chats.
fn misses(runner: &mut SuiteRunner<'_>, answers: bool) -> Result<(), SuiteError> {
    runner.section = MISSES;
    let Some(target) = runner.target() else {
        if !runner.is_interrupted() {
            // A provider with a delay, like real ones, but short enough to show the overhead.
            let provider = runner.provider(&["--ttft", "20ms"])?;
            let gateway = runner.gateway("layers", CACHED, &[], Some(&provider))?;
            let ways = [provider.target(), gateway.target];
            compare_misses(runner, ways, MISSES_PER_S);
        }
        return Ok(());
    };
    let Some(direct) = runner.direct().filter(|_| answers) else {
        runner.skip_section(if answers { NO_DIRECT } else { NO_CHAT });
        return Ok(());
    };
    if runner.answers_chats(&direct, false)? && !runner.is_interrupted() {
        let (target, direct) = behind(&target, &direct);
        compare_misses(runner, [direct, target], PAIRS_PER_S);
    }
    Ok(())
}

/// Why a part with chats is not measured.
pub(in crate::suite) const NO_CHAT: &str = "the target answers no chat";
const MISSES: &str = "Layer 2 - LLM gateway, cache misses";

/// Compares both routes, with this rate on each.
fn compare_misses(runner: &mut SuiteRunner<'_>, [provider, gateway]: [SuiteTarget; 2], per_s: f64) {
    let chat = Measurement::chat("cache miss", &provider, false, (128, 64));
    let targets = vec![("provider".to_owned(), provider), (GATEWAY.to_owned(), gateway)];
    let request =
        with_identity(chat).rate(per_s, comparison_length(runner.options, 30, TIMES_SHORT));
    let added = runner.compare(request, &targets, false);
    let what = "layer 2, cache miss: added to the provider, median";
    let bound = BoundResult::interval(what, added.added(GATEWAY), Requirement::below(20.0, time));
    let bound = bound.into_goal();
    let cpu = "Cache miss: CPU of the gateway per request";
    let [miss, measured, goal, status, none] = bound.row("Cache miss: added, median");
    let table = metrics([
        [miss, added.marked(measured), goal, status, none],
        unjudged(cpu, added.marked_own_cpu(GATEWAY), ""),
    ]);
    runner.report.sections.push(Section::new(MISSES, table));
    runner.report.bounds.push(bound);
}

/// Cache misses per second of the suite's own gateway.
const MISSES_PER_S: f64 = 500.0;

const FINISHED: Column = ("finished/s", RPS.1);

/// The number of concurrent streams of the published benchmark, each with 20 events at reading
/// speed.
fn streams(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    runner.section = "Layer 2 - concurrent SSE streams through the gateway";
    if !runner.measures_own() {
        return Ok(());
    }
    let (wanted, warmup, measured) =
        if runner.options.short { (1_000, 3, 4) } else { (10_000, 15, 30) };
    let provider = runner.provider(&["--ttft", "100ms", "--gap", "200ms", "--tokens", "20"])?;
    let gateway = runner.gateway("layers", CACHED, &[], Some(&provider))?;
    let length = Length::new(Nanos::from_secs(warmup), Nanos::from_secs(measured));
    let (most, whose) = runner.most_connections(&gateway.target);
    let Some(streams) = fitting(wanted, most) else {
        runner.skip_section(&format!("open files of {whose} allow {most}"));
        return Ok(());
    };
    if streams < wanted {
        let why = format!(
            "open files of {whose} allow {}, which were measured: raise `ulimit -Hn` above {}",
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
    let columns = &[FINISHED, ERRORS, TTFT_P50, TTFT_P99, GAP_P99, GW_CORE, LOAD_CORE];
    let table = columns::results("Streams", columns, &results);
    runner.report.sections.push(Section::new(runner.section, table));
    let few = Quantity::ERRORS.bound(0.01);
    let judged = results.iter().map(|streams| few.judge("streams at once", streams));
    runner.report.bounds.extend(judged);
    Ok(())
}

/// The wanted number of streams, or the round number below it that open files allow; `None` if it
/// is too low to count as many.
fn fitting(wanted: u32, most: u64) -> Option<u32> {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let streams = if wanted <= most { wanted } else { most / 100 * 100 };
    (streams >= 100).then_some(streams)
}

// Cache hits, if they are shown to be hits.

/// The published goals, and the bounds that decide.
const THROUGHPUT: Limit = Quantity::THROUGHPUT.goal(2_000.0);
const AVERAGE: Limit = Quantity::AVERAGE.goal(5.0);
const P99: Limit = Quantity::P99.goal(20.0);
const BOUNDS: [Limit; 2] = [Quantity::P99.bound(50.0), Quantity::ERRORS.bound(0.01)];

/// One prompt again and again, if a cache is shown to answer it: the warm-up fills it. Returns
/// whether the gateway answers chats.
fn measure_cache_hits(runner: &mut SuiteRunner<'_>) -> Result<bool, SuiteError> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
