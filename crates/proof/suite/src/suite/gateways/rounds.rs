//! The rounds of a gateway together, and the figures that follow from them.

use plimsoll_knee::Found;
use plimsoll_report::format::digits;
use plimsoll_stats::rounds::{Round as Estimate, hartung_knapp};
use plimsoll_stats::student_t::critical_95;
use plimsoll_versus::{Difference, Figure, Kind, Versus, combine};

use super::figures::{Cell, Limits, Row, Unit};
use super::{Bench, SCENARIOS, Subject};
use crate::comparison_result::ComparisonResult;
use crate::target::DIRECT;

/// By rate and gateway: all requests, the chats and the streams, over all rounds; or why there is
/// no result.
pub(super) type Combined = Vec<Vec<Result<Vec<Versus>, String>>>;

const ALL: usize = 0;
const CHATS: usize = 1;
const STREAMS: usize = 2;

pub(super) fn combined(bench: &Bench<'_>) -> Combined {
    let of_rate = |rate| bench.subjects.iter().map(move |subject| of_subject(subject, rate));
    (0..bench.file.rates.len()).map(|rate| of_rate(rate).collect()).collect()
}

fn of_subject(subject: &Subject<'_>, rate: usize) -> Result<Vec<Versus>, String> {
    let rounds = subject.rates[rate].as_ref().map_err(Clone::clone)?;
    let name = &subject.entry.name;
    let parts = (0..=SCENARIOS.len()).map(|part| {
        let own = rounds.iter().filter_map(|round| Some(only(round.get(part)?, name)));
        let (valid, all): (Vec<_>, Vec<_>) =
            (own.clone().filter(|round| round.invalid.is_empty()).collect(), own.collect());
        // An invalid round is left out where two others remain.
        combine(if valid.len() >= 2 { &valid } else { &all })
    });
    let missing = subject.facts.error.clone().unwrap_or_else(|| "not measured".to_owned());
    parts.collect::<Option<Vec<_>>>().ok_or(missing)
}

/// A comparison of several gateways as the comparison of one of them with the upstream.
fn only(versus: &Versus, name: &str) -> Versus {
    let mut own = versus.clone();
    let is_own = |target: &str| target == name || target == DIRECT;
    own.targets.retain(|target| is_own(&target.name));
    own.differences.retain(|found| found.target == name && found.reference == DIRECT);
    own.errors.retain(|found| found.target == name && found.reference == DIRECT);
    own.disturbance.retain(|found| found.target == name);
    own.workload_mismatch.retain(|found| found.target == name && found.reference == DIRECT);
    own.cpu.clear();
    own
}

/// A comparison for each rate and scenario, with all gateways that have a valid one.
pub(super) fn comparisons(bench: &Bench<'_>, combined: &Combined) -> Vec<ComparisonResult> {
    let mut results = Vec::new();
    for (rate, gateways) in combined.iter().enumerate() {
        for (part, scenario) in (CHATS..).zip(SCENARIOS) {
            let label = format!("{}/s, {scenario}", bench.file.rates[rate]);
            let all = gateways.iter().flatten().filter_map(|parts| parts.get(part));
            let (valid, invalid): (Vec<_>, Vec<_>) =
                all.cloned().partition(|versus: &Versus| versus.invalid.is_empty());
            let together = valid.into_iter().reduce(side_by_side).into_iter().chain(invalid);
            results.extend(together.map(|versus| ComparisonResult {
                label: label.clone(),
                versus: Some(versus),
                files: bench.files[rate].clone(),
                error: None,
            }));
        }
    }
    results
}

fn side_by_side(mut one: Versus, other: Versus) -> Versus {
    one.targets.extend(other.targets.into_iter().filter(|target| target.name != DIRECT));
    one.differences.extend(other.differences);
    one.errors.extend(other.errors);
    one.claims.extend(other.claims);
    one.findings.extend(other.findings);
    one.by_round.extend(other.by_round.into_iter().filter(|round| round.target != DIRECT));
    one.workload_mismatch.extend(other.workload_mismatch);
    one.disturbance.extend(other.disturbance);
    for (sum, more) in [
        (&mut one.blocks.planned, other.blocks.planned),
        (&mut one.blocks.recorded, other.blocks.recorded),
        (&mut one.blocks.complete, other.blocks.complete),
    ] {
        *sum += more;
    }
    one
}

