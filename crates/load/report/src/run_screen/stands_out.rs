//! What a reader should see before using the figures, the most important first.

use plimsoll_metrics::{Counters, Reason, RunSummary, StreamDiagnosis, StreamWord, Validity};

use super::{causes, missing, streams};
use crate::format::{count, percent};
use crate::screen::{Item, Tone};
use crate::shards::odd_shards;

/// The share of arrivals that a stage may owe without a word.
const HELD_UP: f64 = 0.05;

/// What a reader of a run should see before using its figures, the most important first.
pub fn items(summary: &RunSummary) -> Vec<Item> {
    let mut items = invalid(summary);
    items.extend(missing::item(summary));
    items.extend(causes::items(summary));
    items.extend(held_up(summary));
    items.extend(odd_shards(summary).iter().map(|text| Item::new(Tone::Unsure, text)));
    items.extend(tool_errors(summary));
    items.extend(summary.results.total.streams.as_ref().and_then(odd_streams));
    items.extend(summary.interpretation.iter().filter_map(|sentence| interpretation(sentence)));
    items.extend(summary.warnings.iter().map(|reason| {
        let Reason { what, measured, bound, fix, .. } = reason;
        Item::new(Tone::Unsure, &format!("{what}: {measured} (limit: {bound})")).fix(fix)
    }));
    items.extend(notes(summary));
    items
}

/// The reasons of an invalid run that have different fixes.
fn invalid(summary: &RunSummary) -> Vec<Item> {
    let Validity::Invalid(reasons) = &summary.validity else { return Vec::new() };
    let mut items = Vec::new();
    let mut fixes: Vec<&str> = Vec::new();
    for Reason { what, measured, bound, fix, .. } in reasons {
        if !fixes.contains(&fix.as_str()) {
            fixes.push(fix);
            let text = format!("INVALID: {what}: {measured} (limit: {bound})");
            items.push(Item::new(Tone::Bad, &text).fix(fix));
        }
    }
    items
}

/// The stage of whose arrivals the largest share waited until others were answered, and was sent
/// after its end: its rate was not kept, although the generator kept up.
fn held_up(summary: &RunSummary) -> Option<Item> {
    let stages = summary.results.by_stage.iter().filter(|stage| !stage.warmup);
    let held = stages.map(|stage| (held_share(&stage.counters), stage));
    let (share, stage) = held.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (share > HELD_UP).then(|| {
        let name = stage.stage.as_deref().unwrap_or_default();
        let text = format!(
            "{} of the arrivals of {name} were sent after its end: all requests that may be in flight were, and response times contain the wait",
            percent(share)
        );
        Item::new(Tone::Unsure, &text)
            .fix("allow more in flight (`max_in_flight`, -c of http), or lower the rate")
    })
}

fn held_share(counters: &Counters) -> f64 {
    // What was dropped is told as never sent.
    let held = counters.arrivals_held().saturating_sub(counters.never_sent);
    held as f64 / counters.arrivals_planned.max(1) as f64
}

/// Answers that say that a tool or a task failed: they came through, and are no failures.
fn tool_errors(summary: &RunSummary) -> Option<Item> {
    let counters = &summary.results.total.counters;
    (counters.tool_errors > 0).then(|| {
        let (failed, all) = (count(counters.tool_errors), count(counters.completed));
        let text = format!(
            "{failed} of {all} answers say that a tool or a task failed (`isError`); they count as answered"
        );
        let fix = "look at the arguments of the calls, and into the log of the server";
        Item::new(Tone::Unsure, &text).fix(fix)
    })
}

/// Streams that did not come as they should.
pub(super) fn odd_streams(streams: &StreamDiagnosis) -> Option<Item> {
    let item = Item::new(Tone::Unsure, &streams::sentences(streams));
    let fix = match streams.shape() {
        _ if streams.ended_badly() > streams.fewer_tokens => {
            "look for a timeout or a limit in the target, or a proxy before it"
        }
        _ if streams.fewer_tokens > 0 => return Some(item),
        StreamWord::Merged | StreamWord::BufferedWhole | StreamWord::Mixed => {
            "switch the buffering of responses off, in the target or a proxy before it"
        }
        StreamWord::Stalled => "set TCP_NODELAY at the target or the proxy",
        StreamWord::ReadLate => "give the generator more or idler cores: do not trust ITL",
        _ if streams.stand_still() => {
            "find out what the target or its provider waits for in the middle of an answer"
        }
        _ => return None,
    };
    Some(item.fix(fix))
}

/// A warning sign; that there is none does not stand out.
fn interpretation(sentence: &str) -> Option<Item> {
    (!is_healthy(sentence)).then(|| Item::new(Tone::Unsure, sentence))
}

/// That there is no warning sign.
pub(super) fn healthy(summary: &RunSummary) -> impl Iterator<Item = &String> {
    summary.interpretation.iter().filter(|sentence| is_healthy(sentence))
}

fn is_healthy(sentence: &str) -> bool {
    ["Healthy", "No warning sign"].iter().any(|start| sentence.starts_with(start))
}

/// Notes that change what the figures mean.
pub(super) fn notes(summary: &RunSummary) -> impl Iterator<Item = Item> {
    let notes = summary.metadata.notes.iter().filter(|note| !is_said(note));
    notes.map(|note| Item::new(Tone::Unsure, note))
}

/// The other notes.
pub(super) fn other_notes(summary: &RunSummary) -> impl Iterator<Item = &String> {
    summary.metadata.notes.iter().filter(|note| is_said(note))
}

/// That a probe was sent does not stand out; what it found, why requests failed and that this is a
/// debug build is said elsewhere on the screen.
fn is_said(note: &str) -> bool {
    note.contains("before the load, not counted")
        || note.starts_with("DEBUG BUILD")
        || note.contains("; the first message: ")
        || note.starts_with("no probe request was sent")
}
