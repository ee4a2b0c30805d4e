//! The screen at the end of a comparison: urgent findings, the targets with their headline
//! differences, and the verdict.

use plimsoll_measure::PolicyDecision;
use plimsoll_metrics::confusion_matrix::UNANSWERED;
use plimsoll_metrics::{BoundedFigure, Judgement, Refusal, RunSummary};
use plimsoll_report::screen::{Chapter, Item, Rest, Rows, Screen, Tone, debug_build};
use plimsoll_report::table::Table;
use plimsoll_report::{finding_item, format, run_notes};
use plimsoll_rules::{Finding, Level};
use plimsoll_stats::runs::failures_one_in;

use super::{blocks, ended, title};
use crate::claims::FAILURES;
use crate::conclusion::Conclusion;
use crate::figure::Figure;
use crate::result::{Claim, Difference, Kind, OVERLOAD, Role, TargetResult, Versus};
use crate::streams::Streams;

/// The heading of [`LIMITS`].
pub const NOT_SHOWN: &str = "What this does not show";

/// Limits of every comparison of targets, a paragraph each.
pub const LIMITS: &str = include_str!("limits.txt");

/// Number of findings that are always shown.
const LEAST: usize = 1;

/// Number of targets that are shown even without room: eight gateways and their references.
const LEAST_TARGETS: usize = 10;

/// Maximum number of targets shown.
const MOST: usize = 12;

/// The screen of a comparison. `summary` belongs to its last run, and `rest` names the full report.
pub fn screen(versus: &Versus, summary: &RunSummary, rest: Rest) -> Screen {
    let mut screen = Screen::new(rest);
    let build = debug_build(&summary.metadata.environment);
    screen.title(&format!("{}{build}", title(versus)));
    let (urgent, others): (Vec<&Finding>, Vec<&Finding>) =
        versus.findings.iter().partition(|finding| is_urgent(finding));
    let invalid = versus.invalid.iter().map(|why| Item::new(Tone::Bad, &format!("INVALID: {why}")));
    let urgent: Vec<_> = invalid.chain(urgent.into_iter().map(finding_item)).collect();
    let count = urgent.len();
    screen.judged("", "warnings", urgent, count);
    bounds(&mut screen, versus);
    targets(&mut screen, versus);
    rounds(&mut screen, versus);
    claims(&mut screen, versus);
    let of_each: Vec<_> = versus.targets.iter().map(|one| (one.name.clone(), one)).collect();
    for (heading, table) in [
        ("Every figure", times_table(versus)),
        ("Failures and streams", failures_and_streams(&of_each)),
        ("Policy decisions", decisions(versus)),
        ("Tested differences", tested(versus)),
        ("Times that targets report in headers", stated(versus)),
    ] {
        let mut chapter = Chapter::new(heading);
        chapter.table(&table);
        screen.chapter(chapter);
    }
    let mut chapter = Chapter::new(NOT_SHOWN);
    chapter.texts(LIMITS.split_terminator('\n'));
    screen.chapter(chapter);
    screen.stands_out(stands_out(versus, summary, &others));
    screen.fact(&blocks(versus));
    if let Some(stopping) = &versus.stopping {
        screen.fact(&ended(versus, stopping));
    }
    let tone = match versus.conclusion(summary, false) {
        Conclusion::Invalid(_) | Conclusion::Fail(_) => Tone::Bad,
        Conclusion::Pass => Tone::Good,
        Conclusion::Interrupted | Conclusion::Inconclusive(_) | Conclusion::OtherAnswers => {
            Tone::Unsure
        }
    };
    screen.verdict(tone, &versus.last_line(summary));
    screen
}

/// Whether a finding goes above all figures: an outage, an overload, more failures, or different
/// answers.
fn is_urgent(finding: &Finding) -> bool {
    finding.level == Level::Fail || [OVERLOAD, 401, 403].contains(&finding.code)
}

