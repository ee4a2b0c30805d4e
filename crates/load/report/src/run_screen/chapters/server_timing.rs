//! The parts of its time that the target states in its headers.

use plimsoll_measure::OTHER_PARTS;
use plimsoll_metrics::{Group, QUANTILES, RunSummary, ServerTiming};

use super::{labelled, several};
use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

/// A table of the parts, for all, each stage and each target, and what they leave of the time to
/// the first byte.
pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Times in the target's headers (its own word, not measured)");
    let results = &summary.results;
    let Some(all) = &results.total.server_timing else { return chapter };
    if !all.parts.is_empty() {
        let mut table = Table::new(["part", "requests", "mean", "p50", "p99"]);
        add_parts(&mut table, "", &results.total);
        let stages = labelled(&results.by_stage, |group| group.stage.as_deref());
        let stages = stages.into_iter().filter(|(_, group)| !group.warmup).collect();
        let targets = labelled(&results.by_target, |group| group.target.as_deref());
        for (label, group) in several(stages).into_iter().chain(several(targets)) {
            add_parts(&mut table, label, group);
        }
        chapter.table(&table);
    }
    chapter.texts(sentence(all));
    if all.parts.contains_key(OTHER_PARTS) {
        let other = "`other`: all names beyond the first 8 of the run, and one of this name.";
        chapter.text(other);
    }
    if all.refused > 0 {
        chapter.text(&refused(all));
    }
    chapter
}

fn add_parts(table: &mut Table, label: &str, group: &Group) {
    let Group { server_timing: Some(timing), .. } = group else { return };
    for (name, times) in &timing.parts {
        let [p50, p99] = [0, 3].map(|index| format::figure(times.figure(&QUANTILES[index])));
        table.row([
            format!("{label} {name}").trim_start().to_owned(),
            format::count(times.count),
            format::figure(Some(times.mean_figure())),
            p50,
            p99,
        ]);
    }
}

/// `Mean time to the first byte 12.3ms: gateway 2.10ms, upstream 9.00ms, network and rest
/// 1.20ms`.
fn sentence(timing: &ServerTiming) -> Option<String> {
    let whole = timing.mean_ttfb_ms()?;
    let parts = timing.means_ms().map(|(name, mean)| format!("{name} {}", format::time(mean)));
    let parts: Vec<_> = parts.collect();
    Some(format!(
        "Mean time to the first byte {}: {}, network and rest {} ({} responses).",
        format::time(whole),
        parts.join(", "),
        format::time(timing.rest_ms()),
        format::count(timing.responses)
    ))
}

fn refused(timing: &ServerTiming) -> String {
    format!(
        "{} responses have parts that cannot be true, and are left out: times that are no numbers, \
         names that are none, or more together than the time to the first byte.",
        format::count(timing.refused)
    )
}
