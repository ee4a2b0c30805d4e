//! All tables except times.

use plimsoll_measure::PolicyDecision;
use plimsoll_metrics::confusion_matrix::UNANSWERED;
use plimsoll_report::format;
use plimsoll_report::table::Table;
use plimsoll_stats::runs::failures_one_in;

use crate::claims::FAILURES;
use crate::result::{Claim, Kind, TargetResult, Versus};

/// A column: its heading, and the cell of a target that has a value.
type Column = (&'static str, fn(&TargetResult) -> Option<String>);

/// Columns without a value for any target are omitted.
const COLUMNS: [Column; 11] = [
    ("turns", |target| Some(format::count(target.turns))),
    ("per s", |target| target.throughput.map(format::digits)),
    ("failed", |target| Some(failed(target))),
    ("correct", |target| target.correct.map(format::share)),
    ("CPU/req", |target| target.cpu_ns_per_request.map(|nanos| format::time(nanos / 1e6))),
    ("memory", |target| target.memory_bytes.map(|bytes| format::bytes(bytes as f64))),
    ("start-up", |target| target.startup_ns.map(|nanos| format::time(nanos as f64 / 1e6))),
    ("image", |target| target.image_bytes.map(|bytes| format::bytes(bytes as f64))),
    ("reused", |target| target.reused.map(format::share)),
    ("sent late", |target| target.dispatch_lag_p99_ns.map(|nanos| format::time(nanos / 1e6))),
    ("taken out", |target| target.taken_out.clone()),
];

pub(super) fn targets(versus: &Versus) -> Table {
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column: &&Column| versus.targets.iter().any(|target| column.1(target).is_some()))
        .collect();
    let head = [""].into_iter().chain(columns.iter().map(|column| column.0));
    let mut table = Table::new(head);
    for target in &versus.targets {
        let cells = columns.iter().map(|column| format::or_dash(column.1(target), |cell| cell));
        let first = target.name.clone();
        table.row([first].into_iter().chain(cells));
    }
    table
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
            format!("{all}, {most} {word}")
        }
    }
}

/// Shapes of each target's streams.
pub(super) fn streams(versus: &Versus) -> Table {
    let mut table = Table::default();
    for (target, streams) in versus.targets.iter().filter_map(|t| Some((t, t.streams?))) {
        let shapes = streams.shapes();
        table.head = ["", "begun"]
            .into_iter()
            .chain(shapes.map(|(name, _)| name))
            .map(str::to_owned)
            .collect();
        let counts = [streams.begun].into_iter().chain(shapes.map(|(_, count)| count));
        table.row([target.name.clone()].into_iter().chain(counts.map(format::count)));
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
