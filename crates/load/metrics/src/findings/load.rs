//! 1xx: the load was not as planned.

use plimsoll_rules::number::{count, digits, percent, seconds, share, time};
use plimsoll_rules::{Finding, Level};

use super::{measured, share_of, stage_name};
use crate::bounded_figure::BoundedFigure;
use crate::catalog::Metric;
use crate::distribution::QUANTILES;
use crate::health::InstrumentHealth;
use crate::results::{Group, LimitedFigure};
use crate::run_metadata::{LoadModel, RunEnd};
use crate::summary::RunSummary;

/// The share of the planned arrivals of an open stage that may miss their stage.
const MISSED_SHARE: f64 = 0.01;
/// Steps of the clock, in nanoseconds: twice the resolution of the histograms.
const CLOCK_STEP_NS: u64 = 1_000;
/// A worker that ran or waited for its CPU for more than this share of the time is saturated.
const BUSY_SHARE: f64 = 0.9;
/// The part of an error that its cause explains at least.
const EXPLAINED: f64 = 0.1;

/// The action where no request had the time to end.
const LONGER: &str = "make the load longer than a response takes (-d)";

pub(super) fn findings(summary: &RunSummary) -> Vec<Finding> {
    let health = &summary.health;
    let mut found: Vec<_> = ended(summary).into_iter().collect();
    found.extend(identity(summary));
    found.extend(lost_rows(health));
    found.extend(health.generator_errors.iter().map(|(class, n)| exhausted(health, class, *n)));
    let step = health.clock_step_ns.filter(|step| *step > CLOCK_STEP_NS);
    found.extend(step.map(|step| Finding::new(107).with("step", time(step as f64 / 1e6))));
    for stage in measured(summary) {
        if is_closed(summary, stage) {
            found.extend(unknown_median(summary, stage, Metric::ServiceTime));
        } else {
            found.extend(unknown_median(summary, stage, Metric::ResponseTime));
            found.extend(late(summary, stage));
            found.extend(held(summary, stage));
        }
        found.extend(unknown_median(summary, stage, Metric::Ttft));
    }
    if !found.iter().any(|finding| finding.code == 102) {
        found.extend(measurement_error(summary));
    }
    found.extend(sampled_rows(health));
    found.extend(nothing_measured(summary));
    let unsent = &summary.metadata.unsent;
    let parts = (!unsent.is_empty()).then(|| unsent.join("; "));
    found.extend(parts.map(|parts| Finding::new(113).with("parts", parts)));
    found
}

pub(super) fn is_closed(summary: &RunSummary, stage: &Group) -> bool {
    let stages = summary.metadata.stages.iter();
    let mut own = stages.filter(|info| Some(&info.name) == stage.stage.as_ref());
    own.any(|info| info.model == LoadModel::Closed)
}

fn late(summary: &RunSummary, stage: &Group) -> Option<Finding> {
    let (planned, late) =
        (stage.counters.arrivals_planned, stage.counters.arrivals_late_by_generator);
    let part = share_of(late, planned);
    (part > MISSED_SHARE).then(|| {
        Finding::new(101)
            .with("late", count(late))
            .with("planned", count(planned))
            .with("share", share(part))
            .with("stage", stage_name(stage))
            .with_some("cause", cause(summary, part))
    })
}

/// A median that the measurement error covers entirely.
fn unknown_median(summary: &RunSummary, stage: &Group, metric: Metric) -> Option<Finding> {
    let figure = stage.distribution(metric)?.figure(&QUANTILES[0])?;
    figure.may_be_all_ours().then(|| {
        let found = error_of(summary, [metric.title(), QUANTILES[0].label], &figure);
        found.with("stage", stage_name(stage)).at(Level::Invalid)
    })
}

/// The headline figure with the largest relative measurement error.
fn measurement_error(summary: &RunSummary) -> Option<Finding> {
    let headline = summary.metadata.headline_time().title();
    let ours = summary.results.figures_of_generator();
    let ours = ours.iter().filter(|found| is_headline(found, headline));
    let largest = ours.max_by(|a, b| {
        let (a, b) = (&a.figure, &b.figure);
        (a.bound / a.value).total_cmp(&(b.bound / b.value))
    })?;
    let LimitedFigure { stage, title, label, figure, .. } = largest;
    // One stage needs no name.
    let stages = summary.results.by_stage.iter().filter(|stage| !stage.warmup).count();
    let stage = Some(stage).filter(|_| stages > 1);
    Some(error_of(summary, [title, label], figure).with_some("stage", stage))
}

