//! The chapters that only the file of a run has.

pub(super) use answers::policy_sentence;
pub use health::environment;
use plimsoll_metrics::{
    DisturbedWindow, Group, InstrumentHealth, RunEnd, RunInfo, RunSummary, TargetInfo, ValueSummary,
};
pub(super) use tasks::{ends as task_ends, label as task_label};

use crate::format::{self, count, or_dash, time};
use crate::run_screen::{bottleneck, load_time};
use crate::screen::{Chapter, Screen};
use crate::table::Table;

mod answers;
mod health;
mod load;
mod tasks;
mod times;

/// Adds every chapter of which there is anything.
pub(super) fn add(screen: &mut Screen, summary: &RunSummary) {
    screen.chapter(chapter(summary));
    screen.chapter(answers::policy_chapter(summary));
    screen.chapter(tasks::chapter(summary));
    groups(screen, summary);
    screen.chapter(answers::chapter(&summary.results.total));
    screen.chapter(answers::streams_chapter(summary));
    screen.chapter(shards(summary));
    screen.chapter(answers::server_timing_chapter(summary));
    screen.chapter(load::accounting_chapter(summary));
    screen.chapter(health::processes_chapter(summary));
    screen.chapter(chapter_disturbed(&summary.health));
    screen.chapter(health::chapter(summary));
    let mut chapter = Chapter::new("Environment");
    chapter.list(environment(&summary.metadata.environment));
    screen.chapter(chapter);
}

/// The shards of a merged run; those that are unlike the others stand out.
fn shards(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Shards");
    if let Some(table) = shard_table(summary) {
        chapter.table(&table);
    }
    chapter
}

const UNCOUNTED: &str = "Warm-up and cut-off levels (in no total and no threshold)";

/// A label of a group, and the group.
type Labelled<'a> = (&'a str, &'a Group);

fn groups(screen: &mut Screen, summary: &RunSummary) {
    let shown = sections(summary);
    for (title, groups) in shown.iter().filter(|(_, groups)| !groups.is_empty()) {
        let mut chapter = Chapter::new(title);
        chapter.table(&load::table(groups, &summary.metadata.stages));
        chapter.table(&times::table(groups));
        chapter.table(&table(groups));
        times::add_bounds(&mut chapter, groups);
        screen.chapter(chapter);
    }
    screen.chapter(times::breakdown_chapter(summary));
    let measured = shown.iter().filter(|(title, _)| *title != UNCOUNTED);
    let measured: Vec<_> = measured.flat_map(|(_, groups)| groups).copied().collect();
    screen.chapter(times::intervals_chapter(summary, &measured));
    screen.chapter(marks(&shown));
}

