//! The end of a comparison on a screen: the targets with the headline differences, what may be
//! said, what stands out, and the verdict.

use plimsoll_metrics::{Judgement, RunEnd, RunJudgement, RunSummary};
use plimsoll_report::format;
use plimsoll_report::screen::{Chapter, Item, Rest, Rows, Screen, Tone, debug_build};
use plimsoll_report::table::Table;
use plimsoll_report::{run_notes, run_verdict};

use super::{blocks, ended, notes, other, times, title};
use crate::figure::Figure;
use crate::outage;
use crate::result::{Claim, TargetResult, Versus};
use crate::role::Role;

/// Sentences that are left out last: the tables say the same of every target.
const LEAST: usize = 1;

/// The most targets that are shown.
const MOST: usize = 10;

/// Targets that are left out last: five gateways and what they are compared with.
const LEAST_TARGETS: usize = 6;

/// The verdict where every answer came in time, and targets answered differently.
const UNLIKE_WORK: &str = "VALID load, but not the same work: times marked * are not comparable";

/// The screen of a comparison; `summary` is that of its last run, `rest` where the report is.
pub fn screen(versus: &Versus, summary: &RunSummary, rest: Rest) -> Screen {
    let mut screen = Screen::new(rest);
    let build = debug_build(&summary.metadata.environment);
    screen.title(&format!("{}{build}", title(versus)));
    let unlike = versus.unlike_work();
    let unlike: Vec<_> = unlike.iter().map(|how| Item::judged(Tone::Unsure, "*", how)).collect();
    screen.judged("", "targets", unlike, LEAST_TARGETS);
    targets(&mut screen, versus);
    bounds(&mut screen, versus);
    claims(&mut screen, versus);
    for (heading, table) in
        [("Every figure", times::table(versus)), ("The targets", other::table(versus))]
    {
        let mut chapter = Chapter::new(heading);
        chapter.table(&table);
        screen.chapter(chapter);
    }
    screen.details(notes::details(versus));
    screen.stands_out(stands_out(versus, summary));
    screen.fact(&blocks(versus));
    if let Some(stopping) = &versus.stopping {
        screen.fact(&ended(versus, stopping));
    }
    let (tone, text) = verdict(versus, summary);
    screen.verdict(tone, &text);
    screen
}

/// What each target did by itself, then what it adds to the reference.
fn targets(screen: &mut Screen, versus: &Versus) {
    let (headline, reference) = (versus.headline, versus.reference());
    let mut figures = vec![headline];
    if versus.whole != headline {
        figures.push(versus.whole);
    }
    let titles: Vec<_> = figures.iter().map(|figure| figure.title()).collect();
    let head = figures.iter().flat_map(|figure| {
        ["p50", "p95"].map(|quantile| match figure {
            Figure::Ttft => format!("TTFT {quantile}"),
            _ => quantile.to_owned(),
        })
    });
    let rest = ["per s", "failed", "CPU/req"].map(str::to_owned);
    let mut table = Table::new([String::new()].into_iter().chain(head).chain(rest));
    let mut differences = Table::new(["", "added, median", times::tail_title(versus)]);
    let on_screen = with_room(versus);
    for target in &on_screen {
        let own = figures.iter().flat_map(|figure| times::own(target, *figure));
        table.row([target.name.clone()].into_iter().chain(own).chain(rarer(target)));
        if target.role != Role::Reference && target.name != reference {
            let added = times::added(versus, target, headline);
            differences.row([target.name.clone()].into_iter().chain(added));
        }
    }
    let others = on_screen.iter().filter(|target| target.name != reference).enumerate();
    let first =
        others.filter(|(_, target)| target.role == Role::Target).map(|(row, _)| row).collect();
    // The control is the first that has no room.
    let (control, other): (Vec<usize>, Vec<usize>) =
        (0..on_screen.len()).partition(|row| on_screen[*row].role == Role::Control);
    let order = other.into_iter().chain(control).collect();
    let rows = Rows {
        table,
        unit: "targets",
        first: order,
        most: MOST,
        least: LEAST_TARGETS,
        ..Rows::default()
    };
    let notation = if times::shows_limits(versus, &figures) {
        "; (-): so much may be the generator's"
    } else {
        ""
    };
    screen.rows(&format!("{}{notation}", titles.join(" and ")), rows);
    let heading = format!("{}: difference to {reference}, with 95 % intervals", headline.title());
    let rows = Rows {
        table: differences,
        unit: "targets",
        first,
        most: MOST,
        least: LEAST_TARGETS,
        ..Rows::default()
    };
    screen.rows(&heading, rows);
}

/// The targets in their order; of many, without the control, whose verdict says enough.
fn with_room(versus: &Versus) -> Vec<&TargetResult> {
    let many = versus.targets.len() > LEAST_TARGETS;
    versus.targets.iter().filter(|target| !many || target.role != Role::Control).collect()
}

/// Completed turns per second, failed turns, and the CPU time of a request.
fn rarer(target: &TargetResult) -> [String; 3] {
    let rate = target.throughput.map(format::digits);
    let cpu = target.cpu_ns_per_request.map(|nanos| format::time(nanos / 1e6));
    [rate.unwrap_or_default(), format::count(target.failed), cpu.unwrap_or_default()]
}

