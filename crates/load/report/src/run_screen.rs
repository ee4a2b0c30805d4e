//! The result of a run: thresholds, a line for each stage, what stands out, the accounting and the
//! verdict, which a screen shows; and the chapters of its file.

mod chapters;
mod servers;
mod stages;
mod verdict;

pub use chapters::environment;
use chapters::{policy_sentence, task_ends, task_label};
use plimsoll_metrics::{
    Counters, Group, Level, QUANTILES, RunMetadata, RunSummary, TaskGroup, TaskTime,
};
pub use servers::figure_text;
pub use verdict::{item as finding_item, run_bounds, run_findings, run_notes, run_verdict};

use crate::screen::{Rest, Screen, Style, debug_build};
use crate::{format, shown_summary};

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

/// The bottleneck: where it is known, or where it is not. There is none to name where Plimsoll may
/// have held the rate down.
fn bottleneck(summary: &RunSummary, is_known: bool) -> Option<String> {
    let is_held =
        summary.findings.iter().any(|it| it.code == 102 && it.values.contains_key("held"));
    let found = summary.bottleneck.as_ref().filter(|_| !is_held);
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
    // A level that the end of a sweep cut off counts for no total, but is not a warm-up.
    let [load, warmup]: [f64; 2] = [false, true].map(|warmup| {
        let stages = metadata.stages.iter().filter(|stage| stage.warmup == warmup);
        let named = stages.filter(|stage| stage.name.starts_with('w') == warmup);
        named.map(|stage| stage.duration_s).sum()
    });
    let warmup = Some(warmup).filter(|warmup| *warmup > 0.0);
    let warmup = warmup.map(|warmup| format!(" (warm-up {})", format::seconds(warmup)));
    format!("{} of load{}", format::seconds(load), warmup.unwrap_or_default())
}

// The figures of a whole run in sentences.

/// Every outcome by count, if there are any of it. They may end after the time in which they are
/// due.
fn requests(total: &Group) -> String {
    let counters = &total.counters;
    let mut outcomes = vec![format!("{} ok", format::count(counters.ok()))];
    let others = [
        (counters.refused(), "rejected (4xx)"),
        (counters.failed, "failed"),
        (counters.wrongly_decided(), "with another policy decision than expected"),
        (counters.timed_out, "timed out"),
        (counters.cancelled, "cancelled"),
        (counters.in_flight, "without a response at the end"),
        (counters.never_sent, "never sent"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    outcomes.extend(others.map(|(count, words)| format!("{} {words}", format::count(count))));
    let within = match total.duration_s {
        none if none <= 0.0 => String::new(),
        seconds => format!(" due in {}", format::seconds(seconds)),
    };
    let unit = if counters.scheduled == 1 { "request" } else { "requests" };
    format!("{} {unit}{within}: {}.", format::count(counters.scheduled), outcomes.join(", "))
}

/// The good requests, and what makes one.
fn goodput(summary: &RunSummary) -> Option<String> {
    let (total, bounds) = (&summary.results.total, summary.metadata.goodput.as_ref()?);
    let Counters { goodput_judged, good, good_but_for_generator, .. } = total.counters;
    let rate = format::limited_rate(total.named_rate("goodput"));
    let share = format::share_of(total.rates.good_share);
    let ours = match good_but_for_generator {
        0 => String::new(),
        count => format!(" ({} more but for Plimsoll's own delay)", format::count(count)),
    };
    let (good, judged) = (format::count(good), format::count(goodput_judged));
    Some(format!(
        "Goodput {rate} per second: {good} of {judged} requests ({share}) kept {bounds}{ours}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_metrics::Bottleneck;
    use plimsoll_rules::Finding;

    #[test]
    fn no_bottleneck_is_named_where_plimsoll_may_have_held_the_rate_down() {
        let found = Bottleneck { answer: "target".to_owned(), text: "the target".to_owned() };
        for (values, named) in [(None, true), (Some("bound"), true), (Some("held"), false)] {
            let findings =
                values.map(|name| Finding::new(102).with(name, "1")).into_iter().collect();
            let bottleneck_found = Some(found.clone());
            let run =
                RunSummary { findings, bottleneck: bottleneck_found, ..RunSummary::default() };
            assert_eq!(bottleneck(&run, true).is_some(), named, "{values:?}");
        }
    }
}
