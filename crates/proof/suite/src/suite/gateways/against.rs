//! Gateways against an earlier result of theirs: better, worse or not told apart, row by row.

use std::cmp::Ordering;

use plimsoll_metrics::Judgement;
use plimsoll_report::table::Table;

use super::fidelity::{Cell, State};
use super::figures::{self, corrected};
use super::result::GatewaysResult;
use crate::bound::BoundResult;
use crate::report::{Report, Section};

/// Compares each figure with its predecessor: a table, and a bound for each gateway, which fails if
/// any of its figures is worse. `other` is why the machines cannot be compared.
pub(in crate::suite) fn against(
    old: &Report,
    new: &Report,
    other: Option<&str>,
) -> (Section, Vec<BoundResult>) {
    let (empty, unknown) = (GatewaysResult::default(), figures::Cell::default());
    let [then, now] = [old, new].map(|report| report.gateways.as_ref().unwrap_or(&empty));
    let other_loads = !then.loads.is_empty() && then.loads != now.loads;
    let other = other.or_else(|| (other_loads || old.quick).then_some("other loads"));
    let mut found = Vec::new();
    let gone = then.rows.iter().filter(|row| now.rows.iter().all(|one| one.title() != row.title()));
    for row in now.rows.iter().chain(gone) {
        for (at, gateway) in now.gateways.iter().enumerate() {
            let before = then.gateways.iter().position(|old| old.name == gateway.name);
            let Some(before) = before else { continue };
            let cells = [(then, before), (now, at)].map(|(result, at)| {
                let same = result.rows.iter().find(|known| known.title() == row.title());
                same.and_then(|same| same.cells.get(at)).unwrap_or(&unknown)
            });
            let is_known = cells.iter().any(|cell| cell.is_known());
            found.extend(is_known.then_some((row, at, cells)));
        }
    }
    let pairs = found.iter().map(|(row, _, [old, new])| (*row, *new, *old));
    let among = corrected(&pairs.collect::<Vec<_>>());
    let judged = found.into_iter().map(|(row, at, [before, cell])| {
        let order = row.told_apart(cell, before, among).filter(|_| other.is_none());
        let cells = [
            now.gateways[at].name.clone(),
            row.title(),
            row.text(before),
            row.text(cell),
            if before.is_known() == cell.is_known() { word(order) } else { IN_ONE }.to_owned(),
        ];
        (order, cells)
    });
    let mut judged: Vec<_> = judged.chain(fidelity(then, now, other)).collect();
    // Worse first, then better, then the rest.
    judged.sort_by_key(|(order, _)| match order {
        Some(Ordering::Greater) => 0,
        Some(_) => 1,
        None => 2,
    });
    let mut table = Table::new(["Gateway", "Figure", "then", "now", "Status"]);
    let mut bounds = Vec::new();
    for gateway in &now.gateways {
        let own = judged.iter().filter(|(_, cells)| cells[0] == gateway.name);
        let worse = own.clone().filter(|(order, _)| *order == Some(Ordering::Greater));
        let worse: Vec<_> = worse.map(|(_, cells)| cells[1].clone()).collect();
        let lacking = own.clone().filter(|(_, cells)| cells[4] == IN_ONE);
        let lacking: Vec<_> = lacking.map(|(_, cells)| &*cells[1]).collect();
        let judgement = match (other, own.count()) {
            (Some(why), _) => Judgement::Inconclusive(why.to_owned()),
            (None, 0) => Judgement::Inconclusive("no figure in both results".to_owned()),
            _ if !worse.is_empty() => Judgement::Fail,
            _ if lacking.is_empty() => Judgement::Pass,
            _ => Judgement::Inconclusive(format!("{IN_ONE}: {}", lacking.join("; "))),
        };
        let measured = if worse.is_empty() { "none".to_owned() } else { worse.join("; ") };
        let what = format!("{}: worse since {}", gateway.name, old.started);
        bounds.push(BoundResult::new(&what, measured, "none".to_owned(), judgement));
    }
    for (_, cells) in judged {
        table.row(cells);
    }
    (Section::new(format!("Better or worse than {} ({})", old.started, old.command), table), bounds)
}

/// Cases of fidelity in which a gateway differs: only a case that was kept, or is now, has a side.
fn fidelity(
    then: &GatewaysResult,
    now: &GatewaysResult,
    other: Option<&str>,
) -> Vec<(Option<Ordering>, [String; 5])> {
    let mut judged = Vec::new();
    for gateway in &now.gateways {
        let Some(old) = then.gateways.iter().find(|old| old.name == gateway.name) else { continue };
        for cell in &gateway.fidelity.cells {
            let before = old.fidelity.cells.iter().find(|before| before.row() == cell.row());
            let Some(before) = before.filter(|before| before.label() != cell.label()) else {
                continue;
            };
            let order = match (before.state, cell.state) {
                (State::Kept, State::Changed) => Some(Ordering::Greater),
                (State::Changed, State::Kept) => Some(Ordering::Less),
                (State::Changed, State::Changed) => Some(cell.requests.cmp(&before.requests)),
                _ => None,
            };
            let order = order.filter(|_| other.is_none());
            let [was, is] = [before, cell].map(Cell::label);
            let row = [gateway.name.clone(), cell.row(), was, is, word(order).to_owned()];
            judged.push((order, row));
        }
    }
    judged
}

