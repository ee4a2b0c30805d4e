//! The overview of a run: targets, load and machine, and the main figures as cards.

use maud::{Markup, html};
use plimsoll_metrics::{
    Environment, Group, Metric, QUANTILES, RunMetadata, RunSummary, TargetInfo,
};
use plimsoll_report::format::{self, bytes, count, limited_rate, seconds, utc};
use plimsoll_report::printable;

/// Targets if there are several, load, machine and time.
pub(crate) fn facts(metadata: &RunMetadata) -> Markup {
    let stages = metadata.stages.iter().filter(|stage| !stage.warmup);
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

fn machine(environment: &Environment) -> String {
    let parts = [
        environment.cpu_count.map(|count| format!("{count} CPUs")),
        environment.cpu_model.clone(),
        environment.memory_bytes.map(|memory| bytes(memory as f64)),
        environment.kernel.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The main figures of measured stages.
pub(crate) fn cards(summary: &RunSummary) -> Markup {
    let total = &summary.results.total;
    let time = summary.metadata.headline_time();
    html! {
        div.cards {
            (card("requests/s", &[("", limited_rate(total.named_rate("throughput")))]))
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
