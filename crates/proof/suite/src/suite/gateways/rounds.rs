//! The rounds of a gateway together, and the figures that follow from them.

use plimsoll_knee::Found;
use plimsoll_report::format::digits;
use plimsoll_stats::runs::{Round as Estimate, hartung_knapp};
use plimsoll_versus::{Difference, Figure, Kind, Versus, combine};

use super::figures::{CAPACITY, Cell, Row, SIZE, Unit};
use super::{Bench, Group, SCENARIOS};
use crate::comparison_result::ComparisonResult;
use crate::knee_result::KneeResult;
use crate::target::DIRECT;

/// Parts of a comparison: all requests, the chats and the streams.
const ALL: usize = 0;
const CHATS: usize = 1;
const STREAMS: usize = 2;

/// A part over all rounds. An invalid round is left out where two others remain. The differences of
/// an overloaded target are not known: they depend on the length of the load.
fn combined(group: &Group, part: usize) -> Option<Versus> {
    let all: Vec<_> = group.rounds.iter().filter_map(|round| round.get(part).cloned()).collect();
    let valid: Vec<_> = all.iter().filter(|round| round.invalid.is_empty()).cloned().collect();
    let mut versus = combine(if valid.len() >= 2 { &valid } else { &all })?;
    let overloaded = versus.targets.iter().filter(|target| target.overload().is_some());
    let overloaded: Vec<_> = overloaded.map(|target| target.name.clone()).collect();
    for found in &mut versus.differences {
        if [&found.target, &found.reference].into_iter().any(|name| overloaded.contains(name)) {
            (found.value_ns, found.refused) = (None, Some("overloaded".to_owned()));
        }
    }
    Some(versus)
}

/// A comparison for each rate, scenario and gateway, or of all gateways that ran together.
pub(super) fn comparisons(bench: &Bench<'_>) -> Vec<ComparisonResult> {
    let mut results = Vec::new();
    for (rate, per_s) in bench.rates.iter().zip(&bench.file.rates) {
        for (part, scenario) in (CHATS..).zip(SCENARIOS) {
            for group in rate.groups.values() {
                let versus = combined(group, part).map(|versus| shown(versus, part));
                let (label, files) = (format!("{per_s}/s, {scenario}"), group.files.clone());
                let busy_host = group.busy_host.clone();
                results.push(ComparisonResult { label, versus, files, busy_host, error: None });
            }
        }
    }
    results
}

/// The differences that are in a table: the chart leaves the others out, too. Shapes are known of
/// all requests together, and shown once.
fn shown(mut versus: Versus, part: usize) -> Versus {
    versus.targets.iter_mut().filter(|_| part != STREAMS).for_each(|target| target.streams = None);
    versus.differences.retain(|found: &Difference| {
        TIMES.iter().any(|time| time.part == part && time.figure == found.figure)
    });
    versus
}

/// A time of a comparison, and the percentiles of it that a row may have, the best first.
struct Time {
    name: &'static str,
    part: usize,
    figure: Figure,
    kind: Kind,
    quantiles: &'static [&'static str],
}

impl Time {
    const fn median(name: &'static str, part: usize, figure: Figure) -> Self {
        Self { name, part, figure, kind: Kind::Added, quantiles: &["p50"] }
    }

    const fn tail(name: &'static str, part: usize, figure: Figure) -> Self {
        Self { name, part, figure, kind: Kind::Shift, quantiles: &["p99", "p95", "p90"] }
    }
}

const TIMES: [Time; 6] = [
    Time::median("latency p50", CHATS, Figure::ResponseTime),
    Time::tail("latency", CHATS, Figure::ResponseTime),
    Time::median("TTFT p50", STREAMS, Figure::Ttft),
    Time::tail("TTFT", STREAMS, Figure::Ttft),
    Time::median("mean gap", STREAMS, Figure::MeanGap),
    Time::median("longest gap", STREAMS, Figure::LongestGap),
];

/// All figures of all gateways.
pub(super) fn rows(bench: &Bench<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for at in 0..bench.rates.len() {
        rows.extend(TIMES.iter().filter_map(|time| {
            let rows = time.quantiles.iter().map(|quantile| of_time(bench, at, time, quantile));
            known_of_most(rows)
        }));
        rows.push(Row { name: "CPU per request".to_owned(), ..of_rate(bench, at, &cpu) });
        let unit = Unit::Share;
        rows.push(Row { name: "failed".to_owned(), unit, ..of_rate(bench, at, &failed) });
    }
    rows.extend(resources(bench));
    // Without a search for the capacity, say.
    rows.retain(|row| row.cells.iter().any(Cell::is_known));
    rows
}

