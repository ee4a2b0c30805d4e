//! The header: the run, its targets, and how it ended.

use plimsoll_metrics::{RunEnd, RunMetadata, RunSummary, TargetInfo};

use super::{Page, format};
use crate::color::Color;

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    let run = &summary.metadata.run;
    let title = page.color(Color::Bold, &format!("plimsoll {}: {}", run.tool_version, run.name));
    page.line(&title);
    for target in &summary.metadata.targets {
        page.paragraph(2, &describe(target));
    }
    let shard = if run.shard == "0/1" { String::new() } else { format!(", shard {}", run.shard) };
    let started = format::utc(run.started_unix_ns);
    let load = whole_load_time(&summary.metadata);
    let text = format!("started {started}, {load}, seed {}{shard}, {}", run.seed, ended(run.ended));
    page.paragraph(2, &text);
}

/// How long the load was: what is measured, and the warm-up before it.
fn whole_load_time(metadata: &RunMetadata) -> String {
    let warmup = seconds(metadata, true);
    let load = load_time(metadata);
    if warmup > 0.0 { format!("{load} after {} of warm-up", format::seconds(warmup)) } else { load }
}

/// How long the load was that is measured.
pub(crate) fn load_time(metadata: &RunMetadata) -> String {
    format!("{} of load", format::seconds(seconds(metadata, false)))
}

fn seconds(metadata: &RunMetadata, warmup: bool) -> f64 {
    let stages = metadata.stages.iter().filter(|stage| stage.warmup == warmup);
    stages.map(|stage| stage.duration_s).sum()
}

fn describe(target: &TargetInfo) -> String {
    let mut parts = vec![format!("{} -> {}", target.name, target.url)];
    parts.extend((!target.model.is_empty()).then(|| format!("model {}", target.model)));
    parts.extend(target.server.iter().map(|server| format!("server {server}")));
    match target.tls.len() {
        0 => {}
        1 => parts.extend(target.tls.keys().cloned()),
        _ => parts.extend(target.tls.iter().map(|(agreed, connections): (&String, &u64)| {
            format!("{agreed} on {} connections", format::count(*connections))
        })),
    }
    parts.join(", ")
}

const fn ended(ended: RunEnd) -> &'static str {
    match ended {
        RunEnd::Complete => "complete",
        RunEnd::Interrupted => "INTERRUPTED: the figures cover the time until then",
        RunEnd::TooManyErrors => "STOPPED: too many errors",
        RunEnd::Decided => "ended early: the comparison was decided",
        RunEnd::Aborted => "ABORTED",
        RunEnd::Unfinished => "NOT FINISHED",
    }
}
