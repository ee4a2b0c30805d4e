//! How requests were answered: failures by error class and side, HTTP statuses, errors of JSON-RPC,
//! and facts that the target reports in response headers.

use plimsoll_measure::{ErrorClass, OTHER_PARTS, PolicyDecision};
use plimsoll_metrics::catalog::side_word;
use plimsoll_metrics::confusion_matrix::UNANSWERED;
use plimsoll_metrics::{Group, QUANTILES, RunSummary, ServerTiming, StreamDiagnosis};

use super::{Labelled, labelled, several};
use crate::format::{self, count, digits, or_dash, time};
use crate::screen::Chapter;
use crate::table::Table;

pub(super) fn chapter(total: &Group) -> Chapter {
    let mut chapter = Chapter::new("Answers");
    chapter.table(&table(total));
    let statuses = total.statuses.iter().map(|(code, n)| format!("{code} x {}", count(*n)));
    let rpc = total.rpc_errors.iter().map(|(code, n)| format!("{code} x {}", count(*n)));
    let kinds: [(&str, Vec<String>); 2] =
        [("HTTP statuses", statuses.collect()), ("JSON-RPC errors", rpc.collect())];
    for (kind, counts) in kinds.iter().filter(|(_, counts)| !counts.is_empty()) {
        chapter.text(&format!("{kind}: {}", counts.join(", ")));
    }
    own_words(&mut chapter, total);
    chapter
}

/// One line for each thing that the target speaks of: caches and retries.
fn own_words(chapter: &mut Chapter, total: &Group) {
    let counters = &total.counters;
    let states = [
        (counters.cache_hits, "hits"),
        (counters.cache_misses, "misses"),
        (counters.cache_bypassed, "bypassed"),
    ];
    let said: u64 = states.iter().map(|(count, _)| count).sum();
    if said > 0 {
        let all: u64 = total.statuses.values().sum();
        let shown = states.iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<_> =
            shown.map(|(count, name)| format!("{} {name}", format::count(*count))).collect();
        let silent = all.saturating_sub(said);
        if silent > 0 {
            parts.push(format!("{} did not say", count(silent)));
        }
        chapter.text(&format!("Caches, by response headers: {}", parts.join(", ")));
    }
    if counters.upstream_retries > 0 {
        chapter.text(&format!(
            "Upstream retries, by response headers: {} in {} requests",
            count(counters.upstream_retries),
            count(counters.retried_upstream)
        ));
    }
}

fn table(total: &Group) -> Table {
    let mut table = Table::new(["class", "side", "requests", "of scheduled"]);
    for class in ErrorClass::ALL {
        if let Some(&count) = total.errors.get(class.name()) {
            let share = count as f64 / total.counters.scheduled as f64;
            table.row(vec![
                class.name().to_owned(),
                side_word(class.side()).to_owned(),
                format::count(count),
                format::share(share),
            ]);
        }
    }
    table
}

// How the streams of each target came and ended.

type Column = (&'static str, fn(&StreamDiagnosis) -> String);

const COLUMNS: [Column; 13] = [
    ("begun", |streams| count(streams.begun)),
    ("intact", |streams| count(streams.intact)),
    ("merged", |streams| count(streams.merged)),
    ("events a read", |streams| or_dash(streams.events_per_read, digits)),
    ("buffered whole", |streams| count(streams.buffered_whole)),
    ("stalled 40ms", |streams| count(streams.stalled)),
    ("read late", |streams| count(streams.read_late)),
    ("paused", |streams| count(streams.paused)),
    ("pause mean", |streams| or_dash(streams.pause_ms, time)),
    ("pause max", |streams| or_dash(streams.longest_pause_ms, time)),
    ("cut", |streams| count(streams.cut)),
    ("no end", |streams| count(streams.no_end)),
    ("no finish reason", |streams| count(streams.no_finish_reason)),
];

pub(super) fn streams_chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Streams");
    let mut groups: Vec<Labelled<'_>> =
        several(labelled(&summary.results.by_target, |group| group.target.as_deref()));
    groups.push(("total", &summary.results.total));
    let rows: Vec<_> = groups.iter().filter_map(|(name, group)| row(name, group)).collect();
    if !rows.is_empty() {
        let head = ["", "finish reasons"].into_iter().chain(COLUMNS.map(|(title, _)| title));
        let mut table = Table::new(head);
        for row in rows {
            table.row(row);
        }
        chapter.table(&table);
    }
    chapter
}

fn row(name: &str, group: &Group) -> Option<Vec<String>> {
    let streams = group.streams.as_ref()?;
    let reasons = group.finish_reasons.iter().map(|(reason, n)| format!("{reason} {}", count(*n)));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    let cells = COLUMNS.iter().map(|(_, cell)| cell(streams));
    Some([name.to_owned(), reasons].into_iter().chain(cells).collect())
}

// Expected and actual policy decisions.

pub(super) fn policy_chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Policy");
    if summary.results.total.policy_decisions.is_empty() {
        return chapter;
    }
    chapter.table(&matrix(summary));
    let stages: Vec<_> = summary.results.by_stage.iter().filter(|stage| !stage.warmup).collect();
    if stages.len() > 1 {
        let mut table = Table::new(["by stage", "judged", "correct", "blocked", "unexpected"]);
        for stage in stages {
            table.row(shares(stage.stage.as_deref().unwrap_or_default(), stage));
        }
        chapter.table(&table);
    }
    chapter
}

