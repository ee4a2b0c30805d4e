//! The figures of a whole run in sentences.

use plimsoll_metrics::{Counters, Group, Metric, QUANTILES, RunSummary};

use crate::format;

/// Figures that a file lists beside [`requests`] and [`goodput`]: rates, the main times and tokens,
/// with their limits.
pub(super) fn figures(summary: &RunSummary) -> String {
    let total = &summary.results.total;
    if total.counters.scheduled == 0 {
        return "No requests were scheduled outside of warm-up.".to_owned();
    }
    let mut sentences = Vec::from_iter((total.duration_s > 0.0).then(|| rates(total)));
    sentences.extend(match summary.metadata.headline_time() {
        Metric::ServiceTime => times(total, Metric::ServiceTime, "Service time"),
        metric => times(total, metric, "Response time (from the intended start)"),
    });
    sentences.extend(times(total, Metric::Ttft, "TTFT"));
    sentences.extend(tokens(total));
    sentences.join(" ")
}

/// Every outcome by count, if there are any of it. They may end after the time in which they are
/// due.
pub(super) fn requests(total: &Group) -> String {
    let counters = &total.counters;
    let mut outcomes = vec![format!("{} ok", format::count(counters.ok()))];
    let others = [
        (counters.refused(), "refused (4xx)"),
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

fn rates(total: &Group) -> String {
    let planned = total.rates.planned_rate_per_s;
    let planned = planned.map(|rate| format!("planned {}, ", format::digits(rate)));
    format!(
        "Requests per second: {}sent {}, completed {}.",
        planned.unwrap_or_default(),
        format::limited_rate(total.named_rate("achieved_rate")),
        format::limited_rate(total.named_rate("throughput")),
    )
}

fn times(total: &Group, metric: Metric, title: &str) -> Option<String> {
    let times = total.distribution(metric)?;
    let headline =
        QUANTILES.iter().filter(|quantile| ["p50", "p95", "p99"].contains(&quantile.key));
    let mut figures: Vec<_> = headline
        .filter_map(|quantile| Some((quantile.label, times.figure(quantile)?)))
        .map(|(label, figure)| format!("{label} {}", format::limited_time(Some(figure))))
        .collect();
    figures.push(format!("max {}", format::limited_time(Some(times.max_figure()))));
    Some(format!("{title} {}.", figures.join(", ")))
}

/// The good requests, and what makes one.
pub(super) fn goodput(summary: &RunSummary) -> Option<String> {
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

/// Output tokens per second, separately for each source of the count.
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
    let unknown = match total.counters.completed_without_tokens {
        0 => String::new(),
        answers => format!(", without {} answers that tell no count", format::count(answers)),
    };
    (!parts.is_empty()).then(|| format!("{}{unknown}.", parts.join(", ")))
}
