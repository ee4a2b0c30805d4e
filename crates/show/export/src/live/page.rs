//! The page at `/metrics`.

use std::borrow::Cow;

use plimsoll_measure::Outcome;
use plimsoll_metrics::Metric;
use plimsoll_metrics::catalog::{COUNTERS, CounterSpec, side_word};
use plimsoll_report::exposition::{Exposition, Kind, Labels};

use super::{Conclusion, LiveKnee, ProcessNow, Series, State};
use crate::counts::{Cell, Counts, LAGS, LIMITS_NS, TIMES, Times};

/// The present page.
pub(super) fn write(state: &State) -> String {
    let mut out = Exposition::new(&state.run.labels);
    let counts = state.counts();
    run(&mut out, state);
    stages(&mut out, state);
    state.series.iter().for_each(|found| series(&mut out, found));
    outcomes(&mut out, &counts);
    for counter in COUNTERS.iter().filter(|counter| !is_outcome(counter)) {
        let name = format!("plimsoll_live_{}_total", counter.name);
        let cells = counts.cells.iter();
        let lines = cells.map(|(cell, counts)| (of_cell(cell), (counter.of)(&counts.counters)));
        out.described(&name, Kind::Counter, counter.definition, lines);
    }
    errors(&mut out, &counts);
    for (index, metric) in TIMES.into_iter().enumerate() {
        let lines = counts.cells.iter().map(|(cell, counts)| (of_cell(cell), &counts.times[index]));
        histogram(&mut out, metric, lines);
    }
    for (index, metric) in LAGS.into_iter().enumerate() {
        let lines = counts
            .lags
            .iter()
            .map(|(warmup, lags)| (vec![("warmup", Cow::from(warmup.to_string()))], &lags[index]));
        histogram(&mut out, metric, lines);
    }
    processes(&mut out, state);
    out.finish()
}

fn run(out: &mut Exposition, state: &State) {
    let info = &state.run.run;
    let labels = vec![
        ("name", Cow::from(info.name.as_str())),
        ("version", Cow::from(info.tool_version.as_str())),
        ("run_id", Cow::from(info.run_id.as_str())),
    ];
    let present = (state.runs > 0).then_some((labels, 1));
    out.family("plimsoll_live_run_info", present);
    out.single("plimsoll_live_runs_total", state.runs);
    out.single("plimsoll_live_snapshots_total", state.snapshots);
    out.single("plimsoll_live_run_over", u8::from(state.is_over()));
    let elapsed = state.elapsed.as_secs_f64();
    out.single("plimsoll_live_elapsed_seconds", elapsed);
    out.single("plimsoll_live_in_flight_requests", state.in_flight);
    if let Some(verdict) = state.verdict {
        out.single("plimsoll_live_run_valid", u8::from(verdict.valid));
        let words = ["pass", "fail", "inconclusive"].map(|word| vec![("judgement", word.into())]);
        let lines = words.into_iter().zip(verdict.thresholds);
        out.family("plimsoll_live_thresholds", lines);
    }
}

fn stages(out: &mut Exposition, state: &State) {
    let lines = state.run.stages.iter().enumerate().map(|(index, stage)| {
        let labels = vec![
            ("stage", Cow::from(stage.name.as_str())),
            ("index", Cow::from((index + 1).to_string())),
            ("warmup", Cow::from(stage.warmup.to_string())),
        ];
        (labels, u8::from(state.stage == Some(index)))
    });
    out.family("plimsoll_live_stage", lines);
    let targets = state.run.targets.iter().zip(&state.taken_out);
    let lines = targets.map(|(target, is_out)| {
        (vec![("target", Cow::from(target.name.as_str()))], u8::from(*is_out))
    });
    out.family("plimsoll_live_target_taken_out", lines);
}

/// Which part of a search or a suite goes on, and what came of all. The names of labels are among
/// those that profiles cannot have.
fn series(out: &mut Exposition, series: &Series) {
    let lines = series.parts.iter().enumerate().map(|(index, (part, target))| {
        let labels = vec![("name", part.as_str().into()), ("target", target.as_str().into())];
        (labels, u8::from(series.present == Some(index)))
    });
    out.family("plimsoll_live_part", lines);
    let Some(Conclusion { outcome, knees }) = &series.conclusion else { return };
    let lines = [(vec![("outcome", Cow::from(*outcome))], 1)];
    out.family("plimsoll_live_outcome", lines);
    if !knees.is_empty() {
        of_knees(out, knees);
    }
}

