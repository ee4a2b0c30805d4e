//! The page at `/metrics`.

use std::borrow::Cow;

use plimsoll_measure::Outcome;
use plimsoll_metrics::Metric;
use plimsoll_metrics::catalog::{COUNTERS, CounterSpec, side_word};
use plimsoll_report::exposition::{Exposition, Kind, Labels};

use super::State;
use super::series::{Conclusion, LiveKnee, Series};
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
        out.head(&name, Kind::Counter, counter.definition);
        for (cell, counts) in &counts.cells {
            out.line(&name, &of_cell(cell), (counter.of)(&counts.counters));
        }
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
    let name = "plimsoll_live_run_info";
    out.head(name, Kind::Gauge, "The present run, or the last one.");
    if state.runs > 0 {
        let labels = [
            ("name", Cow::from(info.name.as_str())),
            ("version", Cow::from(info.tool_version.as_str())),
            ("run_id", Cow::from(info.run_id.as_str())),
        ];
        out.line(name, &labels, 1);
    }
    let help = "Runs that this process began; counters go on from one to the next.";
    out.single("plimsoll_live_runs_total", Kind::Counter, help, state.runs);
    let help = "Times that the figures were renewed: about once a second while a run goes on.";
    out.single("plimsoll_live_snapshots_total", Kind::Counter, help, state.snapshots);
    let help = "1 when the run is over and its figures are final; of a search or a suite: when all \
                of its runs are.";
    out.single("plimsoll_live_run_over", Kind::Gauge, help, u8::from(state.is_over()));
    let help = "Time since the start of the run, up to its last snapshot.";
    let elapsed = state.elapsed.as_secs_f64();
    out.single("plimsoll_live_elapsed_seconds", Kind::Gauge, help, elapsed);
    let help = "Requests in flight.";
    out.single("plimsoll_live_in_flight_requests", Kind::Gauge, help, state.in_flight);
    if let Some(verdict) = state.verdict {
        let help = "1 if Plimsoll kept up so far, so that the figures describe the target; else 0: \
                    do not use them. Missing before the first look.";
        out.single("plimsoll_live_run_valid", Kind::Gauge, help, u8::from(verdict.valid));
        let name = "plimsoll_live_thresholds";
        out.head(name, Kind::Gauge, "Thresholds by what they would be if the run ended now.");
        for (word, count) in ["pass", "fail", "inconclusive"].into_iter().zip(verdict.thresholds) {
            out.line(name, &[("judgement", word.into())], count);
        }
    }
}

fn stages(out: &mut Exposition, state: &State) {
    let name = "plimsoll_live_stage";
    out.head(name, Kind::Gauge, "1 for the stage that goes on, 0 for the others.");
    for (index, stage) in state.run.stages.iter().enumerate() {
        let labels = [
            ("stage", Cow::from(stage.name.as_str())),
            ("index", Cow::from((index + 1).to_string())),
            ("warmup", Cow::from(stage.warmup.to_string())),
        ];
        out.line(name, &labels, u8::from(state.stage == Some(index)));
    }
    let name = "plimsoll_live_target_taken_out";
    let help = "1 for a target that was taken out of the comparison, because it kept failing.";
    out.head(name, Kind::Gauge, help);
    for (target, is_out) in state.run.targets.iter().zip(&state.taken_out) {
        out.line(name, &[("target", Cow::from(target.name.as_str()))], u8::from(*is_out));
    }
}

/// Which part of a search or a suite goes on, and what came of all. The names of labels are among
/// those that profiles cannot have.
fn series(out: &mut Exposition, series: &Series) {
    let name = "plimsoll_live_part";
    out.head(name, Kind::Gauge, "1 for the part of a search or a suite that goes on, else 0.");
    for (index, (part, target)) in series.parts.iter().enumerate() {
        let target = ("target", Cow::from(target.as_str()));
        let labels = [("name", Cow::from(part.as_str())), target];
        out.line(name, &labels, u8::from(series.present == Some(index)));
    }
    let Some(Conclusion { outcome, knees }) = &series.conclusion else { return };
    let name = "plimsoll_live_outcome";
    out.head(name, Kind::Gauge, "1 for the outcome of a search or a suite that is over.");
    out.line(name, &[("outcome", Cow::from(*outcome))], 1);
    if !knees.is_empty() {
        of_knees(out, knees);
    }
}

