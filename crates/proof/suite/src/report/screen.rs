//! The end of a suite on a screen: its main tables, the bounds, what stands out, and the verdict.

use plimsoll_metrics::Judgement;
use plimsoll_report::format::{DASH, count};
use plimsoll_report::screen::{DEBUG_BUILD, Item, Rest, Rows, Screen, Tone};
use plimsoll_report::table::Table;

use super::text::conclusion;
use super::{Accepted, Report, Section, SuiteOutcome};
use crate::bound::BoundResult;
use crate::finding::Tone as FindingTone;

/// Lines for the tables: of further ones only the titles are counted.
const TABLE_LINES: usize = 12;

/// A title and the headings of a table, and the rows that each table shows at least.
const HEAD_LINES: usize = 2;
const LEAST_ROWS: usize = 2;

/// The most rows of a table.
const MOST_ROWS: usize = 8;

/// Bounds that are left out last.
const LEAST_BOUNDS: usize = 2;

/// What to do about measurements that must not be used.
const REPEAT: &str = "repeat the suite on an idle host, or with --duration and --passes";

pub(super) fn from_report(report: &Report, rest: Rest) -> Screen {
    let mut screen = Screen::new(rest);
    let build = if report.debug_build { DEBUG_BUILD } else { "" };
    let quick = if report.quick { " (--short: rough figures)" } else { "" };
    screen.title(&format!("suite {}: {}{quick}{build}", report.suite, report.title));
    bounds(&mut screen, &report.bounds);
    tables(&mut screen, &report.sections);
    screen.stands_out(stands_out(report));
    screen.fact(&accounting(report));
    let tone = match report.outcome(Accepted::default()) {
        SuiteOutcome::Pass | SuiteOutcome::Complete => Tone::Good,
        SuiteOutcome::Fail => Tone::Bad,
        SuiteOutcome::Inconclusive | SuiteOutcome::Interrupted => Tone::Unsure,
    };
    screen.verdict(tone, &conclusion(report));
    screen
}

/// The bounds that decide, those that are broken first; then the goals.
fn bounds(screen: &mut Screen, bounds: &[BoundResult]) {
    let mut found: Vec<_> = bounds.iter().map(|bound| (tone_of_bound(bound), bound)).collect();
    found.sort_by_key(|(tone_of_bound, bound)| std::cmp::Reverse((bound.decides, *tone_of_bound)));
    screen.judged(
        "",
        "bounds",
        found
            .into_iter()
            .map(|(tone_of_bound, bound)| {
                let BoundResult { what, measured, bound: limit, .. } = bound;
                Item::judged(
                    tone_of_bound,
                    bound.status(),
                    &format!("{what}: {measured}, must be {limit}"),
                )
            })
            .collect(),
        LEAST_BOUNDS,
    );
}

fn tone_of_bound(bound: &BoundResult) -> Tone {
    match (&bound.judgement, bound.decides) {
        (Judgement::Pass, _) => Tone::Good,
        (Judgement::Fail, true) => Tone::Bad,
        (Judgement::Fail, false) | (Judgement::Inconclusive(_), _) => Tone::Unsure,
    }
}

/// As many tables as there is room for; the titles of the others are counted.
fn tables(screen: &mut Screen, sections: &[Section]) {
    let with_rows: Vec<_> = sections.iter().filter(|s| !s.table.rows.is_empty()).collect();
    let shown = (TABLE_LINES / (HEAD_LINES + LEAST_ROWS)).min(with_rows.len());
    for section in &with_rows[..shown] {
        let rows = Rows {
            table: usable(&section.table),
            unit: "rows",
            most: MOST_ROWS,
            drops_columns: true,
            drops_dashes: true,
            ..Rows::default()
        };
        screen.rows(&section.title, rows);
    }
    if with_rows.len() > shown {
        screen.fact(&format!("{} more tables in report.txt", with_rows.len() - shown));
    }
}

/// A table without the figures that must not be used, which end with a mark.
fn usable(table: &Table) -> Table {
    Table {
        head: table.head.clone(),
        rows: table
            .rows
            .iter()
            .map(|row| {
                row.iter()
                    .enumerate()
                    .map(|(column, cell)| match column {
                        0 => cell.clone(),
                        _ if cell.ends_with(['!', '?']) => DASH.to_owned(),
                        _ => cell.clone(),
                    })
                    .collect()
            })
            .collect(),
    }
}

/// Why it neither passes nor fails, and what limits its figures.
fn stands_out(report: &Report) -> Vec<Item> {
    let is_open = report.outcome(Accepted::default()) == SuiteOutcome::Inconclusive;
    let doubts = if is_open { report.doubts() } else { Vec::new() };
    let fixed = report
        .measurements
        .iter()
        .any(|result| result.is_only_invalid() || result.busy_host().is_some());
    let fix = if fixed { REPEAT } else { "" };
    let warnings = report.findings.iter().filter(|found| found.tone == FindingTone::Warning);
    // What must not be used is among the doubts already.
    let warnings = warnings.filter(|found| {
        !is_open || !(found.text.contains("INVALID, do not use") || doubts.contains(&found.text))
    });
    let warnings = warnings.map(|found| Item::new(Tone::Unsure, &found.text));
    let notes = report.findings.iter().filter(|found| found.tone == FindingTone::Note);
    let notes = notes.map(|found| Item::new(Tone::Good, &found.text));
    let doubts = doubts.iter().map(|doubt| Item::new(Tone::Unsure, doubt).fix(fix));
    doubts.chain(warnings).chain(notes).collect()
}

/// How much was measured, and how much of it may be used.
fn accounting(report: &Report) -> String {
    let all = report.measurements.len();
    let usable = report.measurements.iter().filter(|result| result.why_unusable().is_none());
    let mut parts = vec![format!(
        "{} of {} measurements may be used",
        shown_count(usable.count()),
        shown_count(all)
    )];
    let past = report.measurements.iter().filter(|result| result.is_past_the_generator()).count();
    if past > 0 {
        parts.push(format!("{} more than the generator can send here", shown_count(past)));
    }
    let compared = report.comparisons.len();
    if compared > 0 {
        let usable = report.comparisons.iter().filter(|result| result.why_unusable().is_none());
        parts.push(format!(
            "{} of {} comparisons",
            shown_count(usable.count()),
            shown_count(compared)
        ));
    }
    if !report.skipped.is_empty() {
        parts.push(format!("parts left out: {}", shown_count(report.skipped.len())));
    }
    parts.join(", ")
}

fn shown_count(count_of: usize) -> String {
    count(u64::try_from(count_of).unwrap_or(u64::MAX))
}