/// A figure of a comparison: its name, scenario, time, kind, and percentiles, of which the first
/// one with enough samples counts.
type Time = (&'static str, usize, Figure, Kind, &'static [&'static str]);

const TIMES: [Time; 6] = [
    ("latency p50", CHATS, Figure::ResponseTime, Kind::Added, &["p50"]),
    ("latency p99", CHATS, Figure::ResponseTime, Kind::Shift, &["p99", "p95", "p90"]),
    ("TTFT p50", STREAMS, Figure::Ttft, Kind::Added, &["p50"]),
    ("TTFT p99", STREAMS, Figure::Ttft, Kind::Shift, &["p99", "p95", "p90"]),
    ("mean gap", STREAMS, Figure::MeanGap, Kind::Added, &["p50"]),
    ("longest gap", STREAMS, Figure::LongestGap, Kind::Added, &["p50"]),
];

/// All figures of all gateways.
pub(super) fn rows(bench: &Bench<'_>, combined: &Combined) -> Vec<Row> {
    let mut rows = Vec::new();
    for (rate, gateways) in combined.iter().enumerate() {
        let group = format!("{}/s", bench.file.rates[rate]);
        let row = |name: &str, unit, cell: &dyn Fn(usize, &[Versus]) -> Cell| Row {
            group: group.clone(),
            name: name.to_owned(),
            unit,
            cells: gateways
                .iter()
                .enumerate()
                .map(|(at, parts)| match parts {
                    Ok(parts) => cell(at, parts),
                    Err(why) => Cell::none(why.clone()),
                })
                .collect(),
            ..Row::default()
        };
        for time in TIMES {
            let mut row = row(time.0, Unit::Time, &|_, parts| added(&time, &parts[time.1]));
            row.pairs = pairs(bench, rate, &time, &row);
            rows.push(row);
        }
        let cpu = |at: usize, _: &[Versus]| cpu(&bench.subjects[at], rate);
        rows.push(row("CPU per request", Unit::Time, &cpu));
        let failed =
            |at: usize, parts: &[Versus]| failed(&parts[ALL], &bench.subjects[at].entry.name);
        rows.push(row("failed", Unit::Share, &failed));
    }
    rows.extend(resources(bench));
    // Without a search for the capacity, say.
    rows.retain(|row| row.cells.iter().any(Cell::is_known));
    rows
}

/// Overhead over the upstream.
fn added((_, _, figure, kind, quantiles): &Time, versus: &Versus) -> Cell {
    if let Some(why) = versus.invalid.first() {
        return Cell::none(format!("invalid: {why}"));
    }
    let mut found = quantiles.iter().map(|quantile| {
        let all = &mut versus.differences.iter();
        all.find(|one| one.figure == *figure && one.kind == *kind && one.quantile == *quantile)
    });
    let first = found.next().flatten();
    let Some(wanted) = first else { return Cell::none("no such time") };
    if let Some(cell) = cell(wanted) {
        return cell;
    }
    let why = wanted.refused.clone().unwrap_or_default();
    let other = found.flatten().find_map(|other| Some((other, cell(other)?)));
    let pairs = format!("{}: {why} ({} pairs)", wanted.quantile, wanted.pairs);
    match other {
        Some((other, cell)) => Cell { instead: other.quantile.clone(), note: pairs, ..cell },
        None => Cell::none(pairs),
    }
}

fn cell(found: &Difference) -> Option<Cell> {
    let (value, low, high) = found.limited()?;
    Some(Cell::new([value, low, high].map(|nanos| nanos / 1e6)))
}

/// Differences of gateways that were loaded in the same moments.
fn pairs(bench: &Bench<'_>, rate: usize, time: &Time, row: &Row) -> Vec<(usize, usize, [f64; 3])> {
    let (_, part, figure, kind, quantiles) = time;
    let subjects = &bench.subjects;
    let mut pairs = Vec::new();
    for (one, other) in (0..subjects.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let quantile = |at: usize| match &*row.cells[at].instead {
            "" => quantiles[0].to_owned(),
            instead => instead.to_owned(),
        };
        let Ok(rounds) = &subjects[one].rates[rate] else { continue };
        let names = [one, other].map(|at| &*subjects[at].entry.name);
        let found = rounds.iter().filter_map(|round| {
            let quantile = quantile(one);
            let found = round[*part].difference(names[0], names[1], *figure, *kind, &quantile)?;
            let (value, low, high) = found.limited()?;
            let value = [value, low, high].map(|nanos| nanos / 1e6);
            Some((value, found.degrees_of_freedom))
        });
        if quantile(one) == quantile(other) {
            pairs.extend(over_rounds(found).map(|found| (one, other, found)));
        }
    }
    pairs
}

/// The mean over rounds of values with their intervals and degrees of freedom.
fn over_rounds(rounds: impl Iterator<Item = ([f64; 3], Option<f64>)>) -> Option<[f64; 3]> {
    let rounds = rounds.map(|([value, low, high], freedom)| {
        let half = (high - low) / 2.0;
        Estimate { value, standard_error: half / critical_95(freedom.unwrap_or(f64::MAX)) }
    });
    let over = hartung_knapp(&rounds.collect::<Vec<_>>())?;
    Some([over.value, over.interval.low, over.interval.high])
}

fn cpu(subject: &Subject<'_>, rate: usize) -> Cell {
    let rounds = subject.rates[rate].as_ref().map_or(&[][..], |rounds| rounds);
    let found = rounds.iter().filter_map(|round| {
        let mut targets = round.first()?.targets.iter();
        let own = targets.find(|target| target.name == subject.entry.name)?;
        let ends = [own.cpu_ns_per_request?, own.cpu_low_ns?, own.cpu_high_ns?];
        Some((ends.map(|nanos| nanos / 1e6), None))
    });
    over_rounds(found).map_or_else(|| Cell::none("CPU time not known in two rounds"), Cell::new)
}

/// Share of failed requests, with the interval of Agresti and Coull (1998).
fn failed(versus: &Versus, name: &str) -> Cell {
    let Some(own) = versus.targets.iter().find(|target| target.name == name) else {
        return Cell::none("not loaded");
    };
    let (failed, all) = (own.failed as f64, own.turns as f64);
    let share = (failed + 2.0) / (all + 4.0);
    let half = 1.96 * (share * (1.0 - share) / (all + 4.0)).sqrt();
    let kinds: Vec<_> =
        own.failures.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    let value = failed / all.max(1.0);
    let ends = [value, (share - half).clamp(0.0, value), (share + half).max(value)];
    Cell { note: kinds.join(", "), ..Cell::new(ends) }
}

fn resources(bench: &Bench<'_>) -> Vec<Row> {
    let row = |name: &str, unit, cell: &dyn Fn(&Subject<'_>) -> Cell| Row {
        group: "resources".to_owned(),
        name: name.to_owned(),
        unit,
        limits: Limits::Range,
        cells: bench.subjects.iter().map(cell).collect(),
        ..Row::default()
    };
    let capacity = row("capacity", Unit::PerSecond, &|subject| capacity(bench, subject));
    let moments = ["memory idle", "memory under load", "memory after"];
    let memory = (0..).zip(moments).map(|(moment, name): (usize, _)| {
        row(name, Unit::Bytes, &|subject| Cell::spread(&subject.memory[moment]))
    });
    let size = |subject: &Subject<'_>| {
        let known = subject.size.map(|bytes| Cell::spread(&[bytes]));
        known.unwrap_or_else(|| Cell::none("size not known"))
    };
    let start = row("cold start", Unit::Time, &|subject| Cell::spread(&subject.starts_ms));
    let size = row("size", Unit::Bytes, &size);
    let capacity = Row { more_is_better: true, ..capacity };
    std::iter::once(capacity).chain(memory).chain([start, size]).collect()
}

/// The upstream limits a capacity that is above this share of its own.
const LIMITED: f64 = 0.9;

/// The capacity of all rounds: from the lowest lower end to the highest upper end.
fn capacity(bench: &Bench<'_>, subject: &Subject<'_>) -> Cell {
    let ends = |of: fn(&Found) -> Option<f64>| subject.capacities.iter().filter_map(of);
    let low = ends(|found| found.low).reduce(f64::min);
    let high = ends(|found| found.high).reduce(f64::max);
    let cell = Cell { low, high, ..Cell::default() };
    let direct = bench.direct.and_then(|found| found.low);
    match (cell.low, cell.high, direct) {
        (_, Some(high), Some(direct)) if high > direct * LIMITED => {
            let alone = bench.direct.map(|found| found.text(digits)).unwrap_or_default();
            let note = format!("limited by the upstream and the load, which alone reach {alone}/s");
            Cell { low: low.map(|low| low.min(direct)), high: None, note, ..cell }
        }
        (None, None, _) => Cell::none("not searched, or not found"),
        _ => cell,
    }
}
