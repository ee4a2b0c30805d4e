//! `report.txt`: what a person reads. The order is that of the questions: may I believe it, what came
//! out, did it pass, where does it come from.

mod accounting;
mod bands;
mod cells;
mod environment;
mod errors;
mod head;
mod headline;
mod health;
mod intervals;
mod load;
mod paint;
mod policy;
mod processes;
mod thresholds;
mod times;
mod validity;

use plimsoll_metrics::{Group, RunSummary};

use crate::{format, table};
use paint::Paint;

/// How the text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns; tables need about 100.
    pub width: usize,
    /// With ANSI colours?
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
    head::write(&mut page, summary);
    validity::write(&mut page, summary);
    headline::write(&mut page, summary);
    thresholds::write(&mut page, &summary.thresholds);
    bands::write(&mut page, summary);
    policy::write(&mut page, summary);
    groups(&mut page, summary);
    errors::write(&mut page, &summary.total);
    accounting::write(&mut page, summary);
    processes::write(&mut page, summary);
    health::write(&mut page, &summary.health);
    environment::write(&mut page, &summary.environment);
    page.out
}

const WARMUP: &str = "Warm-up (recorded apart, in no total and no threshold)";

/// A label of a group, and the group.
type Labelled<'a> = (&'a str, &'a Group);

fn groups(page: &mut Page, summary: &RunSummary) {
    let shown = sections(summary);
    for (title, groups) in shown.iter().filter(|(_, groups)| !groups.is_empty()) {
        load::write(page, title, groups, &summary.stages);
        times::write(page, groups);
    }
    cells::write(page, summary);
    let measured = shown.iter().filter(|(title, _)| *title != WARMUP);
    let measured: Vec<_> = measured.flat_map(|(_, groups)| groups).copied().collect();
    intervals::write(page, summary, &measured);
    if shown.iter().flat_map(|(_, groups)| groups).any(|(_, group)| times::refuses(group)) {
        page.note(&times::footnote());
    }
}

/// What is shown in full, each under its title. What would only repeat the total is left out.
fn sections(summary: &RunSummary) -> Vec<(&'static str, Vec<Labelled<'_>>)> {
    let stages = labelled(&summary.by_stage, |group| group.stage.as_deref());
    let (warmups, mut stages): (Vec<_>, Vec<_>) =
        stages.into_iter().partition(|(_, group)| group.warmup);
    if stages.len() > 1 {
        stages.push(("total", &summary.total));
    }
    let scenarios = labelled(&summary.by_scenario, |group| group.scenario.as_deref());
    let categories = labelled(&summary.by_category, |group| group.category.as_deref());
    let targets = labelled(&summary.by_target, |group| group.target.as_deref());
    vec![
        ("Stages", stages),
        ("Scenarios", several(scenarios)),
        ("Categories", categories),
        ("Targets", several(targets)),
        (WARMUP, warmups),
    ]
}

fn several(groups: Vec<Labelled<'_>>) -> Vec<Labelled<'_>> {
    if groups.len() > 1 { groups } else { Vec::new() }
}

fn labelled(groups: &[Group], label: impl Fn(&Group) -> Option<&str>) -> Vec<Labelled<'_>> {
    groups.iter().map(|group| (label(group).unwrap_or_default(), group)).collect()
}

/// The text so far.
struct Page {
    out: String,
    style: Style,
}

impl Page {
    /// A line as it is.
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// A heading, after an empty line.
    fn heading(&mut self, title: &str) {
        let title = self.paint(Paint::Bold, title);
        self.line("");
        self.line(&title);
    }

    /// A paragraph, broken between words and indented.
    fn paragraph(&mut self, indent: usize, text: &str) {
        self.hang(&" ".repeat(indent), indent, text);
    }

    /// A paragraph after an empty line.
    fn note(&mut self, text: &str) {
        self.line("");
        self.paragraph(0, text);
    }

    /// A paragraph whose further lines are indented by the `width` that its lead shows on the page.
    fn hang(&mut self, lead: &str, width: usize, text: &str) {
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

    /// `label   value` lines, the values in one column; what is unknown is left out.
    fn list(&mut self, items: &[(&str, Option<String>)]) {
        let width = items.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
        for (label, value) in items.iter().filter_map(|(label, v)| Some((label, v.as_ref()?))) {
            self.hang(&format!("  {label:<width$}  "), width + 4, value);
        }
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if self.style.color { paint.on(text) } else { text.to_owned() }
    }
}
