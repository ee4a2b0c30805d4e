//! The head of the page: the verdict first, then the figures.

use maud::{Markup, html};
use plimsoll_metrics::{Judgement, QUANTILES, Reason, RunSummary, Unit, Validity};
use plimsoll_report::format::{self, count, rate_figure, seconds};
use plimsoll_report::printable;
use plimsoll_versus::Versus;

use crate::cards;
use crate::document::with_code;
use crate::input::Input;
use crate::table::Table;

/// The verdict, what speaks for it, and the figures by stage.
pub(crate) fn render(input: &Input<'_>) -> Markup {
    let summary = input.summary;
    let metadata = &summary.metadata;
    html! {
        header {
            h1 { (printable(&metadata.run.name)) }
            @match input.versus {
                // What the run's own validity means for it is among its reasons and warnings.
                Some(versus) => (comparison(versus)),
                None => (validity(&summary.validity)),
            }
            (cards::facts(metadata))
            (thresholds(summary))
            // Over all targets of a comparison the figures are of none of them.
            @if input.versus.is_none() {
                (cards::cards(summary))
                p { (requests(summary)) }
                (stages(summary).render())
            } @else {
                details {
                    summary { "all targets together, by stage" }
                    p { (requests(summary)) }
                    (stages(summary).render())
                }
            }
            (notes(summary))
        }
    }
}

fn validity(validity: &Validity) -> Markup {
    match validity {
        Validity::Valid => html! {
            p.verdict { span.good { "VALID" } ": Plimsoll kept up; these figures describe the target" }
        },
        Validity::Invalid(reasons) => html! {
            p.verdict { span.bad { "INVALID" } ": do not use these figures" }
            (list(reasons))
        },
    }
}

fn list(reasons: &[Reason]) -> Markup {
    html! {
        ul {
            @for reason in reasons {
                li {
                    (printable(&reason.what)) ": " (printable(&reason.measured)) " (limit: "
                    (printable(&reason.bound)) ")"
                    @if !reason.causes.is_empty() { "; causes: " (printable(&reason.causes.join("; "))) }
                    br; "fix: " (with_code(&reason.fix))
                }
            }
        }
    }
}

/// The sentences of a comparison that hold, and those that were not proven.
fn comparison(versus: &Versus) -> Markup {
    if !versus.invalid.is_empty() {
        return html! {
            p.verdict { span.bad { "INVALID" } ": the comparison does not describe the targets" }
            ul { @for why in &versus.invalid { li { (with_code(why)) } } }
        };
    }
    let (holding, open): (Vec<_>, Vec<_>) = versus.claims.iter().partition(|claim| claim.holds);
    html! {
        p.verdict { span.good { "VALID" } ": the differences describe the targets" }
        @if !holding.is_empty() {
            ul.verdict { @for claim in holding { li { (printable(&claim.text)) } } }
        } @else { p.verdict { "No difference between the targets is significant." } }
        @for worse in &versus.worse_than_margin { p.bad { (printable(worse)) } }
        @if !open.is_empty() {
            details {
                summary { "not significant: " (open.len()) }
                ul { @for claim in open { li { (printable(&claim.text)) } } }
            }
        }
        @for warning in &versus.warnings { p.soft { "WARNING: " (with_code(warning)) } }
    }
}

fn thresholds(summary: &RunSummary) -> Markup {
    html! {
        @if !summary.thresholds.is_empty() {
            ul {
                @for threshold in &summary.thresholds {
                    li {
                        @match &threshold.judgement {
                            Judgement::Pass => b.good { "PASS" },
                            Judgement::Fail => b.bad { "FAIL" },
                            Judgement::Inconclusive(_) => b { "INCONCLUSIVE" },
                        }
                        " " (printable(&threshold.metric)) " " (printable(&threshold.expression))
                        @if let Judgement::Inconclusive(why) = &threshold.judgement {
                            ": " (printable(why))
                        } @else if let Some(measured) = threshold.measured {
                            ", measured " (in_unit(threshold.unit, measured))
                        }
                    }
                }
            }
        }
    }
}

fn in_unit(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Time => format::time(value),
        Unit::Share => format::share(value),
        Unit::RequestsPerSecond | Unit::TokensPerSecond => format!("{}/s", format::digits(value)),
        _ => format::digits(value),
    }
}

fn requests(summary: &RunSummary) -> String {
    let counters = &summary.results.total.counters;
    let others = [
        (counters.rejected, "rejected (4xx)"),
        (counters.failed, "failed"),
        (counters.timed_out, "timed out"),
        (counters.cancelled, "cancelled"),
        (counters.in_flight, "without a response at the end"),
        (counters.never_sent, "never sent"),
    ];
    let others = others.into_iter().filter(|(n, _)| *n > 0);
    let others: Vec<_> = others.map(|(n, words)| format!(", {} {words}", count(n))).collect();
    let others = others.concat();
    format!(
        "{} requests in {}: {} ok{others}; warm-up left out.",
        count(counters.scheduled),
        seconds(summary.results.total.duration_s),
        count(counters.completed)
    )
}

/// A line for each stage, and one for all without warm-up.
fn stages(summary: &RunSummary) -> Table {
    let metric = summary.metadata.headline_time();
    let time = metric.title().to_lowercase();
    let mut table = Table::new(&["stage", "planned/s", "sent/s", "completed/s", "ok", "requests"]);
    let shown = QUANTILES.iter().filter(|q| ["p50", "p95", "p99"].contains(&q.key));
    table.head.extend(shown.clone().map(|q| format!("{time} {}", q.label)));
    table.head.extend(["TTFT p50", "TTFT p99"].map(str::to_owned));
    for group in summary.results.by_stage.iter().chain([&summary.results.total]) {
        let warmup = if group.warmup { " (warm-up)" } else { "" };
        let name = group.stage.as_deref().unwrap_or("all");
        let mut row = vec![
            format!("{name}{warmup}"),
            format::rate(group.rates.planned_rate_per_s),
            rate_figure(group.named_rate("achieved_rate")),
            rate_figure(group.named_rate("throughput")),
            format::share_of(group.rates.success_rate),
            count(group.counters.scheduled),
        ];
        let times = group.distribution(metric);
        row.extend(shown.clone().map(|q| format::figure(times.and_then(|times| times.figure(q)))));
        let ends = QUANTILES.iter().filter(|q| ["p50", "p99"].contains(&q.key));
        let ttft = group.distribution(plimsoll_metrics::Metric::Ttft);
        row.extend(ends.map(|q| format::figure(ttft.and_then(|times| times.figure(q)))));
        table.rows.push(row);
    }
    table
}

fn notes(summary: &RunSummary) -> Markup {
    let (warnings, notes) = (&summary.warnings, &summary.metadata.notes);
    html! {
        @if !warnings.is_empty() { p { b { "WARNING" } ": limits of this measurement" } (list(warnings)) }
        @if !notes.is_empty() {
            details { summary { "notes: " (notes.len()) } ul { @for note in notes { li { (with_code(note)) } } } }
        }
    }
}