/// The table of the targets: their own times, and their overhead over the reference.
fn targets(screen: &mut Screen, versus: &Versus) {
    let (headline, reference) = (versus.headline, versus.reference());
    // The control is the first to be left out.
    let (control, other): (Vec<usize>, Vec<usize>) =
        (0..versus.targets.len()).partition(|row| versus.targets[*row].role == Role::Control);
    let rows = Rows {
        table: targets_table(versus),
        unit: "targets",
        first: other.into_iter().chain(control).collect(),
        most: MOST,
        least: LEAST_TARGETS,
        drops_columns: true,
        ..Rows::default()
    };
    let figure = headline.title();
    let added = format!("added: difference to {reference} [95 % interval]");
    let notation = "per s: responses while loaded; (-x): up to x less without Plimsoll";
    screen.rows(&[figure, &added, notation].join("; "), rows);
}

/// The headline figure by round, with the last round first if there is not room for all.
fn rounds(screen: &mut Screen, versus: &Versus) {
    let mut table = Table::new(["", "p50", "added, median", "failed"]);
    let shown = versus.by_round.iter().filter(|row| row.target != versus.reference());
    for row in shown {
        let added = row.added_ns.map(|all| all.map(|nanos| nanos / 1e6));
        table.row([
            format!("{} {}", row.round, row.target),
            format::time_or_dash(row.p50_ns.map(|nanos| nanos / 1e6)),
            format::or_dash(added, |[value, low, high]| format::difference(value, low, high)),
            format::count(row.failed),
        ]);
    }
    let first = (0..table.rows.len()).rev().collect();
    let rows = Rows { table, unit: "rows", first, most: usize::MAX, ..Rows::default() };
    screen.rows(&format!("{} by round", versus.headline.title()), rows);
}

/// Thresholds and the margin, failed ones first.
fn bounds(screen: &mut Screen, versus: &Versus) {
    let mut found: Vec<(Tone, &str, String)> = Vec::new();
    found.extend(versus.thresholds.iter().map(|threshold| {
        let every = threshold.of_every_value().map(str::to_owned);
        let measured = every.unwrap_or_else(|| format::time_or_dash(threshold.measured));
        let what = format!("{} {}: {measured}", threshold.metric, threshold.expression);
        match &threshold.judgement {
            Judgement::Pass => (Tone::Good, "PASS", what),
            Judgement::Fail => (Tone::Bad, "FAIL", what),
            Judgement::Inconclusive(why) => {
                (Tone::Unsure, "INCONCLUSIVE", format!("{what}; {why}"))
            }
        }
    }));
    found.extend(versus.worse_than_margin.iter().map(|why| (Tone::Bad, "FAIL", why.clone())));
    found.extend(versus.margin_unknown.iter().map(|w| (Tone::Unsure, "INCONCLUSIVE", w.clone())));
    let is_open = found.len() > versus.thresholds.len() || !versus.invalid.is_empty();
    found.extend(versus.margin.filter(|_| !is_open).map(|share| {
        let limit = format::percent(share);
        let what = format!("no target is worse than the best one by more than {limit}");
        (Tone::Good, "PASS", what)
    }));
    found.sort_by_key(|(tone, ..)| std::cmp::Reverse(*tone));
    screen.judged(
        "",
        "bounds",
        found
            .iter()
            .map(|(tone, word, what): &(Tone, &str, String)| Item::judged(*tone, word, what))
            .collect(),
        LEAST,
    );
}

/// Significant differences; none if the comparison is invalid.
fn claims(screen: &mut Screen, versus: &Versus) {
    let times = versus.claims.iter().filter(|claim| claim.holds);
    let items: Vec<_> = times
        .map(Claim::finding)
        .filter(|finding| finding.code == 404)
        .map(|finding| Item::judged(Tone::Good, "", &finding.text()))
        .collect();
    let rounds = match versus.rounds {
        0 | 1 => String::new(),
        rounds => format!(", over {rounds} rounds"),
    };
    let tested = versus.claims.len();
    let s = if tested == 1 { "" } else { "s" };
    let heading =
        format!("Statistically significant (5 %, corrected for {tested} comparison{s}){rounds}:");
    screen.judged(&heading, "differences", items, LEAST);
}