fn of_knees(out: &mut Exposition, knees: &[LiveKnee]) {
    let name = "plimsoll_live_knee_state";
    out.head(name, Kind::Gauge, "1 for how well a knee is known, the `kind` of knee.json.");
    for knee in knees {
        let labels = [("target", knee.target.clone().into()), ("status", knee.kind.into())];
        out.line(name, &labels, 1);
    }
    let families = [
        ("plimsoll_live_knee_load", "The highest load that keeps the objective."),
        ("plimsoll_live_knee_load_low", "The lower end of its interval."),
        ("plimsoll_live_knee_load_high", "The upper end of its interval."),
    ];
    for (index, (name, help)) in families.into_iter().enumerate() {
        out.head(name, Kind::Gauge, help);
        for knee in knees {
            let labels = [("target", knee.target.clone().into()), ("metric", knee.unit.into())];
            knee.load[index].iter().for_each(|load| out.line(name, &labels, load));
        }
    }
}

fn is_outcome(counter: &CounterSpec) -> bool {
    Outcome::NAMES.contains(&counter.name)
}

/// All requests that ended, once each.
fn outcomes(out: &mut Exposition, counts: &Counts) {
    let name = "plimsoll_live_requests_total";
    let help = "Requests by how they ended. `in_flight` and `never_sent` are known at the end.";
    out.head(name, Kind::Counter, help);
    for (cell, counts) in &counts.cells {
        for counter in COUNTERS.iter().filter(|counter| is_outcome(counter)) {
            let mut labels = of_cell(cell);
            labels.push(("outcome", counter.name.into()));
            out.line(name, &labels, (counter.of)(&counts.counters));
        }
    }
}

fn of_target(target: &str, warmup: bool) -> Labels<'static> {
    vec![("target", target.to_owned().into()), ("warmup", warmup.to_string().into())]
}

fn errors(out: &mut Exposition, counts: &Counts) {
    let name = "plimsoll_live_errors_total";
    out.head(name, Kind::Counter, "Failed requests by error class and side.");
    for (((target, warmup), class), n) in &counts.errors {
        let mut labels = of_target(target, *warmup);
        labels.push(("class", class.name().into()));
        labels.push(("side", side_word(class.side()).into()));
        out.line(name, &labels, n);
    }
    let name = "plimsoll_live_responses_total";
    out.head(name, Kind::Counter, "Responses by HTTP status.");
    for (((target, warmup), status), n) in &counts.statuses {
        let mut labels = of_target(target, *warmup);
        labels.push(("status", status.to_string().into()));
        out.line(name, &labels, n);
    }
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
        let help = "CPU time of Plimsoll itself.";
        let seconds = cpu.as_secs_f64();
        out.single("plimsoll_live_generator_cpu_seconds_total", Kind::Counter, help, seconds);
    }
    let name = "plimsoll_live_process_cpu_cores";
    out.head(name, Kind::Gauge, "Cores that a watched process used in the last second.");
    for process in &state.processes {
        let labels = [("process", Cow::from(process.name.as_str()))];
        process.cores.iter().for_each(|cores| out.line(name, &labels, cores));
    }
    let name = "plimsoll_live_process_resident_bytes";
    out.head(name, Kind::Gauge, "Resident memory of a watched process.");
    for process in &state.processes {
        let labels = [("process", Cow::from(process.name.as_str()))];
        process.rss_bytes.iter().for_each(|bytes| out.line(name, &labels, bytes));
    }
}

fn of_cell(cell: &Cell) -> Labels<'static> {
    vec![
        ("scenario", cell.scenario.clone().into()),
        ("target", cell.target.clone().into()),
        ("warmup", cell.warmup.to_string().into()),
    ]
}
