//! The first look at a run: what was measured where, and the main figures as cards.

use maud::{Markup, html};
use plimsoll_metrics::{Environment, Group, Metric, QUANTILES, RunMetadata, RunSummary};
use plimsoll_report::format::{self, bytes, count, rate_figure, seconds, utc};
use plimsoll_report::printable;

/// Targets, models, load, machine and time, a line each.
pub(crate) fn facts(metadata: &RunMetadata) -> Markup {
    let models = distinct(metadata.targets.iter().map(|target| &*target.model));
    let stages = metadata.stages.iter().filter(|stage| !stage.warmup);
    let load = distinct(stages.clone().map(|stage| &*stage.name));
    let length: f64 = stages.map(|stage| stage.duration_s).sum();
    html! {
        dl.facts {
            dt { "target" }
            dd {
                @for (index, target) in metadata.targets.iter().enumerate() {
                    @if index > 0 { "; " } (printable(&target.name)) " " (printable(&target.url))
                }
            }
            @if !models.is_empty() { dt { "model" } dd { (printable(&models.join(", "))) } }
            dt { "load" } dd { (printable(&load.join(", "))) ", " (seconds(length)) " measured" }
            dt { "machine" } dd { (printable(&machine(&metadata.environment))) }
            dt { "started" } dd { (utc(metadata.run.started_unix_ns)) }
        }
    }
}

/// Each text once, in the order of their first places.
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

/// The main figures, those of measured stages.
pub(crate) fn cards(summary: &RunSummary) -> Markup {
    let total = &summary.results.total;
    let time = summary.metadata.headline_time();
    let percentiles = ["p50", "p95", "p99"];
    html! {
        div.cards {
            (card("requests/s", &[("", rate_figure(total.named_rate("throughput")))]))
            @if let Some(tokens) = tokens_per_second(total) {
                (card("output tokens/s", &[("", tokens)]))
            }
            @for metric in [time, Metric::Ttft, Metric::Itl] {
                @if total.distribution(metric).is_some() {
                    (card(metric.title(), &percentiles.map(|key| (key, percentile(total, metric, key)))))
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

fn percentile(group: &Group, metric: Metric, key: &str) -> String {
    let quantile = QUANTILES.iter().find(|quantile| quantile.key == key);
    format::figure(group.distribution(metric).zip(quantile).and_then(|(d, q)| d.figure(q)))
}

/// Output tokens per second; `None` without any.
fn tokens_per_second(group: &Group) -> Option<String> {
    group.token_rate().map(|tokens| format::token_rate(&tokens, rate_figure))
}

fn errors(group: &Group) -> [(&'static str, String); 2] {
    let counters = &group.counters;
    [
        ("", format::share_of(group.rates.error_rate)),
        ("of", format!("{} requests", count(counters.scheduled))),
    ]
}