/// How often the decision was the expected one.
pub(in crate::run_screen) fn policy_sentence(total: &Group) -> String {
    let counters = &total.counters;
    format!(
        "Policy correctness {}: {} of {} answered requests with an expected policy decision have it. Of \
         all requests: blocked {}, unexpected {}.",
        format::share_of(total.rates.policy_correctness),
        count(counters.as_expected),
        count(counters.judged),
        format::share_of(total.rates.block_rate),
        format::share_of(total.rates.error_rate),
    )
}

/// A row for each expected policy decision of each category, or of each scenario without
/// categories.
fn matrix(summary: &RunSummary) -> Table {
    let groups: Vec<_> = match summary.results.by_category.as_slice() {
        [] => summary.results.by_scenario.iter().map(|g| (g.scenario.as_deref(), g)).collect(),
        categories => categories.iter().map(|g| (g.category.as_deref(), g)).collect(),
    };
    let shown: Vec<_> =
        groups.into_iter().filter(|(_, group)| !group.policy_decisions.is_empty()).collect();
    let mut rows: Vec<(&str, &Group)> =
        shown.iter().map(|(name, group)| (name.unwrap_or_default(), *group)).collect();
    if rows.len() != 1 {
        rows.push(("total", &summary.results.total));
    }
    let words = PolicyDecision::ALL.map(PolicyDecision::name);
    let head = ["expected and actual", "expected"].into_iter().chain(words);
    let mut table = Table::new(head.chain([UNANSWERED, "correct"]));
    for (name, group) in rows {
        for (expected, actual) in &group.policy_decisions {
            let mut cells = vec![name.to_owned(), expected.clone()];
            let count = |word: &str| actual.get(word).copied().unwrap_or_default();
            let all = words.into_iter().chain([UNANSWERED]);
            cells.extend(all.map(|word| match count(word) {
                0 => "-".to_owned(),
                n => format::count(n),
            }));
            let answered: u64 = words.into_iter().map(count).sum();
            let share = (answered > 0).then(|| count(expected) as f64 / answered as f64);
            cells.push(format::share_of(share));
            table.row(cells);
        }
    }
    table
}

fn shares(label: &str, group: &Group) -> Vec<String> {
    let rates = &group.rates;
    let mut cells = vec![label.to_owned(), count(group.counters.judged)];
    let shown = [rates.policy_correctness, rates.block_rate, rates.error_rate];
    cells.extend(shown.map(format::share_of));
    cells
}

// The parts of its time that the target states in its headers.

/// A table of the parts, for all, each stage and each target, and what they leave of the time to
/// the first byte.
pub(super) fn server_timing_chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Times reported in the target's headers (not measured)");
    let results = &summary.results;
    let Some(all) = &results.total.server_timing else { return chapter };
    if !all.parts.is_empty() {
        let mut table = Table::new(["part", "requests", "mean", "p50", "p99"]);
        add_parts(&mut table, "", &results.total);
        let stages = labelled(&results.by_stage, |group| group.stage.as_deref());
        let stages = stages.into_iter().filter(|(_, group)| !group.warmup).collect();
        let targets = labelled(&results.by_target, |group| group.target.as_deref());
        for (label, group) in several(stages).into_iter().chain(several(targets)) {
            add_parts(&mut table, label, group);
        }
        chapter.table(&table);
    }
    chapter.texts(sentence(all));
    if all.parts.contains_key(OTHER_PARTS) {
        let other = "`other`: all names beyond the first 8 of the run, and one of this name.";
        chapter.text(other);
    }
    if all.refused > 0 {
        chapter.text(&refused(all));
    }
    chapter
}

fn add_parts(table: &mut Table, label: &str, group: &Group) {
    let Group { server_timing: Some(timing), .. } = group else { return };
    for (name, times) in &timing.parts {
        let [p50, p99] = [0, 3].map(|index| format::figure(times.figure(&QUANTILES[index])));
        table.row([
            format!("{label} {name}").trim_start().to_owned(),
            count(times.count),
            format::figure(Some(times.mean_figure())),
            p50,
            p99,
        ]);
    }
}

/// `Mean time to the first byte 12.3ms: gateway 2.10ms, upstream 9.00ms, network and rest
/// 1.20ms`.
fn sentence(timing: &ServerTiming) -> Option<String> {
    let whole = timing.mean_ttfb_ms()?;
    let parts = timing.means_ms().map(|(name, mean)| format!("{name} {}", time(mean)));
    let parts: Vec<_> = parts.collect();
    Some(format!(
        "Mean time to the first byte {}: {}, network and rest {} ({} responses).",
        time(whole),
        parts.join(", "),
        time(timing.rest_ms()),
        count(timing.responses)
    ))
}

fn refused(timing: &ServerTiming) -> String {
    format!(
        "{} responses are left out, because their parts are invalid: a malformed time or name, or a sum above the time to the first byte.",
        count(timing.refused)
    )
}
