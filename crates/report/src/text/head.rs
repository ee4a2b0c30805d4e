//! What was run, against what, and how it ended.

use plimsoll_metrics::{Ended, LaneInfo, RunSummary};

use super::paint::Paint;
use super::{Page, format};

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    let run = &summary.run;
    let title = page.paint(Paint::Bold, &format!("plimsoll {}: {}", run.tool_version, run.name));
    page.line(&title);
    for lane in &summary.lanes {
        page.paragraph(2, &target(lane));
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

fn target(lane: &LaneInfo) -> String {
    let mut parts = vec![format!("{} -> {}", lane.name, lane.target)];
    parts.extend((!lane.model.is_empty()).then(|| format!("model {}", lane.model)));
    parts.extend(lane.server.iter().map(|server| format!("server {server}")));
    parts.join(", ")
}

const fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Complete => "complete",
        Ended::Interrupted => "INTERRUPTED: only what was measured until then",
        Ended::Aborted => "ABORTED",
        Ended::Unfinished => "NOT FINISHED",
    }
}
