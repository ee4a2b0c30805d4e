//! The tables of the suite, from its figures.

use std::collections::BTreeMap;

use plimsoll_report::format::{DASH, or_dash, rank};
use plimsoll_report::table::Table;
use plimsoll_versus::{LIMITS, NOT_SHOWN, failures_and_streams};

use super::fidelity::State;
use super::figures::{CAPACITY, Cell, SIZE, tests};
use super::result::{GatewayFacts, GatewaysResult};
use crate::comparison_result::ComparisonResult;
use crate::report::{Section, distinct};

/// Ranks first, then a table for each rate, the resources, and how each gateway was started.
pub(super) fn sections(result: &GatewaysResult, objective: &str) -> Vec<Section> {
    let groups = distinct(result.rows.iter().map(|row| &row.group));
    let of_groups = groups.iter().map(|group| of_group(result, group, objective));
    // Sizes alone are no comparison.
    let ranks = std::iter::once(ranks(result))
        .filter(|ranks| ranks.table.rows.iter().any(|row| !row[0].starts_with(SIZE)));
    let sections = ranks.chain(of_groups).chain(fidelity(result));
    sections.chain([entries(result)]).collect()
}

fn ranks(result: &GatewaysResult) -> Section {
    let names = result.gateways.iter().map(|gateway| gateway.name.clone());
    let mut table = Table::new(std::iter::once("Rank".to_owned()).chain(names));
    let among = tests(&result.rows);
    for row in &result.rows {
        let ranks = row.ranks(among);
        let cells = ranks.iter().map(|found| or_dash(*found, |(best, worst)| rank(best, worst)));
        if ranks.iter().flatten().count() > 1 {
            table.row(std::iter::once(row.title()).chain(cells));
        }
    }
    Section::new("Ranks by interval", table)
}

fn of_group(result: &GatewaysResult, group: &str, objective: &str) -> Section {
    let rows: Vec<_> = result.rows.iter().filter(|row| row.group == group).collect();
    let names = rows.iter().map(|row| row.name.clone());
    let mut table = Table::new(std::iter::once("Gateway".to_owned()).chain(names));
    for (at, gateway) in result.gateways.iter().enumerate() {
        let has_none = rows.iter().all(|row| row.name == SIZE || row.shown(at) == DASH);
        match &gateway.error {
            Some(why) if has_none => table.row([format!("{}: {why}", gateway.name)]),
            error => {
                let mark = error.as_ref().map_or("", |_| "[INCOMPLETE] ");
                let name = format!("{mark}{}", gateway.name);
                table.row(std::iter::once(name).chain(rows.iter().map(|row| row.shown(at))));
            }
        }
    }
    let title = match rows.first() {
        Some(row) if row.name == CAPACITY => format!("Resources; capacity within {objective}"),
        _ if group.ends_with("/s") => format!("Overhead at {group} over the upstream"),
        _ => "Resources".to_owned(),
    };
    // By gateways and reason, the figures that lack.
    let mut notes: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    for row in rows {
        let mut by_note: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (Cell { note, .. }, gateway) in row.cells.iter().zip(&result.gateways) {
            if !note.is_empty() && gateway.error.as_ref() != Some(note) {
                by_note.entry(note).or_default().push(&gateway.name);
            }
        }
        for (note, names) in by_note {
            notes.entry((names.join(" "), note)).or_default().push(&row.name);
        }
    }
    let notes = notes.iter();
    let notes = notes.map(|((names, note), rows)| format!("{names}: {}: {note}", rows.join(", ")));
    notes.fold(Section::new(title, table), Section::note)
}

/// For each dialect a row for each case, and below it every change.
fn fidelity(result: &GatewaysResult) -> Vec<Section> {
    let cells = result.gateways.iter().flat_map(|gateway| &gateway.fidelity.cells);
    let dialects = distinct(cells.map(|cell| &cell.dialect));
    dialects.iter().map(|dialect| of_dialect(result, dialect)).collect()
}

fn of_dialect(result: &GatewaysResult, dialect: &str) -> Section {
    let all = result.gateways.iter().filter(|gateway| !gateway.fidelity.cells.is_empty());
    let all: Vec<_> = all.map(|gateway| (&gateway.name, &gateway.fidelity.cells)).collect();
    let names = all.iter().map(|(name, _)| (*name).clone());
    let mut table = Table::new(std::iter::once("Case".to_owned()).chain(names));
    let mut notes = Vec::new();
    // Every gateway has the same cases in the same order.
    for at in 0..all.first().map_or(0, |(_, cells)| cells.len()) {
        let cells = all.iter().filter_map(|(name, cells)| Some((name, cells.get(at)?)));
        let cells: Vec<_> = cells.filter(|(_, cell)| cell.dialect == dialect).collect();
        let Some((_, like)) = cells.first() else { continue };
        let case = format!("{}: {}", like.group, like.case);
        let states = cells.iter().map(|(_, cell)| cell.label());
        table.row(std::iter::once(case.clone()).chain(states));
        notes.extend(cells.iter().filter_map(|(name, cell)| match cell.state {
            State::Changed => Some(format!("{name}, {case}: {}", cell.seen)),
            State::NotObserved => Some(format!("{name}, not observed: {}", cell.seen)),
            State::Kept | State::NotOffered => None,
        }));
    }
    let section = Section::new(format!("Fidelity, {dialect} dialect"), table);
    distinct(notes.into_iter()).into_iter().fold(section, Section::note)
}

/// Failures and stream shapes of each gateway and of the upstream, which has its own row beside
/// each: a gateway is to blame only for the difference.
pub(super) fn answers(comparisons: &[ComparisonResult]) -> [Section; 2] {
    let targets = comparisons.iter().flat_map(|one| {
        let targets = one.versus.iter().flat_map(|versus| &versus.targets);
        targets.map(move |target| (format!("{}: {}", one.label, target.name), target))
    });
    let table = failures_and_streams(&targets.collect::<Vec<_>>());
    let limits = Section::new(NOT_SHOWN, Table::default());
    let limits = LIMITS.split_terminator('\n').fold(limits, Section::note);
    [Section::new("Failures and streams", table), limits]
}

/// The loads, and how each gateway was started.
fn entries(result: &GatewaysResult) -> Section {
    let mut section = Section::new("Loads, versions and configurations", Table::default());
    section = section.note(&result.loads);
    for GatewayFacts { name, version, install, start, digests, .. } in &result.gateways {
        let install = [install].into_iter().filter(|install| !install.is_empty());
        let lines = [version.clone(), format!("started with `{start}`")].into_iter();
        let lines = lines.filter(|line| !start.is_empty() && !line.is_empty());
        let lines = lines.chain(install.map(|install| format!("installed with `{install}`")));
        let digests = digests.iter().map(|(file, hex)| format!("{file} has the SHA-256 {hex}"));
        section = section
            .note(format!("{name}: {}", lines.chain(digests).collect::<Vec<_>>().join("; ")));
    }
    let orders: Vec<_> = result.orders.iter().map(|order| order.join(" ")).collect();
    section.note(format!("order by round, from seed {}: {}", result.seed, orders.join("; ")))
}
