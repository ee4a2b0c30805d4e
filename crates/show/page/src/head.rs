//! The head of a run's page: the content of its screen, with facts and main figures in between.

use std::borrow::Cow;

use maud::{Markup, html};
use plimsoll_metrics::{
    Environment, Group, Metric, QUANTILES, RunMetadata, RunSummary, RunTimeline, TargetInfo,
};
use plimsoll_report::format::{self, count, limited_rate, seconds, utc};
use plimsoll_report::screen::{Rest, Screen};
use plimsoll_report::{StageName, environment, printable, run_screen, shown_summary};

use crate::chart::{Chart, Input};
use crate::outcome;

/// The result shown on the page: of a comparison, that of its targets. Consequences of the run's
/// own validity are among its reasons and warnings.
pub(crate) fn screen(input: &Input<'_>) -> Screen {
    match input.versus {
        Some(versus) => plimsoll_versus::screen(versus, input.summary, Rest::Flag),
        None => run_screen(input.summary, Rest::Flag),
    }
}

/// The verdict, the curves of a sweep, the reasons, and the figures by stage, or by target for a
/// comparison.
pub(crate) fn render(input: &Input<'_>, screen: &Screen, curves: &[Chart]) -> Markup {
    let metadata = &input.summary.metadata;
    let between = html! {
        @if !curves.is_empty() { div.curves { @for chart in curves { (chart.render()) } } }
        (facts(metadata))
        // Figures pooled over all targets of a comparison, or over all levels, describe none of
        // them.
        @if input.versus.is_none() && curves.is_empty() { (cards(input.summary)) }
    };
    outcome::header(&metadata.run.name, screen, &between)
}

// A run with readable stage names.

/// The parts of a page's input that name stages.
pub(crate) struct Named<'a> {
    summary: Cow<'a, RunSummary>,
    timeline: Option<Cow<'a, RunTimeline>>,
}

impl<'a> Named<'a> {
    pub(crate) fn new(input: &Input<'a>) -> Self {
        let mut named = Self {
            summary: shown_summary(input.summary),
            timeline: input.timeline.map(Cow::Borrowed),
        };
        if let Some(name) = StageName::of_counted(input.summary) {
            named.rename(&name);
        }
        named
    }

    fn rename(&mut self, name: &StageName) {
        if let Some(timeline) = &mut self.timeline {
            let intervals = timeline.to_mut().intervals.iter_mut();
            let groups = intervals.flat_map(|interval| &mut interval.groups);
            groups.for_each(|group| name.replace_in(&mut group.stage));
        }
    }

    /// The input with these names.
    pub(crate) fn input<'n>(&'n self, input: &Input<'n>) -> Input<'n> {
        Input { summary: &self.summary, timeline: self.timeline.as_deref(), ..*input }
    }
}

// The overview of a run: targets, load and machine, and the main figures as cards.

/// Targets if there are several, load, machine and time.
pub(crate) fn facts(metadata: &RunMetadata) -> Markup {
    // Those after the end of a sweep did not begin.
    let stages = metadata.stages.iter().filter(|stage| !stage.warmup && stage.duration_s > 0.0);
    let load = distinct(stages.clone().map(|stage| &*stage.name));
    let length: f64 = stages.map(|stage| stage.duration_s).sum();
    html! {
        dl.facts {
            // A single target is named in the title.
            @if let [_, _, ..] = metadata.targets.as_slice() {
                dt { "targets" }
                dd { @for target in &metadata.targets { div { (printable(&target_words(target))) } } }
            }
            dt { "load" } dd {
                (printable(&load.join(", ")))
                @if length > 0.0 { ", " (seconds(length)) " measured" }
            }
            dt { "machine" } dd { (printable(&machine(&metadata.environment))) }
            dt { "started" } dd { (utc(metadata.run.started_unix_ns)) }
        }
    }
}

fn target_words(target: &TargetInfo) -> String {
    let model = match &*target.model {
        "" => String::new(),
        model => format!(", model {model}"),
    };
    format!("{}: {}{model}", target.name, target.url)
}

/// Distinct texts in order of first occurrence.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

fn machine(facts: &Environment) -> String {
    let shown = ["CPU", "logical CPUs", "memory", "kernel"];
    let facts = environment(facts).into_iter().filter(|(name, _)| shown.contains(name));
    let known = facts.filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    known.collect::<Vec<_>>().join(", ")
}

/// The main figures of measured stages.
pub(crate) fn cards(summary: &RunSummary) -> Markup {
    let total = &summary.results.total;
    let time = summary.metadata.headline_time();
    html! {
        div.cards {
            (card("done/s", &[("", limited_rate(total.named_rate("throughput")))]))
            @if let Some(tokens) = tokens_per_second(total) {
                (card("tokens/s", &[("", tokens)]))
            }
            @for metric in [time, Metric::Ttft, Metric::Itl] {
                @if total.distribution(metric).is_some() {
                    (card(metric.title(), &percentiles(total, metric)))
                }
            }
            (card("errors", &errors(total)))
        }
    }
}

fn card(title: &str, figures: &[(&str, String)]) -> Markup {
    html! {
        div.card {
            p.soft { (title) }
            @for (label, value) in figures {
                p.figure { @if !label.is_empty() { span.soft { (label) " " } } (value) }
            }
        }
    }
}

/// The percentiles for which there are enough values.
fn percentiles(group: &Group, metric: Metric) -> Vec<(&'static str, String)> {
    let shown = QUANTILES.iter().filter(|quantile| ["p50", "p95", "p99"].contains(&quantile.key));
    shown
        .filter_map(|quantile| {
            let figure = group.distribution(metric)?.figure(quantile)?;
            Some((quantile.label, format::limited_time(Some(figure))))
        })
        .collect()
}

/// Output tokens per second; `None` without any.
fn tokens_per_second(group: &Group) -> Option<String> {
    group.token_rate().map(|tokens| format::token_rate(&tokens, limited_rate))
}

fn errors(group: &Group) -> [(&'static str, String); 2] {
    let counters = &group.counters;
    [
        ("", format::share_of(group.rates.error_rate)),
        ("of", format!("{} requests", count(counters.scheduled))),
    ]
}
