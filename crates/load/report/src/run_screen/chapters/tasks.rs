//! The tasks of agents: how they ended, and how long they took.

use plimsoll_metrics::{CountFigures, QUANTILES, RunSummary, TaskGroup, TaskTime};

use super::times::headings;
use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Agent tasks");
    let groups = &summary.agent_tasks;
    chapter.texts(groups.iter().map(|group| format!("{}: {}", label(group), sentence(group))));
    let mut table = Table::new(headings());
    for group in groups {
        block(&mut table, group);
    }
    chapter.table(&table);
    if !groups.is_empty() {
        chapter.text(NOTE);
    }
    chapter
}

const NOTE: &str = "Times of tasks are those of tasks that are done; the first token is that of the \
    first answer. Loop time is from the intended start to the last byte of the last answer: chat, \
    tools and approvals of a task add up to it. Tasks at the bound and unfinished ones would have \
    taken longer: a figure that they could change is marked with ?.";

/// Its scenario, and its target where there are several.
pub(in crate::run_screen) fn label(group: &TaskGroup) -> String {
    match &group.target {
        Some(target) => format!("{} on {target}", group.scenario),
        None => group.scenario.clone(),
    }
}

/// Counts of the tasks in a sentence.
fn sentence(group: &TaskGroup) -> String {
    let totals = &group.totals;
    let counts = [totals.steps, totals.tool_calls, totals.tool_errors].map(format::count);
    let [steps, calls, errors] = counts;
    let mut parts = vec![format!("{steps} steps")];
    parts.push(match totals.tool_errors {
        0 => format!("{calls} tool calls"),
        _ => format!("{calls} tool calls, {errors} of them with isError"),
    });
    if totals.approvals > 0 {
        let counts = [totals.approvals, totals.approved, totals.rejected].map(format::count);
        let [asked, approved, rejected] = counts;
        parts.push(format!("{asked} approvals, {approved} approved, {rejected} rejected"));
    }
    if group.warmup > 0 {
        parts.push(format!("{} more tasks in warm-up", format::count(group.warmup)));
    }
    parts.join("; ")
}

/// How many tasks there were, and how they ended.
pub(in crate::run_screen) fn ends(group: &TaskGroup) -> String {
    let totals = &group.totals;
    let ends = [
        (totals.done, "done"),
        (totals.bound, "at the bound"),
        (totals.failed, "failed"),
        (totals.unfinished, "unfinished"),
    ];
    let ends = ends.iter().filter(|(count, _)| *count > 0);
    let ends: Vec<_> =
        ends.map(|(count, what)| format!("{} {what}", format::count(*count))).collect();
    let (started, failed) = (format::count(totals.started), failed_in(group));
    if ends.is_empty() {
        return format!("{started} tasks");
    }
    format!("{started} tasks: {}{failed}", ends.join(", "))
}

/// Where tasks failed, if any did.
fn failed_in(group: &TaskGroup) -> String {
    let parts: Vec<_> = group
        .failed_in
        .iter()
        .map(|(part, n)| format!("{} in {part}", format::count(*n)))
        .collect();
    if parts.is_empty() { String::new() } else { format!(" (failed: {})", parts.join(", ")) }
}

fn block(table: &mut Table, group: &TaskGroup) {
    table.row(vec![label(group)]);
    for time in TaskTime::ALL {
        let Some(times) = group.time(time) else { continue };
        let mut cells = vec![format!("  {}", time.title()), format::count(times.count)];
        cells.push(format::figure(Some(times.mean_figure())));
        cells.extend(QUANTILES.iter().map(|quantile| format::figure(times.figure(quantile))));
        cells.push(format::figure(Some(times.max_figure())));
        table.row(cells);
    }
    let counts = [("steps", group.steps_per_task), ("tool calls", group.tool_calls_per_task)];
    for (title, figures) in counts {
        if let Some(figures) = figures {
            table.row(counts_row(title, group.totals.done, &figures));
        }
    }
}

/// A row of counts per task, with the percentiles that are kept.
fn counts_row(title: &str, tasks: u64, figures: &CountFigures) -> Vec<String> {
    let mut cells = vec![format!("  {title}"), format::count(tasks), format::digits(figures.mean)];
    cells.extend(QUANTILES.iter().map(|quantile| match quantile.key {
        "p50" => figures.p50.to_string(),
        "p95" => figures.p95.to_string(),
        _ => String::new(),
    }));
    cells.push(figures.max.to_string());
    cells
}
