//! 3xx: streams and tokens.

use plimsoll_measure::{ErrorClass, FinishReason};
use plimsoll_rules::number::{count, digits, percent, time};
use plimsoll_rules::{Finding, Level};

use super::target::Seen;
use super::{by_target, share_of};
use crate::catalog::Counters;
use crate::stream_diagnosis::{StreamDiagnosis, StreamWord};
use crate::summary::RunSummary;

/// The kind of responses with impossible usage.
pub const REFUSED_USAGE: &str = "usage";
/// The kind of responses whose token counts do not add up to their total.
pub const UNLIKE_TOTAL: &str = "total";
/// Inverse of the share of judged streams that must arrive in lumps.
const LUMPS_ONE_IN: u64 = 10;
/// Inverse of the share of responses that must end by a limit or a filter.
const STOPPED_ONE_IN: u64 = 100;
/// The share of the requested length below which responses are short, with `ignore_eos` and
/// without, where the length is only a limit.
const SHORT: (f64, f64) = (0.9, 0.5);
/// The share of cached input tokens that is named.
const CACHED: f64 = 0.05;

const LIMITS: [FinishReason; 4] = [
    FinishReason::Length,
    FinishReason::MaxOutputTokens,
    FinishReason::MaxTokens,
    FinishReason::Incomplete,
];
const FILTERS: [FinishReason; 2] = [FinishReason::ContentFilter, FinishReason::Refusal];

pub(super) fn findings(summary: &RunSummary) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, group) in by_target(summary) {
        let seen = Seen { summary, name, group };
        if let Some(streams) = &group.streams {
            found.extend(stalled(&seen, streams));
            found.extend(shape(&seen, streams));
            found.extend(cut(&seen, streams));
        }
        found.extend(tokens_unknown(&seen));
        found.extend(output_short(&seen));
        found.extend(stopped(&seen));
        found.extend(tool_errors(&seen));
    }
    found.extend(prompt_cached(summary));
    found.extend(response_cached(summary));
    found
}

fn stalled(seen: &Seen<'_>, streams: &StreamDiagnosis) -> Option<Finding> {
    let mean = streams.pause_ms.filter(|_| streams.stand_still())?;
    let finding = of(seen, 301, streams.paused, streams.judged).with("mean", time(mean));
    let longest = streams.longest_pause_ms.filter(|longest| *longest > mean);
    Some(finding.with_some("longest", longest.map(time)))
}

fn shape(seen: &Seen<'_>, streams: &StreamDiagnosis) -> Option<Finding> {
    let in_lumps = streams.merged + streams.buffered_whole;
    let told = streams.judged.saturating_sub(streams.read_late);
    match streams.shape() {
        StreamWord::Stalled => Some(of(seen, 303, streams.stalled, streams.judged)),
        StreamWord::Merged | StreamWord::BufferedWhole | StreamWord::Mixed
            if in_lumps * LUMPS_ONE_IN > told =>
        {
            let whole = streams.buffered_whole;
            let finding = of(seen, 302, in_lumps, streams.judged)
                .with_some("events", streams.events_per_read.map(digits));
            Some(finding.with_some("whole", (whole > 0).then(|| count(whole))))
        }
        _ => None,
    }
}

fn cut(seen: &Seen<'_>, streams: &StreamDiagnosis) -> Option<Finding> {
    let kinds = [
        (streams.cut, "cut off"),
        (streams.no_end, "not finished in time"),
        (streams.no_finish_reason, "without a finish reason"),
    ];
    let n: u64 = kinds.iter().map(|(number, _)| number).sum();
    let named = kinds.iter().filter(|(number, _)| *number > 0);
    let named: Vec<_> = named.map(|(number, kind)| format!("{} {kind}", count(*number))).collect();
    let classes = [
        ErrorClass::StreamTruncated,
        ErrorClass::NoFinishReason,
        ErrorClass::BodyTruncated,
        ErrorClass::Reset,
        ErrorClass::ClosedEarly,
    ];
    (n > 0).then(|| {
        let finding = of(seen, 304, n, streams.begun).with("kinds", named.join(", "));
        seen.with_span(finding, |kind| classes.iter().any(|class| class.name() == kind))
    })
}

