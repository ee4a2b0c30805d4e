//! What was run, against what, and how it ended.

use plimsoll_metrics::{RunEnd, RunSummary, TargetInfo};

use super::paint::Paint;
use super::{Page, format};

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    let run = &summary.run;
    let title = page.paint(Paint::Bold, &format!("plimsoll {}: {}", run.tool_version, run.name));
    page.line(&title);
    for target in &summary.targets {
        page.paragraph(2, &describe(target));
    }
    let shard = if run.shard == "0/1" { String::new() } else { format!(", shard {}", run.shard) };
    let started = format::utc(run.started_unix_ns);
    let played: f64 = summary.stages.iter().map(|stage| stage.duration_s).sum();
    page.paragraph(
        2,
        &format!(
            "started {started}, {} of load, seed {}{shard}, {}",
            format::seconds(played),
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
        RunEnd::Interrupted => "INTERRUPTED: only what was measured until then",
        RunEnd::Aborted => "ABORTED",
        RunEnd::Unfinished => "NOT FINISHED",
    }
}