fn stands_out(versus: &Versus, summary: &RunSummary, findings: &[&Finding]) -> Vec<Item> {
    // The verdict already says why the comparison is invalid.
    let findings = findings.iter().filter(|finding| finding.level != Level::Invalid);
    let reasons = reasons(versus, &[versus.headline]);
    let reasons = reasons.iter().map(|why| Item::new(Tone::Unsure, &format!("-: {why}")));
    let dropped = versus.targets.iter().filter_map(|target| {
        let text = format!("{} was dropped {}", target.name, target.taken_out.as_ref()?);
        Some(Item::new(Tone::Unsure, &text))
    });
    let findings = dropped.chain(findings.map(|finding| finding_item(finding)));
    // Outages and overloads are already above, next to the compared requests. The measurement error
    // of each target is in the table; that of all their requests together is nobody's, and neither
    // are their percentiles and rates.
    let mut run = summary.clone();
    run.findings
        .retain(|finding| ![102, 201, OVERLOAD].contains(&finding.code) && finding.code / 100 != 6);
    let round = format!("round {}", versus.rounds);
    let notes = run_notes(&run).into_iter();
    let notes = notes.map(|note| if versus.rounds > 1 { note.named(&round) } else { note });
    findings.chain(reasons).chain(notes).collect()
}

// All tables except times.