/// The status of a figure that the other result lacks.
const IN_ONE: &str = "no counterpart";

const fn word(order: Option<Ordering>) -> &'static str {
    match order {
        Some(Ordering::Less) => "better",
        Some(Ordering::Greater) => "worse",
        Some(Ordering::Equal) | None => "not told apart",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fidelity::Fidelity;
    use super::super::figures::Row;
    use super::super::result::GatewayFacts;
    use super::*;

    fn report(millis: f64) -> Report {
        let facts = GatewayFacts { name: "mine".to_owned(), ..GatewayFacts::default() };
        let rows = [("TTFT p50", millis), ("mean gap", 2.0)].map(|(name, value)| Row {
            name: name.to_owned(),
            cells: vec![figures::Cell::new([value, value - 0.1, value + 0.1])],
            ..Row::default()
        });
        let gateways = vec![facts];
        let rows = rows.to_vec();
        let result = GatewaysResult { gateways, rows, ..GatewaysResult::default() };
        Report { gateways: Some(result), ..Report::default() }
    }

    /// A case that is no longer kept is worse, and so are more retries.
    #[test]
    fn cases_of_fidelity_are_better_worse_or_not_listed() {
        let report = |state, requests| {
            let cell = Cell {
                group: "Retries".to_owned(),
                case: "after HTTP 500".to_owned(),
                dialect: "openai".to_owned(),
                state,
                seen: String::new(),
                status: 500,
                requests,
            };
            let fidelity = Fidelity { cells: vec![cell] };
            let facts =
                GatewayFacts { name: "mine".to_owned(), fidelity, ..GatewayFacts::default() };
            let result = GatewaysResult { gateways: vec![facts], ..GatewaysResult::default() };
            Report { gateways: Some(result), ..Report::default() }
        };
        let (kept, changed) = (State::Kept, State::Changed);
        for (then, now, expected) in [
            ((kept, 1), (changed, 2), &["kept", "changed (2 requests)", "worse"][..]),
            ((changed, 2), (kept, 1), &["changed (2 requests)", "kept", "better"]),
            (
                (changed, 2),
                (changed, 3),
                &["changed (2 requests)", "changed (3 requests)", "worse"],
            ),
            ((kept, 1), (State::NotObserved, 1), &["kept", "not observed", "not told apart"]),
            ((changed, 2), (changed, 2), &[]),
        ] {
            let [then, now] = [then, now].map(|(state, requests)| report(state, requests));
            let rows = against(&then, &now, None).0.table.rows;
            let cells: Vec<_> = rows.iter().flat_map(|row| &row[2..]).collect();
            assert_eq!(cells, expected);
        }
    }

    /// A figure that a version no longer has is not a pass; nor are other loads comparable.
    #[test]
    fn a_figure_of_one_result_and_other_loads_are_inconclusive() {
        let lacks = || {
            let mut lacks = report(1.0);
            lacks.gateways.as_mut().unwrap().rows.pop();
            lacks
        };
        let of = |loads: &str| {
            let mut report = report(1.0);
            report.gateways.as_mut().unwrap().loads = loads.to_owned();
            report
        };
        let short = Report { quick: true, ..report(1.0) };
        for (then, now, why) in [
            (report(1.0), lacks(), "no counterpart: mean gap, "),
            (lacks(), report(1.0), "no counterpart: mean gap, "),
            (of("3 rounds"), of("2 rounds"), "other loads"),
            (short, report(1.0), "other loads"),
        ] {
            let (_, bounds) = against(&then, &now, None);
            assert_eq!(bounds[0].judgement, Judgement::Inconclusive(why.to_owned()));
        }
        assert_eq!(against(&lacks(), &report(1.5), None).1[0].judgement, Judgement::Fail);
    }

    #[test]
    fn a_version_is_better_worse_or_not_told_apart_by_row() {
        for (now, other, word, status) in [
            (1.5, None, "worse", "FAIL"),
            (0.5, None, "better", "PASS"),
            (1.1, None, "not told apart", "PASS"),
            (1.5, Some("other machine"), "not told apart", "inconclusive"),
        ] {
            let (section, bounds) = against(&report(1.0), &report(now), other);
            let words: Vec<_> = section.table.rows.iter().map(|row| &*row[4]).collect();
            assert_eq!(words, [word, "not told apart"], "{now}");
            assert_eq!(bounds.iter().map(BoundResult::status).collect::<Vec<_>>(), [status]);
        }
    }
}
