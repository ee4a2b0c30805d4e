//! The result of a suite: its main tables, the bounds, what stands out, and the verdict; and in its
//! file all tables, the environment, and how to repeat it.

use plimsoll_metrics::Judgement;
use plimsoll_report::format::count;
use plimsoll_report::screen::{Chapter, DEBUG_BUILD, Item, Rest, Rows, Screen, Tone};

use super::conclusion::conclusion;
use super::environment::environment;
use super::{Accepted, LEFT_OUT, Report, Section, SuiteOutcome};
use crate::bound::BoundResult;
use crate::finding;
use crate::finding::{Finding, Tone as FindingTone};

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

/// What the shares behind figures mean that prove nothing alone.
const LIMITS: &str =
    "(-N%) of a time may be the generator's, (+N%) of a rate it may have held back";

/// What the marks before and behind figures mean, and the words of bounds.
const MARKS: [&str; 4] = [
    "[>=] before a row: the load's own core was (partly) the bottleneck, and the throughput is a lower bound",
    ">= before a figure: requests without an end may make the time longer, or the generator may have held back as much again of the rate",
    "do not use: [INVALID] Plimsoll was too slow, [ERRORS] too many answers were not the expected ones, [NOT RUN]",
    "Bounds: PASS and FAIL decide the exit code, met and missed are goals. Findings: the sentences behind a !, and those that are good",
];

pub(super) fn from_report(report: &Report, rest: Rest) -> Screen {
    let mut screen = Screen::new(rest);
    let build = if report.debug_build { DEBUG_BUILD } else { "" };
    let quick = if report.quick { " (--short: rough figures)" } else { "" };
    screen.title(&format!("suite {}: {}{quick}{build}", report.suite, report.title));
    bounds(&mut screen, &report.bounds);
    screen.stands_out(stands_out(report));
    screen.fact(&accounting(report));
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
    screen.verdict(tone, &conclusion(report));
    screen
}

/// The bounds that decide, those that are broken first; then the goals.
fn bounds(screen: &mut Screen, bounds: &[BoundResult]) {
    let mut found: Vec<_> = bounds.iter().map(|bound| (tone_of_bound(bound), bound)).collect();
    found.sort_by_key(|(tone_of_bound, bound)| std::cmp::Reverse((bound.decides, *tone_of_bound)));
    let items = found.into_iter().map(|(tone, bound)| {
        let BoundResult { what, measured, bound: limit, .. } = bound;
        Item::judged(tone, bound.status(), &format!("{what}: {measured}, must be {limit}"))
    });
    screen.judged("", "bounds", items.collect(), LEAST_BOUNDS);
}

fn tone_of_bound(bound: &BoundResult) -> Tone {
    match (&bound.judgement, bound.decides) {
        (Judgement::Pass, _) => Tone::Good,
        (Judgement::Fail, true) => Tone::Bad,
        (Judgement::Fail, false) | (Judgement::Inconclusive(_), _) => Tone::Unsure,
    }
}

