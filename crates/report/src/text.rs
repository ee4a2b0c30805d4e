//! `report.txt`: what a person reads. The order is that of the questions: may I believe it, what came
//! out, did it pass, where does it come from.

mod accounting;
mod environment;
mod errors;
mod format;
mod head;
mod headline;
mod health;
mod load;
mod paint;
mod table;
mod thresholds;
mod times;
mod verdict;

use plimsoll_metrics::{Group, RunSummary};

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
    verdict::write(&mut page, summary);
    headline::write(&mut page, summary);
    thresholds::write(&mut page, &summary.thresholds);
    groups(&mut page, summary);
    errors::write(&mut page, &summary.total);
    accounting::write(&mut page, summary);
    health::write(&mut page, &summary.health);
    environment::write(&mut page, &summary.environment);
    page.out
}

/// A label of a group, and the group.
type Labelled<'a> = (&'a str, &'a Group);

fn groups(page: &mut Page, summary: &RunSummary) {
    let stages = |warmup| {
        let wanted = summary.by_stage.iter().filter(move |group| group.warmup == warmup);
        wanted.map(|group| (group.stage.as_deref().unwrap_or_default(), group))
    };
    let scenarios: Vec<_> = labelled(&summary.by_scenario, |group| group.scenario.as_deref());
    let lanes: Vec<_> = labelled(&summary.by_lane, |group| group.lane.as_deref());
    let total = ("total", &summary.total);
    let mut shown: Vec<(&str, Vec<Labelled<'_>>)> =
        vec![("Stages", stages(false).chain([total]).collect())];
    if scenarios.len() > 1 {
        shown.push(("Scenarios", scenarios));
    }
    if lanes.len() > 1 {
        shown.push(("Lanes", lanes));
    }
    shown.push(("Warm-up (recorded apart, in no total and no threshold)", stages(true).collect()));
    for (title, groups) in shown.iter().filter(|(_, groups)| !groups.is_empty()) {
        load::write(page, title, groups, &summary.stages);
        times::write(page, groups);
    }
    if shown.iter().flat_map(|(_, groups)| groups).any(|(_, group)| times::refuses(group)) {
        page.note("-  there are fewer samples than this percentile needs: 20 for p50, 100 for p90, 200 for p95, 1,000 for p99, 10,000 for p99.9");
    }
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

    /// A paragraph, broken between words.
    fn paragraph(&mut self, indent: &str, text: &str) {
        for line in format::wrap(text, self.style.width.saturating_sub(indent.len())) {
            self.line(&format!("{indent}{line}"));
        }
    }

    /// A paragraph after an empty line.
    fn note(&mut self, text: &str) {
        self.line("");
        self.paragraph("", text);
    }

    /// `label   value` lines, the values in one column; what is unknown is left out.
    fn list(&mut self, items: &[(&str, Option<String>)]) {
        let width = items.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
        for (label, value) in items.iter().filter_map(|(label, v)| Some((label, v.as_ref()?))) {
            let mut lines =
                format::wrap(value, self.style.width.saturating_sub(width + 4)).into_iter();
            let first = lines.next().unwrap_or_default();
            self.line(&format!("  {label:<width$}  {first}"));
            lines.for_each(|line| self.line(&format!("  {:<width$}  {line}", "")));
        }
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if self.style.color { paint.on(text) } else { text.to_owned() }
    }
}
