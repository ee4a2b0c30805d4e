//! Facts of a run: its targets, start, seed, and end.

use plimsoll_metrics::{RunEnd, RunMetadata, RunSummary, TargetInfo};

use crate::format;
use crate::run_screen::{load_seconds, load_time};
use crate::screen::Chapter;

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let run = &summary.metadata.run;
    let targets = summary.metadata.targets.iter().map(|target| ("target", Some(describe(target))));
    let mut chapter = Chapter::new("Run");
    chapter.list(targets.chain([
        ("started", Some(format::utc(run.started_unix_ns))),
        ("load", Some(whole_load_time(&summary.metadata))),
        ("seed", Some(run.seed.to_string())),
        ("shard", (run.shard != "0/1").then(|| run.shard.clone())),
        ("probe requests", (run.probes > 0).then(|| run.probes.to_string())),
        ("ended", Some(ended(run.ended).to_owned())),
        ("plimsoll", Some(run.tool_version.clone())),
    ]));
    chapter
}

/// How long the load was: what is measured, and the warm-up before it.
fn whole_load_time(metadata: &RunMetadata) -> String {
    let warmup = load_seconds(metadata, true);
    let load = load_time(metadata);
    if warmup > 0.0 { format!("{load} after {} of warm-up", format::seconds(warmup)) } else { load }
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
