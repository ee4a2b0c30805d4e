//! The result of a run: thresholds, a line for each stage, what stands out, the accounting and the
//! verdict, which a screen shows; and the chapters of its file.

mod chapters;
mod headline;
mod servers;
mod stages;
mod verdict;

use chapters::{policy_sentence, task_ends, task_label};
use headline::{goodput, requests};
use plimsoll_metrics::{Level, QUANTILES, RunMetadata, RunSummary, TaskGroup, TaskTime};
pub use servers::figure_text;
pub use verdict::{item as finding_item, run_bounds, run_findings, run_notes, run_verdict};

use crate::format;
use crate::screen::{Rest, Screen, Style, debug_build};
use crate::shown_summary;

/// Warnings about the target that are shown even where a screen has no room for all.
const WARNINGS: usize = 2;

/// The result of a run; `rest` is where its report is.
pub fn run_screen(summary: &RunSummary, rest: Rest) -> Screen {
    let summary = &*shown_summary(summary);
    let mut screen = Screen::new(rest);
    screen.title(&title(summary));
    let failures = verdict::of_levels(summary, &[Level::Fail, Level::Invalid]);
    let count = failures.len();
    screen.findings(failures, count);
    verdict::add_thresholds(&mut screen, summary);
    let of_target = summary.of_level(Level::Warning).filter(|found| found.code / 100 == 2).count();
    screen.findings(verdict::of_levels(summary, &[Level::Warning]), of_target.min(WARNINGS));
    stages::add(&mut screen, summary);
    servers::add(&mut screen, summary);
    screen.stands_out(verdict::of_levels(summary, &[Level::Note]));
    screen.stands_out(verdict::notes(summary));
    facts(&mut screen, summary);
    screen.details(details(summary));
    chapters::add(&mut screen, summary);
    let (tone, text) = run_verdict(summary);
    screen.verdict(tone, &text);
    screen
}

/// The report of a run, `report.txt`: all of its screen, and what only a file has.
pub fn text(summary: &RunSummary, style: Style) -> String {
    run_screen(summary, Rest::Flag).report(style)
}

fn facts(screen: &mut Screen, summary: &RunSummary) {
    let total = &summary.results.total;
    if let Some(peak) = stages::peak(summary) {
        screen.fact(&peak);
    }
    if total.counters.scheduled > 0 {
        screen.fact(&requests(total));
    }
    if let Some(sentence) = goodput(summary) {
        screen.fact(&sentence);
    }
    if let Some(sentence) = servers::prefix_cache(summary) {
        screen.fact(&sentence);
    }
    if !total.policy_decisions.is_empty() {
        screen.fact(&policy_sentence(total));
    }
    summary.agent_tasks.iter().for_each(|group| screen.fact(&task_fact(group)));
    if let Some(limit) = bottleneck(summary, true) {
        screen.fact(&limit);
    }
}

/// Figures of the whole run, below the facts of a file.
fn details(summary: &RunSummary) -> Vec<String> {
    let figures = headline::figures(summary);
    std::iter::once(figures).chain(bottleneck(summary, false)).collect()
}

/// The bottleneck: where it is known, or where it is not.
fn bottleneck(summary: &RunSummary, is_known: bool) -> Option<String> {
    let found = summary.bottleneck.as_ref();
    found.filter(|found| (found.answer != "unknown") == is_known).map(|found| found.text.clone())
}

/// The tasks of an agent: their ends, and the median and 95th percentile of their loop time.
fn task_fact(group: &TaskGroup) -> String {
    let times = group.time(TaskTime::Loop).map(|times| {
        let shown = QUANTILES.iter().filter(|quantile| matches!(quantile.key, "p50" | "p95"));
        let figures: Vec<_> = shown
            .map(|quantile| {
                format!("{} {}", quantile.label, format::figure(times.figure(quantile)))
            })
            .collect();
        format!("loop {}; ", figures.join(", "))
    });
    let (label, times) = (task_label(group), times.unwrap_or_default());
    format!("{label}: {times}{}", task_ends(group))
}

/// The requests of a run by outcome, and the good ones if that is stated.
pub fn run_requests(summary: &RunSummary) -> String {
    let good = goodput(summary).map(|sentence| format!(" {sentence}"));
    requests(&summary.results.total) + &good.unwrap_or_default()
}

/// Title: the run, its targets, and its load.
fn title(summary: &RunSummary) -> String {
    let metadata = &summary.metadata;
    let target = match metadata.targets.as_slice() {
        [target] if target.model.is_empty() => format!(" {}", target.url),
        // `llm` has a scenario for each of several models.
        [target] if metadata.scenarios.first() == Some(&target.model) => {
            format!(" {}, model {}", target.url, metadata.scenarios.join(", "))
        }
        [target] => format!(" {}, model {}", target.url, target.model),
        targets => format!(" {} targets", targets.len()),
    };
    let build = debug_build(&metadata.environment);
    format!("{}:{target}, {}{build}", metadata.run.name, load_time(metadata))
}

/// How long the load was that is measured. Moments in a run count from its start, in the warm-up.
fn load_time(metadata: &RunMetadata) -> String {
    let [load, warmup] =
        [false, true].map(|warmup| format::seconds(load_seconds(metadata, warmup)));
    let warmup = if metadata.stages.iter().any(|stage| stage.warmup) {
        format!(" (warm-up {warmup})")
    } else {
        String::new()
    };
    format!("{load} of load{warmup}")
}

fn load_seconds(metadata: &RunMetadata, warmup: bool) -> f64 {
    let stages = metadata.stages.iter().filter(|stage| stage.warmup == warmup);
    stages.map(|stage| stage.duration_s).sum()
}
