//! The result of a suite: its main tables, the bounds, what stands out, and the verdict; and in its
//! file all tables, the environment, and how to repeat it.

use plimsoll_metrics::Judgement;
use plimsoll_report::format::DASH;
use plimsoll_report::screen::{Chapter, DEBUG_BUILD, Item, Rest, Rows, Screen, Tone};
use plimsoll_report::table::Table;

use super::{Accepted, LEFT_OUT, Report, Section, SuiteOutcome, texts};
use crate::bound::BoundResult;
use crate::finding;
use crate::finding::{Finding, Tone as FindingTone};

/// Tables on a screen: further ones are only counted.
const TABLES: usize = 3;

/// The most rows of a table.
const MOST_ROWS: usize = 8;

/// Bounds that are left out last.
const LEAST_BOUNDS: usize = 2;

/// Advice for unusable measurements.
const REPEAT: &str = "repeat on an idle host, or with --duration and --passes";

/// Meaning of the marks on figures that prove nothing alone.
const LIMITS: &str = "(-N%): measurement error of a time; (+N%): the rate may be that much higher";

pub(super) fn from_report(report: &Report, rest: Rest) -> Screen {
    let mut screen = Screen::new(rest);
    let build = if report.debug_build { DEBUG_BUILD } else { "" };
    let quick = if report.quick { " (--short: rough figures)" } else { "" };
    screen.title(&format!("suite {}: {}{quick}{build}", report.suite, report.title));
    bounds(&mut screen, &report.bounds);
    screen.stands_out(stands_out(report));
    if finding::is_limited(&report.measurements) {
        screen.fact(LIMITS);
    }
    tables(&mut screen, report);
    chapters(&mut screen, report);
    let tone = match report.outcome(Accepted::default()) {
        SuiteOutcome::Pass | SuiteOutcome::Complete => Tone::Good,
        SuiteOutcome::Fail => Tone::Bad,
        SuiteOutcome::Inconclusive | SuiteOutcome::Interrupted => Tone::Unsure,
    };
    screen.verdict(tone, &report.conclusion());
    screen
}

/// The bounds that are broken; all of them are in a table of the file.
fn bounds(screen: &mut Screen, bounds: &[BoundResult]) {
    let broken = bounds.iter().filter(|bound| bound.decides && bound.judgement == Judgement::Fail);
    let items = broken.map(|bound| {
        let BoundResult { what, measured, bound: limit, .. } = bound;
        Item::judged(Tone::Bad, bound.status(), &format!("{what}: {measured}, must be {limit}"))
    });
    screen.judged("", "bounds", items.collect(), LEAST_BOUNDS);
}

/// A row for each figure: its target, and the limit beyond which it is critical. A band has both,
/// and a figure between the two is degraded.
fn bounds_table(bounds: &[BoundResult]) -> Section {
    let heads = ["Figure", "Result", "Target", "Reached", "Critical beyond", "Status"];
    let mut table = Table::new(heads);
    for (index, bound) in bounds.iter().enumerate() {
        let is_same = |other: &&BoundResult| other.what == bound.what;
        if bounds[..index].iter().any(|other| is_same(&other)) {
            continue;
        }
        let of = |decides| {
            let found = bounds.iter().filter(is_same).find(|other| other.decides == decides);
            let cells = found.map(|found| [&*found.bound, found.status()]);
            cells.unwrap_or([DASH; 2])
        };
        let (mut target, mut limit) = (of(false), of(true));
        if let Some(band) = limit[0].split_once('|') {
            (target[0], limit[0]) = band;
        }
        let cells = [&*bound.what, &*bound.measured].into_iter().chain(target).chain(limit);
        table.row(cells);
    }
    Section { title: "Bounds".to_owned(), table, ..Section::default() }
}

/// Adds as many tables as fit, tables of the load first; the others are counted as chapters of the
/// file.
fn tables(screen: &mut Screen, report: &Report) {
    let (mut with_rows, without): (Vec<&Section>, Vec<&Section>) =
        report.sections.iter().partition(|section| !section.table.rows.is_empty());
    with_rows.sort_by_key(|section| section.before_load);
    let (shown, others) = with_rows.split_at(TABLES.min(with_rows.len()));
    for section in shown {
        let rows = Rows {
            table: section.table.clone(),
            notes: section.notes.clone(),
            unit: "rows",
            most: MOST_ROWS,
            drops_columns: true,
            unusable: &["[INVALID]", "[ERRORS]"],
            ..Rows::default()
        };
        screen.rows(&section.title, rows);
    }
    screen.more(others.len(), "tables");
    others.iter().chain(&without).for_each(|section| screen.chapter((*section).into()));
}

