//! `report.txt`, the report for people. Its order: validity, headline figures, thresholds, details,
//! instrument, machine.

mod accounting;
mod bands;
mod breakdown;
mod disturbed;
mod environment;
mod errors;
mod figure;
mod header;
mod headline;
mod health;
mod intervals;
mod lengths;
mod load;
mod policy;
mod processes;
mod server;
mod server_timing;
mod streams;
mod tasks;
mod thresholds;
mod times;
mod validity;

use plimsoll_metrics::{Group, Metric, RunSummary};

use crate::color::Color;
use crate::escape::printable;
use crate::shards::{odd_shards, shard_table};
use crate::{format, load_levels, table};

pub(crate) use bands::measured as band_measured;
pub(crate) use header::load_time;
pub(crate) use headline::{goodput, requests};
pub(crate) use load::tokens;
pub(crate) use policy::sentence as policy_sentence;
pub(crate) use streams::sentences as stream_sentences;
pub(crate) use tasks::{ends as task_ends, label as task_label};
pub(crate) use thresholds::measured as threshold_measured;
pub(crate) use validity::valid as valid_words;

/// How the text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns; tables need about 100.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub color: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 120, color: false }
    }
}

/// Renders a summary.
pub fn text(summary: &RunSummary, style: Style) -> String {
    let mut page = Page { out: String::new(), style };
    header::write(&mut page, summary);
    validity::write(&mut page, summary);
    headline::write(&mut page, summary);
    thresholds::write(&mut page, &summary.thresholds);
    bands::write(&mut page, summary);
    policy::write(&mut page, summary);
    tasks::write(&mut page, summary);
    groups(&mut page, summary);
    errors::write(&mut page, &summary.results.total);
    shards(&mut page, summary);
    server::write(&mut page, &summary.results.total);
    server_timing::write(&mut page, summary);
    accounting::write(&mut page, summary);
    processes::write(&mut page, summary);
    disturbed::write(&mut page, &summary.health);
    health::write(&mut page, summary);
    environment::write(&mut page, &summary.metadata.environment);
    printable(&page.out).into_owned()
}

/// The shards of a merged run, and those that are unlike the others.
fn shards(page: &mut Page, summary: &RunSummary) {
    let Some(table) = shard_table(summary) else { return };
    page.heading("Shards");
    page.table(&table);
    for sentence in odd_shards(summary) {
        page.paragraph(2, &sentence);
    }
}

/// Of a text below its lead.
const INDENT_BELOW: usize = 6;

const WARMUP: &str = "Warm-up (in no total and no threshold)";

/// A label of a group, and the group.
type Labelled<'a> = (&'a str, &'a Group);

fn groups(page: &mut Page, summary: &RunSummary) {
    let shown = sections(summary);
    for (title, groups) in shown.iter().filter(|(_, groups)| !groups.is_empty()) {
        load::write(page, title, groups, &summary.metadata.stages);
        times::write(page, groups);
        lengths::write(page, groups);
        figure::write_bounds(page, groups);
    }
    if let Some(sentence) = load_levels::sentence(summary) {
        page.note(&sentence);
    }
    breakdown::write(page, summary);
    let measured = shown.iter().filter(|(title, _)| *title != WARMUP);
    let measured: Vec<_> = measured.flat_map(|(_, groups)| groups).copied().collect();
    intervals::write(page, summary, &measured);
    if shown.iter().flat_map(|(_, groups)| groups).any(|(_, group)| times::lacks_samples(group)) {
        page.note(&times::footnote());
    }
    let all = shown.iter().flat_map(|(_, groups)| groups.iter().map(|(_, group)| *group));
    if all.clone().any(|group| group.has_estimated_tokens(Metric::Tpot)) {
        page.note("~: the target reports no usage: content events were counted for tokens.");
    }
    if let Some(note) = figure::footnote(all) {
        page.note(&note);
    }
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

/// The text written so far.
struct Page {
    out: String,
    style: Style,
}

impl Page {
    /// Adds a line.
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// Adds a heading after an empty line.
    fn heading(&mut self, title: &str) {
        let title = self.color(Color::Bold, title);
        self.line("");
        self.line(&title);
    }

    /// Adds a paragraph, broken between words and indented.
    fn paragraph(&mut self, indent: usize, text: &str) {
        self.hang(&" ".repeat(indent), indent, text);
    }

    /// Adds a paragraph after an empty line.
    fn note(&mut self, text: &str) {
        self.line("");
        self.paragraph(0, text);
    }

    /// Adds a paragraph that begins with `lead`. Its further lines are indented by `width`, the
    /// visible width of the lead. Behind a lead that takes most of the page it begins below it.
    fn hang(&mut self, lead: &str, width: usize, text: &str) {
        if width * 3 > self.style.width * 2 {
            self.line(lead);
            self.paragraph(INDENT_BELOW, text);
            return;
        }
        let lines = format::wrap(text, self.style.width.saturating_sub(width));
        for (index, line) in lines.iter().enumerate() {
            let indent = if index == 0 { lead.to_owned() } else { " ".repeat(width) };
            self.line(&format!("{indent}{line}"));
        }
    }

    /// A table.
    fn table(&mut self, table: &table::Table) {
        for line in table.lines(&table::Layout::new(self.style.width)) {
            self.line(&line);
        }
    }

    /// Adds `label   value` lines with the values in one column; unknown values are left out.
    fn list(&mut self, items: &[(&str, Option<String>)]) {
        let width = items.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
        for (label, value) in items.iter().filter_map(|(label, v)| Some((label, v.as_ref()?))) {
            self.hang(&format!("  {label:<width$}  "), width + 4, value);
        }
    }

    fn color(&self, color: Color, text: &str) -> String {
        if self.style.color { color.wrap(text) } else { text.to_owned() }
    }
}
