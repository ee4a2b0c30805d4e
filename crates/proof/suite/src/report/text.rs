//! The report as text: the conclusion, the tables, the findings and bounds, how to repeat it.

use plimsoll_metrics::{Environment, Judgement};
use plimsoll_report::format::{bytes, wrap};
use plimsoll_report::printable;
use plimsoll_report::table::{Layout, Table};

use super::{Accepted, Report, Section, SuiteOutcome};
use crate::bound::BoundResult;
use crate::finding::{Finding, Tone};

/// The tables of a suite have long labels: the column of names is not cut below 20 characters.
const fn layout(width: usize) -> Layout {
    Layout { narrowest: 20, ..Layout::new(width) }
}

/// The largest number of gateway commands that are shown.
const MAX_GATEWAYS: usize = 2;

pub(super) fn render(report: &Report, width: usize) -> String {
    let mut page = Page { out: String::new(), width };
    page.hanging("", &format!("plimsoll suite {}: {}", report.suite, report.title));
    if report.debug_build {
        page.hanging(
            "",
            "!!! DEBUG BUILD: EVERY FIGURE BELOW IS MANY TIMES TOO SLOW. Build with --release. !!!",
        );
    }
    write_conclusion(&mut page, report);
    page.list("Environment", &environment(report));
    for section in &report.sections {
        page.section(section);
    }
    page.findings(&report.findings);
    page.bounds(&report.bounds);
    if let Some(sizing) = &report.sizing {
        page.section(sizing);
    }
    for reference in &report.references {
        page.section(reference);
    }
    page.bullets("Left out", &report.skipped);
    page.heading("To repeat it");
    page.hanging("  ", &report.command);
    if !report.settings.is_empty() {
        page.hanging("  ", &report.settings);
    }
    printable(&page.out).into_owned()
}

/// The verdict in a sentence.
pub(super) fn conclusion(report: &Report) -> String {
    match report.outcome(Accepted::default()) {
        SuiteOutcome::Pass => {
            "PASS: every measurement may be used, and every deciding bound is kept".to_owned()
        }
        SuiteOutcome::Complete => {
            "COMPLETE: every measurement may be used; this suite has no bound to pass or fail"
                .to_owned()
        }
        SuiteOutcome::Fail => "FAIL: a deciding bound is broken, see Bounds".to_owned(),
        SuiteOutcome::Inconclusive => inconclusive(report),
        SuiteOutcome::Interrupted => "INTERRUPTED: the measurements until then".to_owned(),
    }
}

/// What the marks before and behind figures mean.
pub(super) const MARKS: &str = "[>=] the load's own core was (partly) the bottleneck: the throughput is a lower bound; do not use: [INVALID] Plimsoll was too slow, [ERRORS] too many answers were not the expected ones, [NOT RUN], figures with ! (the generator's own part may be too large) or ? (too many requests had no end)";

fn write_conclusion(page: &mut Page, report: &Report) {
    page.hanging("", &conclusion(report));
    if report.outcome(Accepted::default()) == SuiteOutcome::Inconclusive {
        let doubts = report.doubts();
        for doubt in doubts.iter().take(MAX_DOUBTS) {
            page.hanging("  - ", doubt);
        }
        if doubts.len() > MAX_DOUBTS {
            let more = doubts.len() - MAX_DOUBTS;
            page.hanging("  - ", &format!("and {more} more, see Findings and Bounds"));
        }
    }
    if report.quick {
        page.hanging("", "--short: measurements of about a second each; the figures are rough");
    }
    page.hanging("", MARKS);
}

/// The most reasons that are shown first.
const MAX_DOUBTS: usize = 5;