fn of_knees(out: &mut Exposition, knees: &[LiveKnee]) {
    let lines = knees.iter().map(|knee| (of_knee(knee, "status", knee.kind), 1));
    out.family("plimsoll_live_knee_state", lines);
    let families = ["plimsoll_live_knee_load_low", "plimsoll_live_knee_load_high"];
    for (index, name) in families.into_iter().enumerate() {
        let lines = knees
            .iter()
            .filter_map(|knee| Some((of_knee(knee, "metric", knee.unit), knee.load[index]?)));
        out.family(name, lines);
    }
}

fn of_knee(knee: &LiveKnee, key: &'static str, value: &'static str) -> Labels<'static> {
    vec![("target", knee.target.clone().into()), (key, value.into())]
}

fn is_outcome(counter: &CounterSpec) -> bool {
    Outcome::NAMES.contains(&counter.name)
}

/// All requests that ended, once each.
fn outcomes(out: &mut Exposition, counts: &Counts) {
    let lines = counts.cells.iter().flat_map(|(cell, counts)| {
        COUNTERS.iter().filter(|counter| is_outcome(counter)).map(|counter| {
            let mut labels = of_cell(cell);
            labels.push(("outcome", counter.name.into()));
            (labels, (counter.of)(&counts.counters))
        })
    });
    out.family("plimsoll_live_requests_total", lines);
}

fn of_target(target: &str, warmup: bool) -> Labels<'static> {
    vec![("target", target.to_owned().into()), ("warmup", warmup.to_string().into())]
}

fn errors(out: &mut Exposition, counts: &Counts) {
    let lines = counts.errors.iter().map(|(((target, warmup), class), n)| {
        let mut labels = of_target(target, *warmup);
        labels.push(("class", class.name().into()));
        labels.push(("side", side_word(class.side()).into()));
        (labels, n)
    });
    out.family("plimsoll_live_errors_total", lines);
    let lines = counts.statuses.iter().map(|(((target, warmup), status), n)| {
        let mut labels = of_target(target, *warmup);
        labels.push(("status", status.to_string().into()));
        (labels, n)
    });
    out.family("plimsoll_live_responses_total", lines);
}

/// A family of times; nothing if no request has such a time yet.
fn histogram<'a>(
    out: &mut Exposition,
    metric: Metric,
    lines: impl Iterator<Item = (Labels<'a>, &'a Times)>,
) {
    let lines: Vec<_> = lines.filter(|(_, times)| times.count > 0).collect();
    if lines.is_empty() {
        return;
    }
    let name = format!("plimsoll_live_{}_seconds", metric.name());
    out.head(&name, Kind::Histogram, metric.definition());
    let bucket = format!("{name}_bucket");
    for (labels, times) in lines {
        let mut up_to = 0;
        for (limit, n) in LIMITS_NS.iter().zip(times.classes) {
            up_to += n;
            let mut labels = labels.clone();
            labels.push(("le", (*limit as f64 / 1e9).to_string().into()));
            out.line(&bucket, &labels, up_to);
        }
        let mut all = labels.clone();
        all.push(("le", "+Inf".into()));
        out.line(&bucket, &all, times.count);
        out.line(&format!("{name}_sum"), &labels, times.sum_ns as f64 / 1e9);
        out.line(&format!("{name}_count"), &labels, times.count);
    }
}

fn processes(out: &mut Exposition, state: &State) {
    if let Some(cpu) = state.own_cpu {
        let seconds = cpu.as_secs_f64();
        out.single("plimsoll_live_generator_cpu_seconds_total", seconds);
    }
    let lines =
        state.processes.iter().filter_map(|process| Some((of_process(process), process.cores?)));
    out.family("plimsoll_live_process_cpu_cores", lines);
    let lines = state
        .processes
        .iter()
        .filter_map(|process| Some((of_process(process), process.rss_bytes?)));
    out.family("plimsoll_live_process_resident_bytes", lines);
}

fn of_process(process: &ProcessNow) -> Labels<'_> {
    vec![("process", process.name.as_str().into())]
}

fn of_cell(cell: &Cell) -> Labels<'static> {
    vec![
        ("scenario", cell.scenario.clone().into()),
        ("target", cell.target.clone().into()),
        ("warmup", cell.warmup.to_string().into()),
    ]
}