fn is_headline(found: &LimitedFigure, headline: &str) -> bool {
    match found.label {
        "" => found.title == "sent/s",
        "min" | "max" | "mean" | "p90" | "p99.9" => false,
        _ => found.title == headline,
    }
}

/// The generator adds to times, and holds rates down, which have no label.
fn error_of(summary: &RunSummary, [title, label]: [&str; 2], figure: &BoundedFigure) -> Finding {
    let affected = summary.results.total.counters.affected;
    let is_rate = label.is_empty();
    // A percentile is longer if as many requests are as lie beyond it.
    let quantile = QUANTILES.iter().find(|quantile| quantile.label == label);
    let share = quantile.map_or(figure.bound / figure.value, |quantile| 1.0 - quantile.q);
    let shown = if is_rate { digits } else { time };
    Finding::new(102)
        .with("figure", format!("{title} {label}").trim_end())
        .with("value", shown(figure.value))
        .with(if is_rate { "held" } else { "bound" }, shown(figure.bound))
        .with_some("n", (affected > 0).then(|| count(affected)))
        .with_some("cause", cause(summary, share))
}

/// The known causes of a delay by the generator that concerns this share of the load.
fn cause(summary: &RunSummary, share: f64) -> Option<String> {
    let (health, least) = (&summary.health, EXPLAINED * share);
    let windows = &health.disturbed_windows;
    let paused: f64 = windows.iter().map(|window| window.length_s).sum();
    let paused = notable(paused, least * lasted_s(summary)).filter(|_| !windows.is_empty());
    let causes = [
        paused.map(|paused| format!("Plimsoll paused for {} in all", time(paused * 1e3))),
        notable(health.steal_share, least).map(|part| format!("steal {}", percent(part))),
        notable(health.throttled_share, least).map(|part| format!("CPU quota {}", percent(part))),
        notable(health.highest_demand(), BUSY_SHARE)
            .map(|part| format!("busy worker {}", percent(part))),
        (health.kernel_timestamps == Some(false)).then(|| "no kernel timestamps".to_owned()),
    ];
    let causes: Vec<_> = causes.into_iter().flatten().collect();
    (!causes.is_empty()).then(|| causes.join(", "))
}

fn notable(value: impl Into<Option<f64>>, least: f64) -> Option<f64> {
    value.into().filter(|value| *value >= least)
}

fn exhausted(health: &InstrumentHealth, class: &str, n: u64) -> Finding {
    let (setting, limit) = match class {
        "gen_port_exhaustion" => (Some("net.ipv4.ip_local_port_range"), health.ephemeral_ports),
        "gen_fd_exhaustion" => (Some("ulimit -n"), health.fd_limit),
        _ => (None, None),
    };
    Finding::new(103)
        .with("n", count(n))
        .with("class", class)
        .with_some("setting", setting)
        .with_some("limit", limit.map(count))
}

/// Arrivals that waited until others were answered: the target, or the limit, kept the rate down.
fn held(summary: &RunSummary, stage: &Group) -> Option<Finding> {
    let counters = &stage.counters;
    let (planned, held) = (counters.arrivals_planned, counters.arrivals_held());
    let part = share_of(held, planned);
    let never = counters.never_sent.min(held);
    let is_invalid =
        summary.metadata.run.ended == RunEnd::Complete && share_of(never, planned) > MISSED_SHARE;
    let service = stage.distribution(Metric::ServiceTime);
    let service = service.and_then(|times| times.raw_quantile(&QUANTILES[0]));
    (part > MISSED_SHARE).then(|| {
        Finding::new(104)
            .at(if is_invalid { Level::Invalid } else { Level::Warning })
            .with("held", count(held))
            .with("planned", count(planned))
            .with("share", share(part))
            .with("stage", stage_name(stage))
            .with_some("never", (never > 0).then(|| count(never)))
            .with_some("service", service.map(time))
    })
}

