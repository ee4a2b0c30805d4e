//! The chapters that only the file of a run has.

mod about;
mod accounting;
mod answers;
mod breakdown;
mod disturbed;
mod environment;
mod figure;
mod health;
mod intervals;
mod lengths;
mod load;
mod policy;
mod processes;
mod server_timing;
mod streams;
mod tasks;
mod times;

use plimsoll_metrics::{Group, Metric, RunSummary};

pub(super) use policy::sentence as policy_sentence;
pub(super) use tasks::{ends as task_ends, label as task_label};

use crate::screen::{Chapter, Screen};
use crate::shards::shard_table;

/// Adds every chapter of which there is anything.
pub(super) fn add(screen: &mut Screen, summary: &RunSummary) {
    screen.chapter(about::chapter(summary));
    screen.chapter(policy::chapter(summary));
    screen.chapter(tasks::chapter(summary));
    groups(screen, summary);
    screen.chapter(answers::chapter(&summary.results.total));
    screen.chapter(streams::chapter(summary));
    screen.chapter(shards(summary));
    screen.chapter(server_timing::chapter(summary));
    screen.chapter(accounting::chapter(summary));
    screen.chapter(processes::chapter(summary));
    screen.chapter(disturbed::chapter(&summary.health));
    screen.chapter(health::chapter(summary));
    screen.chapter(environment::chapter(&summary.metadata.environment));
}

/// The shards of a merged run; those that are unlike the others stand out.
fn shards(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Shards");
    if let Some(table) = shard_table(summary) {
        chapter.table(&table);
    }
    chapter
}

const WARMUP: &str = "Warm-up (in no total and no threshold)";

/// A label of a group, and the group.
type Labelled<'a> = (&'a str, &'a Group);

fn groups(screen: &mut Screen, summary: &RunSummary) {
    let shown = sections(summary);
    for (title, groups) in shown.iter().filter(|(_, groups)| !groups.is_empty()) {
        let mut chapter = Chapter::new(title);
        chapter.table(&load::table(groups, &summary.metadata.stages));
        chapter.table(&times::table(groups));
        chapter.table(&lengths::table(groups));
        figure::add_bounds(&mut chapter, groups);
        screen.chapter(chapter);
    }
    screen.chapter(breakdown::chapter(summary));
    let measured = shown.iter().filter(|(title, _)| *title != WARMUP);
    let measured: Vec<_> = measured.flat_map(|(_, groups)| groups).copied().collect();
    screen.chapter(intervals::chapter(summary, &measured));
    screen.chapter(marks(summary, &shown));
}

/// Explains the marks in the tables, if there are any.
fn marks(summary: &RunSummary, shown: &[(&str, Vec<Labelled<'_>>)]) -> Chapter {
    let groups = shown.iter().flat_map(|(_, groups)| groups.iter().map(|(_, group)| *group));
    let mut chapter = Chapter::new("Marks");
    if groups.clone().any(times::lacks_samples) {
        chapter.text(&times::footnote());
    }
    if groups.clone().any(|group| group.has_estimated_tokens(Metric::Tpot)) {
        chapter.text("~: the target reports no usage: content events were counted for tokens.");
    }
    chapter.texts(figure::footnotes(groups));
    if !summary.results.figures_of_generator().is_empty() {
        chapter.text(
            "(-12us): measurement error of a time. (+60): the rate may be that much higher without Plimsoll.",
        );
    }
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
        (WARMUP, warmups),
    ]
}

fn several(groups: Vec<Labelled<'_>>) -> Vec<Labelled<'_>> {
    if groups.len() > 1 { groups } else { Vec::new() }
}

fn labelled(groups: &[Group], label: impl Fn(&Group) -> Option<&str>) -> Vec<Labelled<'_>> {
    groups.iter().map(|group| (label(group).unwrap_or_default(), group)).collect()
}
