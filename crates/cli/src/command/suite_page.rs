//! The page of a suite: from its report to what the page shows.

use plimsoll_metrics::Judgement;
use plimsoll_page::{Section, Suite, Tone, suite_page};
use plimsoll_report::table::Table;
use plimsoll_suite::{Accepted, Report, SuiteOutcome};

/// `report.html` of a suite.
pub(super) fn page(report: &Report) -> String {
    let tone = match report.outcome(Accepted::default()) {
        SuiteOutcome::Pass => Tone::Good,
        SuiteOutcome::Complete => Tone::Note,
        SuiteOutcome::Fail => Tone::Bad,
        SuiteOutcome::Inconclusive | SuiteOutcome::Interrupted => Tone::Warning,
    };
    let sections = report.sections.iter().chain(&report.sizing).chain(&report.references);
    let compared = report.comparisons.iter();
    suite_page(&Suite {
        name: &report.suite,
        title: &report.title,
        verdict: (tone, report.conclusion()),
        doubts: doubts(report),
        remarks: remarks(report),
        findings: report.findings.iter().map(|f| (tone_of(f.tone), &*f.text)).collect(),
        bounds: bounds(report),
        comparisons: compared.filter_map(|c| Some((&*c.label, c.versus.as_ref()?))).collect(),
        sections: sections.map(section).collect(),
        left_out: &report.skipped,
        environment: report.environment_lines(),
        marks: Report::marks(),
        command: &report.command,
    })
}

fn section(part: &plimsoll_suite::Section) -> Section<'_> {
    Section { title: &part.title, table: &part.table, notes: &part.notes }
}

fn doubts(report: &Report) -> Vec<String> {
    match report.outcome(Accepted::default()) {
        SuiteOutcome::Inconclusive => report.doubts(),
        _ => Vec::new(),
    }
}

fn remarks(report: &Report) -> Vec<String> {
    let debug = "DEBUG BUILD: every figure below is many times too slow. Build with --release.";
    let quick = "--short: measurements of about a second each; the figures are rough.";
    let remarks = [(report.debug_build, debug), (report.quick, quick)];
    remarks.into_iter().filter(|(is, _)| *is).map(|(_, text)| text.to_owned()).collect()
}

const fn tone_of(tone: plimsoll_suite::Tone) -> Tone {
    match tone {
        plimsoll_suite::Tone::Good => Tone::Good,
        plimsoll_suite::Tone::Note => Tone::Note,
        plimsoll_suite::Tone::Warning => Tone::Warning,
    }
}

/// The bounds as a table, and why some could not be judged.
fn bounds(report: &Report) -> Option<(String, Table, Vec<String>)> {
    if report.bounds.is_empty() {
        return None;
    }
    let mut table = Table::new(["bound", "result", "target", "status"]);
    // One line for each reason: an invalid measurement leaves several bounds open.
    let mut open: Vec<(&str, Vec<&str>)> = Vec::new();
    for bound in &report.bounds {
        table.row([&*bound.what, &*bound.measured, &*bound.bound, bound.status()]);
        if let Judgement::Inconclusive(why) = &bound.judgement {
            match open.iter_mut().find(|(known, _)| known == why) {
                Some((_, bounds)) => bounds.push(&bound.what),
                None => open.push((why, vec![&bound.what])),
            }
        }
    }
    let title = "Bounds: PASS and FAIL decide the exit code, met and missed are goals";
    let open = open.into_iter().map(|(why, bounds)| format!("{}: {why}", bounds.join("; ")));
    Some((title.to_owned(), table, open.collect()))
}