/// Thresholds and the margin, those that are broken first.
fn bounds(screen: &mut Screen, versus: &Versus) {
    let mut found: Vec<(Tone, &str, String)> = Vec::new();
    found.extend(versus.thresholds.iter().map(|threshold| {
        let tone = match threshold.judgement {
            Judgement::Pass => Tone::Good,
            Judgement::Fail => Tone::Bad,
            Judgement::Inconclusive(_) => Tone::Unsure,
        };
        let (word, what) = notes::judged(threshold);
        (tone, word, what)
    }));
    found.extend(outage::sentences(versus).into_iter().map(|why| (Tone::Bad, "FAIL", why)));
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

/// The sentences that hold; nothing of an invalid comparison.
fn claims(screen: &mut Screen, versus: &Versus) {
    if !versus.invalid.is_empty() || versus.claims.is_empty() {
        return;
    }
    let (hold, open): (Vec<&Claim>, Vec<&Claim>) = versus.claims.iter().partition(|c| c.holds);
    let (shown, more) = notes::chosen(versus, hold);
    let mut items: Vec<_> =
        shown.iter().map(|claim: &&Claim| Item::judged(Tone::Good, "", &claim.text)).collect();
    if more > 0 {
        let text = format!("and {more} more: see versus.json, claims");
        items.push(Item::judged(Tone::Good, "", &text));
    }
    if items.is_empty() {
        items.push(Item::judged(Tone::Unsure, "", notes::none_proven(versus)));
    }
    screen.judged(&notes::scope(versus), "differences", items, LEAST);
    if !open.is_empty() {
        let (s, are) = if open.len() == 1 { ("", "is") } else { ("s", "are") };
        screen.fact(&format!("{} other difference{s} {are} not significant", open.len()));
    }
}

fn stands_out(versus: &Versus, summary: &RunSummary) -> Vec<Item> {
    let mut items: Vec<_> = versus
        .invalid
        .iter()
        .map(|why| {
            let text = format!("INVALID, and nothing is said of the targets: {why}");
            Item::new(Tone::Bad, &text).fix("look what else runs on these hosts, and repeat it")
        })
        .collect();
    let reasons = times::reasons(versus, &[versus.headline]);
    if !reasons.is_empty() {
        items.push(Item::new(Tone::Unsure, &format!("-: {}", reasons.join("; "))));
    }
    let unlike = versus.unlike.iter().map(|how| format!("unlike: {how}"));
    let sentences = unlike
        .chain(other::failures(versus))
        .chain(times::other_signs(versus))
        .chain(versus.warnings.iter().cloned());
    items.extend(sentences.map(|text| Item::new(Tone::Unsure, &text)));
    items.extend(run_notes(summary));
    items
}

/// The last line. That the comparison is invalid is said however it ended.
fn verdict(versus: &Versus, summary: &RunSummary) -> (Tone, String) {
    if let Some(why) = versus.invalid.first() {
        return (Tone::Bad, format!("INVALID: {why}"));
    }
    match summary.judgement(true) {
        RunJudgement::Interrupted => {
            return (Tone::Unsure, "INTERRUPTED: compared is what there was until then".to_owned());
        }
        RunJudgement::Inconclusive(why) => {
            let why = std::iter::once(why).chain(outage::short(versus)).collect::<Vec<_>>();
            return (Tone::Unsure, format!("INCONCLUSIVE: {}", why.join("; ")));
        }
        RunJudgement::TargetFailed => return run_verdict(summary),
        RunJudgement::Failed(_) | RunJudgement::Invalid | RunJudgement::Passed => {}
    }
    match versus.judgement_of_bounds() {
        Judgement::Fail => (Tone::Bad, format!("FAIL: {}", broken(versus))),
        Judgement::Inconclusive(why) => (Tone::Unsure, format!("INCONCLUSIVE: {why}")),
        Judgement::Pass => match versus.nothing_measured() {
            Some(why) => (Tone::Unsure, format!("INCONCLUSIVE: {why}")),
            None if !versus.workload_mismatch.is_empty() => (Tone::Unsure, UNLIKE_WORK.to_owned()),
            None => (Tone::Good, passed(versus, summary)),
        },
    }
}

fn broken(versus: &Versus) -> String {
    let failed = versus.thresholds.iter().filter(|found| found.judgement == Judgement::Fail);
    let failed = failed.map(|found| format!("{} {}", found.metric, found.expression));
    let down = outage::short(versus);
    down.chain(versus.worse_than_margin.iter().cloned())
        .chain(failed)
        .collect::<Vec<_>>()
        .join(", ")
}

fn passed(versus: &Versus, summary: &RunSummary) -> String {
    const VALID: &str = "VALID: the differences describe the targets";
    let bounds =
        versus.thresholds.len() + versus.compared().len() * usize::from(versus.margin.is_some());
    match (bounds, summary.metadata.run.ended) {
        (0, RunEnd::Decided) => format!("{VALID}; ended early, as it was decided"),
        (0, _) => VALID.to_owned(),
        _ => format!("PASS: every bound is kept. {VALID}"),
    }
}
