//! The end of a run on a screen: thresholds, a line for each stage, what stands out, the
//! accounting, the files, and the verdict.

mod causes;
mod missing;
mod stages;
mod stands_out;
mod thresholds;
mod verdict;

use plimsoll_metrics::{Bottleneck, QUANTILES, RunSummary, TaskGroup, TaskTime};

pub use causes::items as run_failures;
pub use stands_out::items as run_stands_out;
pub use thresholds::run_bounds;
pub use verdict::run_verdict;

use crate::format;
use crate::screen::{Item, Rest, Screen, debug_build};
use crate::text::{goodput, load_time, policy_sentence, requests, task_ends, task_label};

/// The screen of a run; `rest` is where its report is.
pub fn run_screen(summary: &RunSummary, rest: Rest) -> Screen {
    let mut screen = Screen::new(rest);
    screen.title(&title(summary));
    thresholds::add(&mut screen, summary);
    stages::add(&mut screen, summary);
    screen.stands_out(stands_out::items(summary));
    let total = &summary.results.total;
    if total.counters.scheduled > 0 {
        screen.fact(&requests(total));
    }
    if let Some(sentence) = goodput(summary) {
        screen.fact(&sentence);
    }
    if !total.policy_decisions.is_empty() {
        screen.fact(&policy_sentence(total));
    }
    summary.agent_tasks.iter().for_each(|group| screen.fact(&task_fact(group)));
    if let Some(bottleneck) = known_bottleneck(summary) {
        screen.fact(&format!("why: {}", bottleneck.text));
    }
    let (tone, text) = run_verdict(summary);
    screen.verdict(tone, &text);
    screen
}

/// What limited the load, where it can be told.
fn known_bottleneck(summary: &RunSummary) -> Option<&Bottleneck> {
    summary.bottleneck.as_ref().filter(|bottleneck| bottleneck.answer != "cannot_be_told")
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

/// The notes of a run that change what its figures mean, and why requests failed.
pub fn run_notes(summary: &RunSummary) -> Vec<Item> {
    stands_out::notes(summary).chain(causes::messages(summary)).collect()
}

/// What was measured: the run, where its load went, and how much of it.
fn title(summary: &RunSummary) -> String {
    let metadata = &summary.metadata;
    let target = match metadata.targets.as_slice() {
        [target] if target.model.is_empty() => format!(" {}", target.url),
        [target] => format!(" {}, model {}", target.url, target.model),
        targets => format!(" {} targets", targets.len()),
    };
    let build = debug_build(&metadata.environment);
    format!("{}:{target}, {}{build}", metadata.run.name, load_time(metadata))
}