fn inconclusive(report: &Report) -> String {
    let all = report.measurements.len();
    let unusable = report.measurements.iter().filter(|result| result.why_lacking().is_some());
    let busy = report.measurements.iter().filter(|result| result.busy_host().is_some());
    let deciding: Vec<_> = report.bounds.iter().filter(|bound| bound.decides).collect();
    let compared = report.comparisons.len();
    let not_compared = report.comparisons.iter().filter(|result| result.why_unusable().is_some());
    let parts = [
        (report.missing.len(), "left out for the target".to_owned()),
        (unusable.count(), format!("of {all} measurements must not be used")),
        (busy.count(), format!("of {all} measurements came from a busy host")),
        (not_compared.count(), format!("of {compared} comparisons must not be used")),
        (
            deciding
                .iter()
                .filter(|bound| matches!(bound.judgement, Judgement::Inconclusive(_)))
                .count(),
            format!("of {} deciding bounds could not be judged", deciding.len()),
        ),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let why = if parts.is_empty() { "nothing was measured".to_owned() } else { parts.join(", ") };
    format!("INCONCLUSIVE: {why}")
}

/// The machine and the gateway under test.
pub(super) fn environment(report: &Report) -> Vec<(String, String)> {
    let e: &Environment = &report.environment;
    let cores = e.cpu_count.map(|count| {
        let model = e.cpu_model.as_deref().unwrap_or("unknown CPU");
        let quota = e.cpu_quota.map(|quota| format!(", quota {quota:.2}")).unwrap_or_default();
        format!("{model}, {count} logical CPUs{quota}")
    });
    let steal = e.steal_share.map(|share| format!("{:.1}%", share * 100.0));
    let load = e.load_average.map(|(one, five, _)| format!("{one:.2} (1 min), {five:.2} (5 min)"));
    let tool = format!("plimsoll {}", env!("CARGO_PKG_VERSION"));
    let build = e.versions.get("build").map(|build| format!("{tool} ({build} build)"));
    let (gateways, mut lines): (Vec<_>, Vec<_>) =
        report.setup.iter().cloned().partition(|(name, _)| name.starts_with("gateway"));
    let more = gateways.len().saturating_sub(MAX_GATEWAYS);
    lines.extend(gateways.into_iter().take(MAX_GATEWAYS));
    if more > 0 {
        lines.push((String::new(), format!("and {more} more with other settings, see suite.json")));
    }
    let machine = [
        known_value("CPU", cores),
        known_value("memory", e.memory_bytes.map(|size| bytes(size as f64))),
        known_value("OS", e.kernel.clone()),
        known_value("load average", load),
        known_value("steal", steal),
        known_value("tool", build.or(Some(tool))),
        known_value("started", Some(report.started.clone())),
    ];
    lines.extend(machine.into_iter().flatten());
    lines
}

fn known_value(name: &str, value: Option<String>) -> Option<(String, String)> {
    value.map(|value| (name.to_owned(), value))
}

/// The text so far, and the width to wrap it to.
struct Page {
    out: String,
    width: usize,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn heading(&mut self, title: &str) {
        self.line("");
        self.hanging("", title);
    }

    /// A paragraph that starts after `lead`. Its further lines are indented by the width of `lead`.
    fn hanging(&mut self, lead: &str, text: &str) {
        let indent = " ".repeat(lead.chars().count());
        let lines = wrap(text, self.width.saturating_sub(indent.len()));
        for (number, line) in lines.iter().enumerate() {
            let lead = if number == 0 { lead } else { &indent };
            self.line(&format!("{lead}{line}"));
        }
    }

    fn list(&mut self, title: &str, items: &[(String, String)]) {
        self.heading(title);
        let width = items.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, value) in items {
            self.hanging(&format!("  {name:<width$}  "), value);
        }
    }

    fn bullets(&mut self, title: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.heading(title);
        for item in items {
            self.hanging("  - ", item);
        }
    }

    fn section(&mut self, section: &Section) {
        self.heading(&section.title);
        if !section.table.rows.is_empty() {
            let text = section.table.text(&layout(self.width));
            self.out.push_str(&text);
        }
        for note in &section.notes {
            self.hanging("  ", note);
        }
    }

    fn findings(&mut self, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.heading("Findings (each follows from the figures by rule)");
        for finding in findings {
            let mark = match finding.tone {
                Tone::Good => "  + ",
                Tone::Note => "  - ",
                Tone::Warning => "  ! ",
            };
            self.hanging(mark, &finding.text);
        }
    }

    fn bounds(&mut self, bounds: &[BoundResult]) {
        if bounds.is_empty() {
            return;
        }
        let mut table = Table::new(["Bounds", "Result", "Target", "Status"]);
        // One line for each reason: an invalid measurement leaves several bounds open.
        let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
        for bound in bounds {
            table.row([&*bound.what, &*bound.measured, &*bound.bound, bound.status()]);
            if let Judgement::Inconclusive(why) = &bound.judgement {
                match notes.iter_mut().find(|(known, _)| known == why) {
                    Some((_, bounds)) => bounds.push(&bound.what),
                    None => notes.push((why, vec![&bound.what])),
                }
            }
        }
        self.heading("Bounds (PASS and FAIL decide the exit code; met and missed are goals)");
        let text = table.text(&layout(self.width));
        self.out.push_str(&text);
        for (why, bounds) in notes {
            self.hanging("  ", &format!("{}: {why}", bounds.join("; ")));
        }
    }
}