/// A figure at a rate, from the rounds in which each gateway took part.
fn of_rate(bench: &Bench<'_>, at: usize, cell: &dyn Fn(&Group, &str) -> Cell) -> Row {
    let rate = &bench.rates[at];
    let cells = bench.subjects.iter().map(|subject| {
        let name = &subject.entry.name;
        let own = rate.groups.iter().filter(|(names, _)| names.contains(name));
        let own = own.max_by_key(|(_, group)| group.rounds.len());
        let why = rate.refused.get(name).or(subject.facts.error.as_ref());
        match (rate.refused.get(name), own) {
            (None, Some((_, group))) => cell(group, name),
            _ => Cell::none(why.map_or("not measured", String::as_str)),
        }
    });
    let group = format!("{}/s", bench.file.rates[at]);
    Row { group, cells: cells.collect(), ..Row::default() }
}

/// The row that has a figure of the most gateways; of equal ones the first.
fn known_of_most(rows: impl DoubleEndedIterator<Item = Row>) -> Option<Row> {
    rows.rev().max_by_key(|row| row.cells.iter().filter(|cell| cell.is_known()).count())
}

/// Overhead over the upstream.
fn of_time(bench: &Bench<'_>, at: usize, time: &Time, quantile: &str) -> Row {
    let name = match time.kind {
        Kind::Added => time.name.to_owned(),
        Kind::Shift => format!("{} {quantile}", time.name),
    };
    Row { name, ..of_rate(bench, at, &|group, name| added(time, quantile, group, name)) }
}

fn in_millis(nanos: (f64, f64, f64)) -> [f64; 3] {
    [nanos.0, nanos.1, nanos.2].map(|nanos| nanos / 1e6)
}

/// A difference as a figure.
fn cell(found: &Difference) -> Option<Cell> {
    let degrees = found.degrees_of_freedom;
    Some(Cell { degrees, ..Cell::new(in_millis(found.limited()?)) })
}

fn added(time: &Time, quantile: &str, group: &Group, name: &str) -> Cell {
    let Some(versus) = combined(group, time.part) else { return Cell::none("not measured") };
    if let Some(why) = versus.invalid.first() {
        return Cell::none(format!("invalid: {why}"));
    }
    let found = versus.difference(name, DIRECT, time.figure, time.kind, quantile);
    let Some(found) = found else { return Cell::none("no answer has it") };
    // A single one of several rounds tells nothing of the others.
    let is_over_rounds = group.rounds.len() < 2 || found.between_rounds_ns.is_some();
    cell(found).filter(|_| is_over_rounds).unwrap_or_else(|| {
        let why = found.refused.as_deref().unwrap_or("one round");
        Cell::none(format!("{why} ({} pairs in {} rounds)", found.pairs, group.rounds.len()))
    })
}

/// CPU time of a request: the mean over the rounds.
fn cpu(group: &Group, name: &str) -> Cell {
    let rounds = group.rounds.iter().filter_map(|round| {
        let own = round.get(ALL)?.targets.iter().find(|target| target.name == name)?;
        let half = (own.cpu_high_ns? - own.cpu_low_ns?) / 2.0;
        Some(Estimate { value: own.cpu_ns_per_request?, standard_error: half / NORMAL_95 })
    });
    let rounds: Vec<_> = rounds.collect();
    let Some(over) = hartung_knapp(&rounds) else {
        return Cell::none("CPU time not known in two rounds");
    };
    let degrees = Some((rounds.len() - 1) as f64);
    let ends = in_millis((over.value, over.interval.low, over.interval.high));
    Cell { degrees, ..Cell::new(ends) }
}

/// Standard errors between a value and an end of its 95 % interval.
const NORMAL_95: f64 = 1.96;