impl From<&Section> for Chapter {
    fn from(section: &Section) -> Self {
        let mut chapter = Self::new(&section.title);
        chapter.table(&section.table);
        chapter.texts(&section.notes);
        chapter
    }
}

/// The parts of the file below the tables.
fn chapters(screen: &mut Screen, report: &Report) {
    let good = findings_of(report, FindingTone::Good);
    sentences(screen, "Good findings", good.map(|found| &found.text));
    screen.chapter((&bounds_table(&report.bounds)).into());
    let other_tables = report.sizing.iter().chain(&report.references);
    other_tables.for_each(|section| screen.chapter(section.into()));
    sentences(screen, "Left out", &report.skipped);
    let marks = texts::notes("Marks and words").into_iter();
    // Gateways are compared, without these marks.
    sentences(screen, "Marks and words", marks.filter(|_| report.gateways.is_none()));
    sentences(screen, "To repeat it", [&report.command, &report.settings]);
    let mut chapter = Chapter::new("Environment");
    chapter.list(report.environment_lines().into_iter().map(|(name, value)| (name, Some(value))));
    screen.chapter(chapter);
}

fn sentences(
    screen: &mut Screen,
    heading: &str,
    sentences: impl IntoIterator<Item = impl AsRef<str>>,
) {
    let mut chapter = Chapter::new(heading);
    chapter.texts(sentences);
    screen.chapter(chapter);
}

/// Unusable results, and limits on the figures.
fn stands_out(report: &Report) -> Vec<Item> {
    let mut results = report.measurements.iter();
    let is_disturbed = results.any(|one| one.is_only_invalid() || one.busy_host().is_some())
        || report.comparisons.iter().any(|one| one.busy_host.is_some());
    let fix = if is_disturbed { REPEAT } else { "" };
    let doubts = report.doubts().into_iter().map(|doubt| {
        let fix = if doubt.starts_with(LEFT_OUT) { "" } else { fix };
        Item::new(Tone::Unsure, &doubt).fix(fix)
    });
    let [warnings, notes] = [FindingTone::Warning, FindingTone::Note].map(|tone| {
        let item = if tone == FindingTone::Note { Tone::Good } else { Tone::Unsure };
        findings_of(report, tone).map(move |found| Item::new(item, &found.text))
    });
    let slow = "release build: the reference gateway is not optimized for speed";
    let slow = is_slow_gateway(report)
        .then(|| Item::new(Tone::Unsure, slow).fix("build with --profile dist"));
    doubts.chain(slow).chain(warnings).chain(notes).collect()
}

fn findings_of(report: &Report, tone: FindingTone) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(move |found| found.tone == tone)
}

/// Whether our own gateway was measured, in a build that `Cargo.toml` compiles with few
/// optimisations.
fn is_slow_gateway(report: &Report) -> bool {
    let build = report.environment.versions.get("build");
    build.is_some_and(|build| build == "release") && report.measures_reference()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_one_row_with_its_target_and_its_limit() {
        let bound = |what: &str, limit: &str, judgement, decides| {
            let bound = BoundResult::new(what, "9.00ms".to_owned(), limit.to_owned(), judgement);
            if decides { bound } else { bound.into_goal() }
        };
        let open = Judgement::Inconclusive("few".to_owned());
        let bounds = [
            bound("layer 1: p99", "< 100ms", Judgement::Pass, true),
            bound("errors", "< 1%", open, true),
            bound("layer 1: p99", "< 5ms", Judgement::Fail, false),
            bound("added", "< 20ms", Judgement::Pass, false),
            bound("p95", "p(95)<=10ms|20ms", Judgement::Pass, true),
        ];
        let rows = bounds_table(&bounds).table.rows;
        let expected = [
            ["layer 1: p99", "9.00ms", "< 5ms", "missed", "< 100ms", "PASS"],
            ["errors", "9.00ms", "-", "-", "< 1%", "inconclusive"],
            ["added", "9.00ms", "< 20ms", "met", "-", "-"],
            ["p95", "9.00ms", "p(95)<=10ms", "-", "20ms", "PASS"],
        ];
        assert_eq!(rows, expected);
    }
}
