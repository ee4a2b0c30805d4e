//! Layer 2, LLM requests: cache hits, cache misses and the provider itself, many streams at once.

mod cache_hits;

use plimsoll_measure::Nanos;
use plimsoll_report::format::{count, percent, time};

use super::super::{PAIRS_PER_S, TIMES_SHORT, comparison_length};
use super::gateway_layers::{bare_with, behind, with_identity};
use crate::bound::{BoundResult, Requirement};
use crate::comparison_plan::ComparisonPlan;
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::measurement::{Length, Measurement};
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::target::SuiteTarget;

/// Layer 2, measured.
#[derive(Default)]
pub(super) struct LlmLayers {
    /// Whether the gateway answers chats.
    answers: bool,
    /// Cache hits, if they are shown to be hits.
    pub(super) hit: Option<MeasurementResult>,
    /// What shows it.
    pub(super) proof: Option<String>,
    /// The gateway's own cheapest endpoint in the same minutes.
    pub(super) live: Option<MeasurementResult>,
    /// What a cache miss adds to the provider, at a rate that saturates neither.
    pub(super) misses: Option<Misses>,
    /// Many streams at once.
    pub(super) streams: Option<MeasurementResult>,
}

impl LlmLayers {
    pub(super) fn bounds(&self) -> Vec<BoundResult> {
        let mut bounds = self.hit.as_ref().map(cache_hits::bounds).unwrap_or_default();
        if let Some(misses) = &self.misses {
            let bound = BoundResult::interval(
                "layer 2, cache miss: added to the provider, median",
                misses.added.added(GATEWAY),
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

pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<LlmLayers, SuiteError> {
    let hits = cache_hits::measure(runner)?;
    let misses = misses(runner, hits.answers)?;
    Ok(LlmLayers { misses, streams: streams(runner)?, ..hits })
}

/// The layers of the cached path: tenant, cache, budget.
const CACHED: [&str; 5] = [
    "tenant={header: x-tenant-id, anonymous: true}",
    "cache={}",
    "budgets={unit: tokens, default: 1000000000000}",
    "metrics={}",
    "request_id={}",
];

/// The name of the gateway beside its provider.
pub(super) const GATEWAY: &str = "gateway";

/// What a cache miss adds, and how it was measured.
#[derive(Debug)]
pub(super) struct Misses {
    pub(super) added: ComparisonResult,
    pub(super) per_s: f64,
    /// Whether the provider is the suite's own.
    pub(super) is_ours: bool,
}

/// Prompts that never repeat, so that every one goes to the provider; and the provider itself.
fn misses(runner: &mut SuiteRunner<'_>, answers: bool) -> Result<Option<Misses>, SuiteError> {
    runner.section = "Layer 2 - LLM gateway, cache misses";
    if let Some(target) = runner.target() {
        return misses_of_target(runner, &target, answers);
    }
    if runner.is_interrupted() {
        return Ok(None);
    }
    // A provider with a delay, as real ones have, short enough to see what the gateway adds.
    let provider = runner.provider(&["--ttft", "20ms"])?;
    let gateway = runner.gateway("layers", &bare_with(&CACHED), Some(&provider))?;
    let added = added_by(runner, provider.target(), gateway.target, MISSES_PER_S);
    Ok(Some(Misses { added, per_s: MISSES_PER_S, is_ours: true }))
}

/// The same of the user's gateway and its provider, if the suite may ask that, too.
fn misses_of_target(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
    answers: bool,
) -> Result<Option<Misses>, SuiteError> {
    let what = "cache misses beside the provider";
    let Some(direct) = runner.direct().filter(|_| answers) else {
        let why = if answers {
            "the provider is not known: give it with --direct URL"
        } else {
            "the target answers no chat"
        };
        runner.skip(what, why);
        return Ok(None);
    };
    if !runner.answers_chats(&direct, false)? || runner.is_interrupted() {
        return Ok(None);
    }
    let (target, direct) = behind(target, &direct);
    let added = added_by(runner, direct, target, PAIRS_PER_S);
    Ok(Some(Misses { added, per_s: PAIRS_PER_S, is_ours: false }))
}

fn added_by(
    runner: &mut SuiteRunner<'_>,
    provider: SuiteTarget,
    gateway: SuiteTarget,
    per_s: f64,
) -> ComparisonResult {
    let chat = Measurement::chat("cache miss", &provider, false, (128, 64));
    let targets = vec![("provider".to_owned(), provider), (GATEWAY.to_owned(), gateway)];
    let request =
        with_identity(chat).rate(per_s, comparison_length(runner.options, 30, TIMES_SHORT));
    let comparison = ComparisonPlan::new("cache miss", request, targets);
    runner.compare(&comparison.short(runner.options.short))
}

/// Cache misses per second of the suite's own gateway.
const MISSES_PER_S: f64 = 500.0;

/// As many streams at once as in the published benchmark, each with 20 events at reading speed.
fn streams(runner: &mut SuiteRunner<'_>) -> Result<Option<MeasurementResult>, SuiteError> {
    runner.section = "Layer 2 - concurrent SSE streams through the gateway";
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
        if runner.options.short { (1_000, 3, 4) } else { (10_000, 15, 30) };
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
            "the open files of {whose} allow {}, with which it was measured; raise the hard limit (`ulimit -Hn`) above {}",
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