/// Share of failed requests, with the interval of Agresti and Coull (1998), or the wider one of the
/// shares of the rounds: failures come in groups.
fn failed(group: &Group, name: &str) -> Cell {
    let versus = combined(group, ALL);
    let own = versus.as_ref().and_then(|all| all.targets.iter().find(|own| own.name == name));
    let Some(own) = own else { return Cell::none("not measured") };
    let (failed, all) = (own.failed as f64, own.turns as f64);
    let share = (failed + 2.0) / (all + 4.0);
    let half = NORMAL_95 * (share * (1.0 - share) / (all + 4.0)).sqrt();
    let kinds = own.failures.iter().map(|(kind, count)| format!("{kind}: {count}"));
    let value = failed / all.max(1.0);
    let ends = [value, (share - half).clamp(0.0, value), (share + half).max(value)];
    let rounds = group.rounds.iter().filter_map(|round| {
        let own = round.get(ALL)?.targets.iter().find(|own| own.name == name)?;
        Some(own.failed as f64 / (own.turns as f64).max(1.0))
    });
    let rounds = Cell::mean(&rounds.collect::<Vec<_>>());
    let is_wider = rounds.high.is_some_and(|high| high > ends[2]);
    let cell = if is_wider { rounds } else { Cell::new(ends) };
    Cell { note: kinds.collect::<Vec<_>>().join(", "), ..cell }
}

fn resources(bench: &Bench<'_>) -> Vec<Row> {
    let direct = bench.direct.as_ref().map(|direct| direct.knee);
    let capacities =
        bench.subjects.iter().map(|subject| capacity(subject.capacity.as_ref(), direct));
    let mut rows = vec![Row {
        unit: Unit::PerSecond,
        more_is_better: true,
        ..of_all(CAPACITY, capacities.collect())
    }];
    for (moment, name) in ["memory idle", "memory under load", "memory after"].iter().enumerate() {
        let cells = bench.subjects.iter().map(|subject| {
            let rounds = subject.memory.iter().filter_map(|round| round[moment]);
            Cell::of_starts(&rounds.collect::<Vec<_>>(), Unit::Bytes)
        });
        rows.push(Row { unit: Unit::Bytes, ..of_all(name, cells.collect()) });
    }
    let starts =
        bench.subjects.iter().map(|subject| Cell::of_starts(&subject.starts_ms, Unit::Time));
    rows.push(of_all("cold start", starts.collect()));
    let sizes = bench.subjects.iter().map(|subject| subject.size.map(|size| Cell::new([size; 3])));
    let sizes = sizes.map(Option::unwrap_or_default);
    rows.push(Row { unit: Unit::Bytes, ..of_all(SIZE, sizes.collect()) });
    rows
}

fn of_all(name: &str, cells: Vec<Cell>) -> Row {
    let (group, name) = ("resources".to_owned(), name.to_owned());
    Row { group, name, cells, ..Row::default() }
}

/// The upstream limits a capacity that is above this share of its own.
const LIMITED: f64 = 0.9;

