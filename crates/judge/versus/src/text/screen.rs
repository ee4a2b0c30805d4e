//! The screen at the end of a comparison: urgent findings, the targets with their headline
//! differences, and the verdict.

use plimsoll_metrics::{Judgement, RunSummary};
use plimsoll_report::screen::{Chapter, Item, Rest, Rows, Screen, Tone, debug_build};
use plimsoll_report::table::Table;
use plimsoll_report::{format, run_notes};
use plimsoll_rules::{Finding, Level};

use super::{blocks, ended, tables, times, title};
use crate::conclusion::Conclusion;
use crate::result::{Claim, TargetResult, Versus};
use crate::role::Role;

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
    let urgent: Vec<_> = urgent.into_iter().map(item).collect();
    let count = urgent.len();
    screen.judged("", "warnings", urgent, count);
    bounds(&mut screen, versus);
    targets(&mut screen, versus);
    rounds(&mut screen, versus);
    claims(&mut screen, versus);
    for (heading, table) in [
        ("Every figure", times::table(versus)),
        ("The targets", tables::targets(versus)),
        ("Streams", tables::streams(versus)),
        ("Policy decisions", tables::decisions(versus)),
        ("Tested differences", tables::tested(versus)),
        ("Own times as targets state them in headers", tables::stated(versus)),
    ] {
        let mut chapter = Chapter::new(heading);
        chapter.table(&table);
        screen.chapter(chapter);
    }
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

/// Whether a finding goes above all figures: an outage, more failures, or different answers.
fn is_urgent(finding: &Finding) -> bool {
    finding.level == Level::Fail || [401, 403].contains(&finding.code)
}

fn item(finding: &Finding) -> Item {
    let tone = if finding.level == Level::Fail { Tone::Bad } else { Tone::Unsure };
    Item::judged(tone, &format!("PL{}", finding.code), &finding.text()).fix(&finding.fix())
}

/// The table of the targets: their own times, and their overhead over the reference.
fn targets(screen: &mut Screen, versus: &Versus) {
    let (headline, reference) = (versus.headline, versus.reference());
    let tail = times::tail_title(versus);
    let head = ["", "p50", "added, median", "failed", "streams", "p95", tail, "per s", "CPU/req"];
    let mut table = Table::new(head);
    let shown: Vec<&TargetResult> = with_room(versus);
    for target in &shown {
        let [p50, p95] = times::own(target, headline);
        let [added, tail] = if target.name == reference {
            [String::new(), String::new()]
        } else {
            times::added(versus, target, headline)
        };
        let rate = target.throughput.map(format::digits).unwrap_or_default();
        let cpu = target.cpu_ns_per_request.map(|nanos| format::time(nanos / 1e6));
        let streams = target.streams.map(|streams| streams.cell()).unwrap_or_default();
        let failed = tables::failed(target);
        let name = target.name.clone();
        table.row([name, p50, added, failed, streams, p95, tail, rate, cpu.unwrap_or_default()]);
    }
    // The control is the first to be left out.
    let (control, other): (Vec<usize>, Vec<usize>) =
        (0..shown.len()).partition(|row| shown[*row].role == Role::Control);
    let rows = Rows {
        table,
        unit: "targets",
        first: other.into_iter().chain(control).collect(),
        most: MOST,
        least: LEAST_TARGETS,
        drops_columns: true,
        ..Rows::default()
    };
    let figure = headline.title();
    let added = format!("added: difference to {reference} [95 % interval]");
    screen.rows(&format!("{figure}; {added}; (-x): measurement error"), rows);
}

/// The targets in their order. If there are many, the control is left out, because its verdict
/// suffices.
fn with_room(versus: &Versus) -> Vec<&TargetResult> {
    let many = versus.targets.len() > LEAST_TARGETS / 2;
    versus.targets.iter().filter(|target| !many || target.role != Role::Control).collect()
}

/// The headline figure by round, with the last round first if there is not room for all.
fn rounds(screen: &mut Screen, versus: &Versus) {
    let mut table = Table::new(["", "p50", "added, median", "failed"]);
    let shown = versus.by_round.iter().filter(|row| row.target != versus.reference());
    for row in shown {
        let [value, low, high] = row.added_ns.map_or([None; 3], |all| all.map(Some));
        let added = value
            .zip(low)
            .zip(high)
            .map(|((value, low), high)| format::difference(value / 1e6, low / 1e6, high / 1e6));
        table.row([
            format!("{} {}", row.round, row.target),
            format::time_or_dash(row.p50_ns.map(|nanos| nanos / 1e6)),
            format::or_dash(added, |added| added),
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
    let invalid = versus.invalid.iter().map(|why| Item::new(Tone::Bad, &format!("INVALID: {why}")));
    // The verdict already says why the comparison is invalid.
    let findings = findings.iter().filter(|finding| finding.level != Level::Invalid);
    let reasons = times::reasons(versus, &[versus.headline]);
    let reasons = reasons.iter().map(|why| Item::new(Tone::Unsure, &format!("-: {why}")));
    let findings = findings.map(|finding| item(finding));
    // Outages are already above, next to the compared requests.
    let mut run = summary.clone();
    run.findings.retain(|finding| finding.code != 201);
    invalid.chain(findings).chain(reasons).chain(run_notes(&run)).collect()
}
