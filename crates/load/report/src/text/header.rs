//! The header: the run, its targets, and how it ended.

use plimsoll_metrics::{RunEnd, RunSummary, TargetInfo};

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
    let load_s: f64 = summary.metadata.stages.iter().map(|stage| stage.duration_s).sum();
    page.paragraph(
        2,
        &format!(
            "started {started}, {} of load, seed {}{shard}, {}",
            format::seconds(load_s),
            run.seed,
            ended(run.ended)
        ),
    );
}

fn describe(target: &TargetInfo) -> String {
    let mut parts = vec![format!("{} -> {}", target.name, target.url)];
    parts.extend((!target.model.is_empty()).then(|| format!("model {}", target.model)));
    parts.extend(target.server.iter().map(|server| format!("server {server}")));
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