fn capacity(found: Option<&KneeResult>, direct: Option<Found>) -> Cell {
    let Some(KneeResult { knee, open, .. }) = found else { return Cell::none("not searched") };
    let Found { low, high, .. } = *knee;
    // Why an end is open.
    let note = if low.is_some() && high.is_some() { String::new() } else { open.join(" ") };
    let cell = Cell { low, high, note, ..Cell::default() };
    let upstream = direct.and_then(|direct| Some((direct, direct.low?)));
    match (upstream, high.or(low)) {
        (Some((direct, least)), Some(end)) if end > least * LIMITED => {
            let alone = direct.text(|load| format!("{}/s", digits(load)));
            let note = format!("limited by the upstream and the load, which alone reach {alone}");
            Cell { low: low.map(|low| low.min(least)), high: None, note, ..cell }
        }
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_versus::TargetResult;

    use super::*;

    /// A round in which `nginx` added so many milliseconds; the p99 has too few samples.
    fn round(millis: f64, invalid: bool) -> Vec<Versus> {
        let found = |kind, quantile: &str, known: bool| Difference {
            target: "nginx".to_owned(),
            reference: DIRECT.to_owned(),
            figure: Figure::ResponseTime,
            kind,
            quantile: quantile.to_owned(),
            pairs: 500,
            value_ns: known.then_some(millis * 1e6),
            low_ns: known.then_some((millis - 0.1) * 1e6),
            high_ns: known.then_some((millis + 0.1) * 1e6),
            degrees_of_freedom: known.then_some(20.0),
            refused: (!known).then(|| "too few".to_owned()),
            ..Difference::default()
        };
        let chats = Versus {
            differences: vec![
                found(Kind::Added, "p50", true),
                found(Kind::Shift, "p99", false),
                found(Kind::Shift, "p95", true),
            ],
            invalid: invalid.then(|| "late".to_owned()).into_iter().collect(),
            ..Versus::default()
        };
        vec![Versus::default(), chats, Versus::default()]
    }

    #[test]
    fn a_gateway_has_the_mean_of_its_valid_rounds() {
        let rounds = [round(1.0, false), round(9.0, true), round(3.0, false)];
        let group = Group { rounds: rounds.to_vec(), ..Group::default() };
        let cell = added(&TIMES[0], "p50", &group, "nginx");
        assert!((cell.value.unwrap() - 2.0).abs() < 1e-6, "{cell:?}");
        // The plain t interval of 1 and 3: 2 -+ 12.706.
        assert!((cell.high.unwrap() - 14.706).abs() < 0.01, "{cell:?}");
    }

    /// 30 failures of 900 in one round of three prove less than ten in each.
    #[test]
    fn failures_of_one_round_are_less_certain_than_those_of_all() {
        let high = |failed: [u64; 3]| {
            let rounds = failed.map(|failed| {
                let own = TargetResult {
                    name: "a".to_owned(),
                    turns: 900,
                    failed,
                    ..TargetResult::default()
                };
                vec![Versus { targets: vec![own], ..Versus::default() }]
            });
            let group = Group { rounds: rounds.to_vec(), ..Group::default() };
            super::failed(&group, "a").high.unwrap()
        };
        // 30 of 2,700 are 1.1 %, at most 1.6 % by Wilson; by rounds 1.1 + 4.303 x 1.92 / 3^0.5.
        assert!((high([10, 10, 10]) - 0.016).abs() < 0.0005);
        assert!((high([30, 0, 0]) - 0.0589).abs() < 0.0005);
    }

    #[test]
    fn a_percentile_with_too_few_samples_has_the_reason() {
        let group = Group { rounds: vec![round(1.0, false); 3], ..Group::default() };
        let cell = added(&TIMES[1], "p95", &group, "nginx");
        assert!((cell.value.unwrap() - 1.0).abs() < 1e-9, "{cell:?}");
        let unknown = Cell::none("too few (1500 pairs in 3 rounds)");
        assert_eq!(added(&TIMES[1], "p99", &group, "nginx"), unknown);
        assert_eq!(added(&TIMES[2], "p50", &group, "nginx"), Cell::none("no answer has it"));
    }

    #[test]
    fn a_tail_is_the_highest_percentile_that_the_most_gateways_have() {
        let row = |name: &str, known: usize| {
            let cell = |at| if at < known { Cell::new([1.0; 3]) } else { Cell::none("too few") };
            Row { name: name.to_owned(), cells: (0..3).map(cell).collect(), ..Row::default() }
        };
        for (known, name) in [([3, 3, 3], "p99"), ([2, 3, 3], "p95"), ([0, 0, 0], "p99")] {
            let rows = ["p99", "p95", "p90"].into_iter().zip(known);
            let rows: Vec<_> = rows.map(|(name, known)| row(name, known)).collect();
            assert_eq!(known_of_most(rows.into_iter()).unwrap().name, name);
        }
    }

    /// Behind a growing backlog, a time depends on the length of the load.
    #[test]
    fn an_overloaded_gateway_has_no_overhead() {
        let mut rounds = [round(900.0, false), round(900.0, false)];
        let found = plimsoll_metrics::Finding::new(plimsoll_versus::OVERLOAD);
        let found = found.of(Some("nginx")).with("stage", "load").with("backlog", 50);
        let name = "nginx".to_owned();
        let own = TargetResult { name, setup: vec![found], ..TargetResult::default() };
        // One of the rounds is enough.
        rounds[0][1].targets = vec![own.clone()];
        rounds[1][1].targets = vec![TargetResult { setup: Vec::new(), ..own }];
        let group = Group { rounds: rounds.to_vec(), ..Group::default() };
        let cell = added(&TIMES[0], "p50", &group, "nginx");
        assert_eq!(cell, Cell::none("overloaded (1000 pairs in 2 rounds)"));
    }
}
