//! The handful of numbers that matter.

use plimsoll_metrics::{Group, Metric, QUANTILES, RunSummary};

use super::{Page, format};

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    let total = &summary.total;
    if total.counters.scheduled == 0 {
        page.note("Nothing was scheduled outside of warm-up.");
        return;
    }
    let mut sentences = vec![requests(total), rates(total)];
    sentences.extend(times(total, Metric::ResponseTime, "Response time (from the intended start)"));
    sentences.extend(times(total, Metric::Ttft, "TTFT"));
    sentences.extend(tokens(total));
    page.note(&sentences.join(" "));
}

fn requests(total: &Group) -> String {
    format!(
        "{} requests in {}: {} completed, {} rejected, {} without a good answer.",
        format::count(total.counters.scheduled),
        format::seconds(total.duration_s),
        format::share_of(total.rates.success_rate),
        format::share_of(total.rates.reject_rate),
        format::share_of(total.rates.error_rate),
    )
}

fn rates(total: &Group) -> String {
    format!(
        "Planned {}/s, sent {}/s, completed {}/s.",
        format::rate(total.rates.planned_rate_per_s),
        format::rate(total.rates.achieved_rate_per_s),
        format::rate(total.rates.throughput_per_s),
    )
}

fn times(total: &Group, metric: Metric, title: &str) -> Option<String> {
    let times = total.distribution(metric)?;
    let headline =
        QUANTILES.iter().filter(|quantile| ["p50", "p95", "p99"].contains(&quantile.key));
    let mut figures: Vec<_> = headline
        .filter_map(|quantile| Some((quantile.label, (quantile.of)(times)?)))
        .map(|(label, millis)| format!("{label} {}", format::time(millis)))
        .collect();
    figures.push(format!("max {}", format::time(times.max)));
    Some(format!("{title} {}.", figures.join(", ")))
}

/// The sources of token counts are kept apart.
fn tokens(total: &Group) -> Option<String> {
    let rates = &total.rates;
    let sources = [
        (rates.output_token_rate_reported_per_s, "reported by the target"),
        (rates.output_token_rate_estimated_per_s, "counted from content events"),
    ];
    let parts: Vec<_> = sources
        .into_iter()
        .filter_map(|(rate, source)| Some((rate.filter(|rate| *rate > 0.0)?, source)))
        .map(|(rate, source)| format!("{} output tokens/s {source}", format::digits(rate)))
        .collect();
    (!parts.is_empty()).then(|| format!("{}.", parts.join(", ")))
}