/// A column: its heading, and the cell of a target that has a value.
type Column = (&'static str, fn(&Versus, &TargetResult) -> Option<String>);

/// Columns without a value for any target are omitted. A narrow screen omits the last ones.
const COLUMNS: [Column; 14] = [
    ("failed", |_, target| Some(failed(target))),
    ("p50", |versus, target| Some(own(target, versus.headline)[0].clone())),
    ("added, median", |versus, target| Some(added_to(versus, target)[0].clone())),
    ("streams", |_, target| target.streams.map(|streams| streams.cell())),
    ("rank", |versus, target| {
        versus.ranks().get(&*target.name).map(|(best, worst)| format::rank(*best, *worst))
    }),
    ("p95", |versus, target| Some(own(target, versus.headline)[1].clone())),
    (TAIL, |versus, target| Some(added_to(versus, target)[1].clone())),
    ("per s", |_, target| target.throughput.map(format::digits)),
    ("CPU/req", |_, target| target.cpu_ns_per_request.map(|nanos| format::time(nanos / 1e6))),
    ("turns", |_, target| Some(format::count(target.turns))),
    ("correct", |_, target| target.correct.map(format::share)),
    ("memory", |_, target| target.memory_bytes.map(|bytes| format::bytes(bytes as f64))),
    ("reused", |_, target| target.reused.map(format::share)),
    ("sent late", |_, target| target.dispatch_lag_p99_ns.map(|nanos| format::time(nanos / 1e6))),
];

/// The column of the rarest percentile, whose heading depends on the sample size.
const TAIL: &str = "tail";

fn targets_table(versus: &Versus) -> Table {
    let names =
        COLUMNS.iter().map(|(name, _)| if *name == TAIL { tail_title(versus) } else { name });
    let mut table = Table::new(["target"].into_iter().chain(names));
    for target in &versus.targets {
        let cells =
            COLUMNS.iter().map(|(_, cell)| format::or_dash(cell(versus, target), |cell| cell));
        table.row(std::iter::once(target.name.clone()).chain(cells));
    }
    table.with_content()
}

/// The overhead in the headline figure; empty for the reference.
fn added_to(versus: &Versus, target: &TargetResult) -> [String; 2] {
    let is_reference = target.name == versus.reference();
    if is_reference { Default::default() } else { added(versus, target, versus.headline) }
}

/// Number of failed turns and their cause: `210 connect_refused`.
pub(super) fn failed(target: &TargetResult) -> String {
    let mut kinds: Vec<_> = target.failures.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    match kinds[..] {
        [] => format::count(target.failed),
        [(word, _)] => format!("{} {word}", format::count(target.failed)),
        [(word, most), ..] => {
            let (all, most) = (format::count(target.failed), format::count(*most));
            format!("{all} ({most} {word})")
        }
    }
}

/// Failures of named targets, and the shapes of their streams.
pub fn failures_and_streams(targets: &[(String, &TargetResult)]) -> Table {
    let shapes = Streams::default().shapes().map(|(shape, _)| shape);
    let mut table = Table::new(["target", "turns", "failed", "streams"].into_iter().chain(shapes));
    for (name, target) in targets {
        let cells = [name.clone(), format::count(target.turns), failed(target)];
        let counts = target.streams.map(|streams| {
            let shapes = streams.shapes().map(|(_, count)| count);
            std::iter::once(streams.begun).chain(shapes).map(format::count).collect()
        });
        table.row(cells.into_iter().chain(counts.unwrap_or_else(Vec::new)));
    }
    table
}

/// Confusion matrix of each target.
pub(super) fn decisions(versus: &Versus) -> Table {
    let words = PolicyDecision::ALL.map(PolicyDecision::name);
    let head = ["", "expected"].into_iter().chain(words).chain([UNANSWERED, "correct"]);
    let mut table = Table::new(head);
    for target in versus.verdicts.iter().flat_map(|verdicts| &verdicts.matrix) {
        for (expected, row) in &target.turns {
            let count = |word: &str| row.get(word).copied().unwrap_or_default();
            let answered: u64 = words.into_iter().map(count).sum();
            let correct = (answered > 0).then(|| count(expected) as f64 / answered as f64);
            let counts =
                words.into_iter().chain([UNANSWERED]).map(|word| format::count(count(word)));
            let cells = [target.target.clone(), expected.clone()].into_iter().chain(counts);
            table.row(cells.chain([format::share_of(correct)]));
        }
    }
    table
}

/// All tested differences, and the smallest detectable ones.
pub(super) fn tested(versus: &Versus) -> Table {
    let head =
        ["", "against", "figure", "difference", "p", "measurement error", "detectable (80 %)"];
    let mut table = Table::new(head);
    for claim in &versus.claims {
        let Claim { target, reference, about, figure, p_holm, .. } = claim;
        let figure = if about == FAILURES { about } else { figure };
        let found = versus.difference(target, reference, versus.headline, Kind::Added, "p50");
        let found = found.filter(|_| about == versus.headline.name());
        let error = found.and_then(|found| found.generator_ns);
        let detectable = match found {
            Some(found) => {
                found.detectable_ns(versus.looks()).map(|nanos| format::time(nanos / 1e6))
            }
            None if about == FAILURES => failures_one_in(claim.counts[2], versus.looks())
                .map(|one_in| format!("1 in {}", format::digits(one_in))),
            None => None,
        };
        table.row([
            target.clone(),
            reference.clone(),
            figure.clone(),
            claim.difference(),
            format::p_value(*p_holm).trim_start_matches("p ").to_owned(),
            format::or_dash(error, |nanos| format::time(nanos / 1e6)),
            format::or_dash(detectable, |cell| cell),
        ]);
    }
    table
}

/// Times that targets report themselves, and that Plimsoll did not measure.
pub(super) fn stated(versus: &Versus) -> Table {
    let mut table = Table::new(["", "header", "mean", "answers"]);
    for (target, stated) in versus.targets.iter().filter_map(|t| Some((t, t.stated.as_ref()?))) {
        for (name, mean) in &stated.mean_ns {
            let (mean, answers) = (format::time(mean / 1e6), format::count(stated.responses));
            table.row([target.name.clone(), name.clone(), mean, answers]);
        }
    }
    table
}

// The table of times: each target's own, its overhead, and the shift of its tail.

/// Each target's own times in every figure, its overhead, and the shift of its tail.
pub(super) fn times_table(versus: &Versus) -> Table {
    let mut table = Table::new(["", "p50", "p95", "added, median", tail_title(versus)]);
    for figure in shown(versus) {
        table.row([figure.title()]);
        for target in &versus.targets {
            let [p50, p95] = own(target, figure);
            let [added, tail] = added(versus, target, figure);
            table.row([format!("  {}", target.name), p50, p95, added, tail]);
        }
    }
    table
}

/// The figures of the table: the headline, and others that the targets have. Response and service
/// time exclude each other: only the one for the whole request is shown.
fn shown(versus: &Versus) -> Vec<Figure> {
    let other = match versus.whole {
        Figure::ServiceTime => Figure::ResponseTime,
        _ => Figure::ServiceTime,
    };
    let rest = Figure::ALL.into_iter().filter(|figure| *figure != versus.headline);
    let rest = rest.filter(|figure| *figure != other).filter(|figure: &Figure| {
        versus.targets.iter().any(|target| target.own(*figure).is_some_and(|own| own.count > 0))
    });
    std::iter::once(versus.headline).chain(rest).collect()
}

/// The heading of the shift of the rarest percentile that the samples give.
pub(super) fn tail_title(versus: &Versus) -> &'static str {
    match versus.tail() {
        Some("p95") => "p95 shift",
        _ => "p99 shift",
    }
}