/// Figures per token that are withheld, estimated or doubtful.
fn tokens_unknown(seen: &Seen<'_>) -> impl Iterator<Item = Finding> {
    let Counters {
        usage_refused, output_tokens_estimated, output_tokens_reported, completed, ..
    } = seen.group.counters;
    let hidden = seen.group.streams.as_ref().map_or(0, |streams| streams.fewer_tokens);
    let finding = seen.finding(307).with("all", count(completed));
    let refused = seen.message(REFUSED_USAGE).unwrap_or("more tokens than requested");
    let some = if output_tokens_reported > 0 { "partly" } else { "estimated" };
    let kinds = [("refused", usage_refused), ("hidden", hidden), (some, output_tokens_estimated)];
    let first = kinds.into_iter().find(|(_, n)| *n > 0 && seen.has_models());
    let unknown =
        first.map(|(kind, n)| finding.clone().with(kind, count(n)).with("message", refused));
    let unlike = seen.message(UNLIKE_TOTAL).map(|counts| finding.with("counts", counts));
    unknown.into_iter().chain(unlike)
}

fn output_short(seen: &Seen<'_>) -> Option<Finding> {
    let metadata = &seen.summary.metadata;
    let asked = metadata.output_tokens_asked?;
    let given = seen.group.tokens.as_ref()?.output_tokens?.p50;
    let least = if metadata.ignores_eos { SHORT.0 } else { SHORT.1 };
    let finding = seen.finding(306).with("given", digits(given)).with("asked", digits(asked));
    // A limit of the target ended them (305), or it does not support the member.
    let is_useless = metadata.ignores_eos || !stopped(seen).is_empty();
    let member = (!is_useless).then_some("ignore_eos");
    (given < least * asked).then(|| finding.with_some("member", member))
}

/// Responses that ended by a filter, or by a limit that the load did not set.
fn stopped(seen: &Seen<'_>) -> Vec<Finding> {
    let reasons = &seen.group.finish_reasons;
    let all: u64 = reasons.values().sum();
    let asked = seen.summary.metadata.output_tokens_asked;
    let given = seen.group.tokens.as_ref().and_then(|tokens| Some(tokens.output_tokens?.p50));
    let is_own_limit = match (asked, given) {
        (Some(asked), Some(given)) => given >= SHORT.0 * asked,
        (asked, _) => asked.is_some(),
    };
    let named = LIMITS.iter().filter(|_| !is_own_limit).chain(&FILTERS);
    let counted = named.filter_map(|reason| Some((reason, *reasons.get(reason.name())?)));
    let many = counted.filter(|(_, n)| n * STOPPED_ONE_IN >= all);
    many.map(|(reason, n)| {
        let kind = if FILTERS.contains(reason) { "filter" } else { "limit" };
        of(seen, 305, n, all).with("reason", format!("`{}`", reason.name())).with(kind, kind)
    })
    .collect()
}

fn tool_errors(seen: &Seen<'_>) -> Option<Finding> {
    let Counters { tool_errors, completed, .. } = seen.group.counters;
    (tool_errors > 0).then(|| of(seen, 310, tool_errors, completed))
}

/// Input tokens from the target's prompt cache although no two prompts begin alike.
fn prompt_cached(summary: &RunSummary) -> Option<Finding> {
    let counters = &summary.results.total.counters;
    let part = share_of(counters.cached_tokens, counters.prompt_tokens_reported);
    (summary.metadata.unique_prompts && part > CACHED)
        .then(|| Finding::new(308).with("share", percent(part)))
}

/// Cache hits of scenarios whose requests no cache should be able to answer.
fn response_cached(summary: &RunSummary) -> Option<Finding> {
    let unique = &summary.metadata.cache_busting;
    let cells = summary.results.cells.iter().filter(|cell| {
        !cell.warmup && cell.scenario.as_ref().is_some_and(|name| unique.contains(name))
    });
    let (hits, all) = cells.fold((0, 0), |(hits, all), cell| {
        (hits + cell.counters.cache_hits, all + cell.counters.scheduled)
    });
    let finding = Finding::new(309).at(Level::Warning);
    (hits > 0).then(|| finding.with("n", count(hits)).with("all", count(all)))
}

fn of(seen: &Seen<'_>, code: u16, n: u64, all: u64) -> Finding {
    seen.finding(code).with("n", count(n)).with("all", count(all))
}