/// Explains the marks in the tables, if there are any.
fn marks(shown: &[(&str, Vec<Labelled<'_>>)]) -> Chapter {
    let groups = shown.iter().flat_map(|(_, groups)| groups.iter().map(|(_, group)| *group));
    let mut chapter = Chapter::new("Marks");
    if groups.clone().any(times::lacks_samples) {
        chapter.text(&times::footnote());
    }
    chapter.texts(times::footnotes(groups));
    chapter
}

/// The groups that are shown in full, by title. Groups that would only repeat the total are left
/// out.
fn sections(summary: &RunSummary) -> Vec<(&'static str, Vec<Labelled<'_>>)> {
    let stages = labelled(&summary.results.by_stage, |group| group.stage.as_deref());
    let (warmups, mut stages): (Vec<_>, Vec<_>) =
        stages.into_iter().partition(|(_, group)| group.warmup);
    if stages.len() > 1 {
        stages.push(("total", &summary.results.total));
    }
    let scenarios = labelled(&summary.results.by_scenario, |group| group.scenario.as_deref());
    let categories = labelled(&summary.results.by_category, |group| group.category.as_deref());
    let targets = labelled(&summary.results.by_target, |group| group.target.as_deref());
    let operations = labelled(&summary.results.by_operation, |group| group.operation.as_deref());
    vec![
        ("Stages", stages),
        ("Scenarios", several(scenarios)),
        ("Categories", categories),
        ("Targets", several(targets)),
        ("Operations", operations),
        (UNCOUNTED, warmups),
    ]
}

fn several(groups: Vec<Labelled<'_>>) -> Vec<Labelled<'_>> {
    if groups.len() > 1 { groups } else { Vec::new() }
}

fn labelled(groups: &[Group], label: impl Fn(&Group) -> Option<&str>) -> Vec<Labelled<'_>> {
    groups.iter().map(|group| (label(group).unwrap_or_default(), group)).collect()
}

// Facts of a run: its targets, start, seed, and end.

fn chapter(summary: &RunSummary) -> Chapter {
    let run = &summary.metadata.run;
    let targets = summary.metadata.targets.iter().map(|target| ("target", Some(describe(target))));
    let mut chapter = Chapter::new("Run");
    chapter.list(targets.chain([
        ("started", Some(format::utc(run.started_unix_ns))),
        ("load", Some(load_time(&summary.metadata))),
        ("seed", Some(run.seed.to_string())),
        ("shard", (run.shard != "0/1").then(|| run.shard.clone())),
        ("probe requests", (run.probes > 0).then(|| run.probes.to_string())),
        ("ended", Some(ended(run))),
        ("bottleneck", bottleneck(summary, false)),
        ("plimsoll", Some(run.tool_version.clone())),
    ]));
    chapter
}

fn describe(target: &TargetInfo) -> String {
    let mut parts = vec![format!("{} -> {}", target.name, target.url)];
    parts.extend((!target.model.is_empty()).then(|| format!("model {}", target.model)));
    parts.extend(target.server.iter().map(|server| format!("server {server}")));
    match target.tls.len() {
        0 => {}
        1 => parts.extend(target.tls.keys().cloned()),
        _ => parts.extend(target.tls.iter().map(|(agreed, connections): (&String, &u64)| {
            format!("{agreed} on {} connections", count(*connections))
        })),
    }
    parts.join(", ")
}

fn ended(run: &RunInfo) -> String {
    if let Some(why) = &run.stopped {
        return format!("STOPPED: {why}");
    }
    let words = match run.ended {
        RunEnd::Complete => "complete",
        RunEnd::Interrupted => "INTERRUPTED: the figures cover the time until then",
        RunEnd::TooManyErrors => "STOPPED: too many errors",
        RunEnd::Decided => "ended early: the comparison was decided",
        RunEnd::Aborted => "ABORTED",
        RunEnd::Unfinished => "NOT FINISHED",
    };
    words.to_owned()
}

// Tokens of requests: lengths, reasoning, and tokens per second of a user, per group.

const HEADINGS: [&str; 10] = ["", "count", "sum", "mean", "min", "p50", "p90", "p95", "p99", "max"];

/// No rows where no request has tokens.
fn table(groups: &[Labelled<'_>]) -> Table {
    let mut table = Table::new(HEADINGS);
    for (label, group) in groups {
        let Some(tokens) = &group.tokens else { continue };
        table.row(vec![(*label).to_owned()]);
        for (title, part) in tokens.parts() {
            table.row(row(title, part, title == "Tokens/s per user"));
        }
    }
    table
}

/// Lengths are whole numbers, and a sum of speeds is meaningless.
fn row(title: &str, part: &ValueSummary, is_rate: bool) -> Vec<String> {
    let number: fn(f64) -> String =
        if is_rate { |speed| format::rate(Some(speed)) } else { |length| format!("{length:.0}") };
    let sum = if is_rate { String::new() } else { format::rate(Some(part.sum)) };
    let mut cells = vec![format!("  {title}"), count(part.count), sum];
    cells.push(format::rate(Some(part.mean)));
    cells.extend([part.min, part.p50, part.p90, part.p95, part.p99, part.max].map(number));
    cells
}

// The windows in which workers did not look at their sockets.

/// Windows that are listed; the others are counted.
const LISTED: usize = 5;

fn chapter_disturbed(health: &InstrumentHealth) -> Chapter {
    let windows = &health.disturbed_windows;
    let mut chapter = Chapter::new("Disturbed windows (Plimsoll was paused)");
    let mut longest: Vec<_> = windows.iter().collect();
    longest.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
    longest.truncate(LISTED);
    longest.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    chapter.texts(longest.iter().map(|window| line(window)));
    let omitted = health.disturbed_windows_omitted.unwrap_or_default();
    let more = (windows.len() - longest.len()) as u64 + omitted;
    if more > 0 {
        chapter.text(&format!("and {} more, shorter ones", count(more)));
    }
    chapter
}

fn line(window: &DisturbedWindow) -> String {
    let (length, workers) = (time(window.length_s * 1e3), window.workers);
    let plural = if workers == 1 { "" } else { "s" };
    let causes = match window.causes.join(", ") {
        none if none.is_empty() => "cause not known".to_owned(),
        causes => causes,
    };
    let start = window.start_s;
    format!("at {start:.2}s for {length}: {workers} worker{plural}; {causes}")
}

// The shards of a merged run, side by side.

/// A row for each shard; `None` of a run that was not divided.
fn shard_table(summary: &RunSummary) -> Option<Table> {
    if summary.shards.is_empty() {
        return None;
    }
    let head =
        ["shard", "state", "began", "counted", "scheduled", "completed", "failed", "p50", "p99"];
    let mut table = Table::new(head);
    for part in &summary.shards {
        table.row([
            part.shard.clone(),
            part.state.to_string(),
            or_dash(part.start_s, |start| format!("+{}", time(start * 1e3))),
            or_dash(part.counted_s, format::seconds),
            count(part.scheduled),
            count(part.completed),
            count(part.unexpected),
            format::time_or_dash(part.p50_ms),
            format::time_or_dash(part.p99_ms),
        ]);
    }
    Some(table)
}