/// Median and 95th percentile of a target, with their limits.
pub(super) fn own(target: &TargetResult, figure: Figure) -> [String; 2] {
    limited(target, figure).map(format::limited_time)
}

/// Unfinished turns count as the longest: if the percentile is one of them, only its lower bound is
/// known.
fn limited(target: &TargetResult, figure: Figure) -> [Option<BoundedFigure>; 2] {
    let Some(own) = target.own(figure) else { return [None; 2] };
    let endless: u64 =
        ["in_flight", "timed_out"].into_iter().filter_map(|word| target.failures.get(word)).sum();
    let all = (own.count + endless) as f64;
    [(0.5, own.p50_ns, own.p50_between_ns), (0.95, own.p95_ns, own.p95_between_ns)].map(
        |(q, value, between): (f64, Option<f64>, Option<(f64, f64)>)| {
            let value = value? / 1e6;
            let bound = between.map_or(0.0, |(least, _)| (value - least / 1e6).max(0.0));
            let refused = (q * all > own.count as f64).then_some(Refusal::Censored);
            Some(BoundedFigure { value, bound, interval: None, refused })
        },
    )
}

/// The overhead of a target at the median, and the shift of its tail, each with its limits.
pub(super) fn added(versus: &Versus, target: &TargetResult, figure: Figure) -> [String; 2] {
    let tail = versus.tail().unwrap_or("p99");
    [(Kind::Added, "p50"), (Kind::Shift, tail)].map(|(kind, quantile)| {
        let found = versus.difference(&target.name, versus.reference(), figure, kind, quantile);
        format::or_dash(found.and_then(Difference::words), |words| words)
    })
}

/// Why figures of the shown columns are refused, each reason once.
pub(super) fn reasons(versus: &Versus, shown: &[Figure]) -> Vec<String> {
    let tail = versus.tail().unwrap_or("p99");
    let figures = shown
        .iter()
        .flat_map(|&figure| [(figure, Kind::Added, "p50"), (figure, Kind::Shift, tail)])
        .filter(|(figure, kind, quantile)| is_shown(versus, *figure, *kind, quantile));
    let cells = figures.flat_map(|cell| versus.targets.iter().map(move |target| (cell, target)));
    let of_cells = cells.filter_map(|((figure, kind, quantile), target)| {
        let what = format!("{} {quantile} of {}", figure.title(), target.name);
        Some((refused(versus, target, figure, kind, quantile)?, what))
    });
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (why, what) in of_cells {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, figures)) => figures.push(what),
            None => reasons.push((why, vec![what])),
        }
    }
    reasons
        .into_iter()
        .map(|(why, figures): (String, Vec<String>)| {
            let (first, more) = (&figures[0], figures.len() - 1);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{why} ({first}{more})")
        })
        .collect()
}

fn refused(
    versus: &Versus,
    target: &TargetResult,
    figure: Figure,
    kind: Kind,
    quantile: &str,
) -> Option<String> {
    versus.difference(&target.name, versus.reference(), figure, kind, quantile)?.refused.clone()
}

/// Whether the column of a difference is shown: a column without a figure is not.
fn is_shown(versus: &Versus, figure: Figure, kind: Kind, quantile: &str) -> bool {
    let reference = versus.reference();
    versus.targets.iter().any(|target| {
        let found = versus.difference(&target.name, reference, figure, kind, quantile);
        found.is_some_and(|found| found.limited().is_some())
    })
}