/// Rows that were lost: the queue to the disk, or the disk itself, was full.
fn lost_rows(health: &InstrumentHealth) -> Option<Finding> {
    let lost = health.sink_overflowed.unwrap_or_default();
    let is_lost = lost > 0 || health.sink_error.is_some();
    let reason = health.sink_error.clone();
    is_lost.then(|| {
        Finding::new(105)
            .with("n", if lost > 0 { count(lost) } else { "some".to_owned() })
            .with("all", count(health.sink_offered.unwrap_or_default()))
            .with("reason", reason.unwrap_or_else(|| "the disk is too slow".to_owned()))
    })
}

/// `results.jsonl` is a sample, chosen independently of the measured values.
fn sampled_rows(health: &InstrumentHealth) -> Option<Finding> {
    let left_out = health.sink_left_out.filter(|left_out| *left_out > 0)?;
    let finding = Finding::new(105)
        .at(Level::Note)
        .with("n", count(left_out))
        .with("all", count(health.sink_offered?));
    Some(finding.with("one_in", count(health.sink_least_share_one_in?.into())))
}

/// Each scheduled request has one outcome, in each cell; and a row, or is counted as left out or
/// lost.
fn identity(summary: &RunSummary) -> Option<Finding> {
    let mut cells = summary.results.cells.iter();
    let cell = cells.find(|cell| !cell.counters.balanced()).map(|cell| {
        let labels = [&cell.stage, &cell.scenario, &cell.target, &cell.operation];
        let labels: Vec<_> = labels.into_iter().flatten().map(String::as_str).collect();
        format!("{}: {}", labels.join(" "), cell.counters)
    });
    let identity = cell.or_else(|| rows_identity(summary))?;
    Some(Finding::new(106).with("identity", identity))
}

fn rows_identity(summary: &RunSummary) -> Option<String> {
    let health = &summary.health;
    let scheduled = summary.results.accounting().scheduled;
    let offered = health.sink_offered?;
    let parts = [health.sink_written?, health.sink_left_out?, health.sink_overflowed?];
    let differs = offered != scheduled || parts.iter().sum::<u64>() != offered;
    let [written, left_out, lost] = parts;
    differs
        .then(|| format!("{scheduled} scheduled, {offered} rows: {written} + {left_out} + {lost}"))
}

fn ended(summary: &RunSummary) -> Option<Finding> {
    const AGAIN: Option<&str> = Some("run it again");
    let run = &summary.metadata.run;
    let (level, reason, action) = match run.ended {
        RunEnd::Aborted => (Level::Invalid, "aborted", AGAIN),
        RunEnd::Unfinished => (Level::Invalid, "it left no summary", AGAIN),
        RunEnd::TooManyErrors => (Level::Fail, "too many errors", None),
        RunEnd::Decided => (Level::Note, "the comparison was decided", None),
        RunEnd::Interrupted => (Level::Note, "interrupted", None),
        RunEnd::Complete => (Level::Note, run.stopped.as_deref()?, Some("raise that limit")),
    };
    let at = lasted_s(summary);
    let reason = run.stopped.as_deref().unwrap_or(reason);
    let finding = Finding::new(108).at(level).with("reason", reason).with_some("action", action);
    Some(finding.with_some("at", (at > 0.0).then(|| seconds(at))))
}

/// Length of the load with its warm-up, in seconds.
fn lasted_s(summary: &RunSummary) -> f64 {
    summary.metadata.stages.iter().map(|stage| stage.duration_s).sum()
}

/// No data; a refusal that is expected is data.
fn nothing_measured(summary: &RunSummary) -> Option<Finding> {
    let total = &summary.results.total;
    let is_empty = total.counters.completed == 0 && total.counters.as_expected == 0;
    let is_over = summary.metadata.run.ended != RunEnd::Unfinished;
    let may_fail = summary.metadata.allow_failures && total.counters.failures() > 0;
    (is_empty && is_over && !may_fail).then(|| {
        let lasted = (total.duration_s > 0.0).then(|| seconds(total.duration_s));
        let failed = total.counters.failures();
        let action = match summary.metadata.run.ended {
            _ if failed > 0 => Some("see its failures"),
            RunEnd::Interrupted => None,
            _ => Some(LONGER),
        };
        Finding::new(112)
            .with_some("time", lasted)
            .with_some("failed", (failed > 0).then(|| count(failed)))
            .with_some("action", action)
    })
}