/// As many tables as there is room for, those of the load first; the others are counted, and
/// chapters of the file.
fn tables(screen: &mut Screen, report: &Report) {
    let (mut with_rows, without): (Vec<&Section>, Vec<&Section>) =
        report.sections.iter().partition(|section| !section.table.rows.is_empty());
    with_rows.sort_by_key(|section| section.before_load);
    let shown = (TABLE_LINES / (HEAD_LINES + LEAST_ROWS)).min(with_rows.len());
    let (shown, others) = with_rows.split_at(shown);
    for section in shown {
        let rows = Rows {
            table: section.table.clone(),
            notes: section.notes.clone(),
            unit: "rows",
            most: MOST_ROWS,
            drops_columns: true,
            drops_dashes: true,
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

/// What a file has below the tables.
fn chapters(screen: &mut Screen, report: &Report) {
    let good = findings_of(report, FindingTone::Good);
    sentences(screen, "Good findings", good.map(|found| &found.text));
    sentences(screen, "Bounds that could not be judged", open_bounds(&report.bounds));
    let other_tables = report.sizing.iter().chain(&report.references);
    other_tables.for_each(|section| screen.chapter(section.into()));
    sentences(screen, "Left out", &report.skipped);
    sentences(screen, "Marks and words", MARKS);
    sentences(screen, "To repeat it", [&report.command, &report.settings]);
    let mut chapter = Chapter::new("Environment");
    chapter.list(environment(report).into_iter().map(|(name, value)| (name, Some(value))));
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

/// One sentence for each reason: an invalid measurement leaves several bounds open.
fn open_bounds(bounds: &[BoundResult]) -> Vec<String> {
    let mut open: Vec<(&str, Vec<&str>)> = Vec::new();
    for bound in bounds {
        let Judgement::Inconclusive(why) = &bound.judgement else { continue };
        match open.iter_mut().find(|(known, _)| known == why) {
            Some((_, bounds)) => bounds.push(&bound.what),
            None => open.push((why, vec![&bound.what])),
        }
    }
    open.into_iter().map(|(why, bounds)| format!("{}: {why}", bounds.join("; "))).collect()
}

/// Why it neither passes nor fails, and what limits its figures.
fn stands_out(report: &Report) -> Vec<Item> {
    let is_open = report.outcome(Accepted::default()) == SuiteOutcome::Inconclusive;
    let doubts = if is_open { report.doubts() } else { Vec::new() };
    let mut results = report.measurements.iter();
    let is_disturbed = results.any(|one| one.is_only_invalid() || one.busy_host().is_some());
    let fix = if is_disturbed { REPEAT } else { "" };
    // What must not be used is among the doubts already.
    let warnings = findings_of(report, FindingTone::Warning).filter(|found| {
        !is_open || !(found.text.contains("INVALID, do not use") || doubts.contains(&found.text))
    });
    let warnings = warnings.map(|found| Item::new(Tone::Unsure, &found.text));
    let notes = findings_of(report, FindingTone::Note);
    let notes = notes.map(|found| Item::new(Tone::Good, &found.text));
    let doubts = doubts.iter().map(|doubt| {
        let fix = if doubt.starts_with(LEFT_OUT) { "" } else { fix };
        Item::new(Tone::Unsure, doubt).fix(fix)
    });
    let debug = "every figure is many times too slow: this is a debug build";
    let debug = report.debug_build.then(|| Item::new(Tone::Bad, debug).fix("build with --release"));
    let slow = "a release build compiles the reference gateway for a short build, not for speed";
    let slow = is_slow_gateway(report)
        .then(|| Item::new(Tone::Unsure, slow).fix("build with --profile dist"));
    debug.into_iter().chain(doubts).chain(slow).chain(warnings).chain(notes).collect()
}

fn findings_of(report: &Report, tone: FindingTone) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(move |found| found.tone == tone)
}

/// Whether what is measured is our own gateway, of a build for which `Cargo.toml` has it compiled
/// with few optimisations.
fn is_slow_gateway(report: &Report) -> bool {
    let build = report.environment.versions.get("build");
    build.is_some_and(|build| build == "release") && report.measures_reference()
}

/// How much was measured, and how much of it may be used.
fn accounting(report: &Report) -> String {
    let (results, compared) = (&report.measurements, &report.comparisons);
    let shown = |number: usize| count(u64::try_from(number).unwrap_or(u64::MAX));
    let usable = results.iter().filter(|result| result.why_unusable().is_none()).count();
    let past = results.iter().filter(|result| result.is_past_the_generator()).count();
    let sound = compared.iter().filter(|result| result.why_unusable().is_none()).count();
    let all = [
        (true, format!("{} of {} measurements may be used", shown(usable), shown(results.len()))),
        (past > 0, format!("{} loads were more than can be sent here", shown(past))),
        (
            !compared.is_empty(),
            format!("{} of {} comparisons", shown(sound), shown(compared.len())),
        ),
        (!report.skipped.is_empty(), format!("parts left out: {}", shown(report.skipped.len()))),
    ];
    let parts = all.into_iter().filter_map(|(is_said, part)| is_said.then_some(part));
    parts.collect::<Vec<_>>().join(", ")
}
