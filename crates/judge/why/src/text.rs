//! The bottleneck as text of 80 columns.

use plimsoll_metrics::{LoadModel, ProcessLoad};
use plimsoll_report::format::{DASH, count, cut, digits, or_dash, percent, rate, time, wrap};
use plimsoll_report::printable;
use plimsoll_report::table::{Layout, Table};

use crate::cpu;
use crate::result::{Answer, Load, NoSplit, Observed, Split, State, TtfbParts, Why};

const WIDTH: usize = 80;
/// Maximum number of processes listed; any others are counted.
const LISTED: usize = 8;
/// Text for a load that may have been at its limit.
const UNSHOWN: &str = "No bottleneck shown: two levels of users would show whether they queue.
  fix: add a level of half the users or fewer";
/// Width of the name column.
const NAME: usize = 24;
/// The answer for a load with hardly any successful response.
const FAILED: &str = "Not judged: most requests failed.";

/// Formats the finding, the load, a row per process, and the split.
pub fn text(why: &Why) -> String {
    let mut lines = match &why.finding {
        Some(finding) => {
            let mut lines = wrap(&finding.text(), WIDTH);
            lines.extend(labelled("fix", &finding.fix()));
            lines
        }
        None if why.load.is_none() => vec!["No finished stage to judge.".to_owned()],
        None if why.answer == Answer::Unknown => UNSHOWN.lines().map(str::to_owned).collect(),
        // A load at its limit has a bottleneck, known or not, unless it is not judged.
        None if why.load.iter().any(|load| load.at_limit) => vec![FAILED.to_owned()],
        None => vec!["No bottleneck found.".to_owned()],
    };
    lines.extend(why.load.iter().flat_map(|load| shown(&of_load(load))));
    lines.extend(shown(&of_processes(&why.observed)));
    let more = why.observed.len().saturating_sub(LISTED);
    lines.extend((more > 0).then(|| format!("  {more} more")));
    lines.extend(why.split.iter().flat_map(|split| shown(&of_split(split))));
    let reason = why.no_split.filter(|reason| *reason != NoSplit::NoSource);
    let reason = reason.map(|reason| reason.name().replace('_', " "));
    let unknown = reason.iter().flat_map(|why| labelled("where requests wait is unknown", why));
    lines.extend(unknown);
    lines.extend(why.own_word.iter().flat_map(|own| shown(&of_own_word(own))));
    printable(&(lines.join("\n") + "\n")).into_owned()
}

fn labelled(label: &str, text: &str) -> Vec<String> {
    let lead = format!("  {label}: ");
    let lines = wrap(text, WIDTH - lead.len()).into_iter().enumerate();
    let indent = " ".repeat(lead.len());
    lines.map(|(at, line)| (if at == 0 { &lead } else { &indent }).clone() + &line).collect()
}

fn shown(table: &Table) -> Vec<String> {
    if table.rows.is_empty() {
        return Vec::new();
    }
    table.lines(&Layout { drops_dashes: true, drops_columns: true, ..Layout::new(WIDTH) })
}

fn of_load(load: &Load) -> Table {
    let mut table = Table::new(["stage", "users", "sent/s", "done/s", "in flight", "backlog"]);
    let backlog = Some(load.backlog).filter(|_| load.model == LoadModel::Open);
    table.row([
        cut(&load.stage, NAME),
        or_dash(load.users, digits),
        rate(Some(load.sent_per_s)),
        rate(Some(load.throughput_per_s)),
        or_dash(load.in_flight, digits),
        or_dash(backlog, digits),
    ]);
    table
}

fn of_processes(observed: &[Observed]) -> Table {
    let head = ["part", "process", "state", "CPUs", "of", "waits", "busiest thread"];
    let mut table = Table::new(head);
    for one in observed.iter().take(LISTED) {
        let load = one.process.as_ref();
        let state = match one.state {
            State::Full => "FULL",
            State::Starved => "STARVED",
            State::Clear => "clear",
            State::Unknown => "unknown",
        };
        let number = |of: fn(&ProcessLoad) -> Option<f64>| {
            or_dash(load.filter(|load| !load.gone).and_then(of), |number| format!("{number:.2}"))
        };
        table.row([
            one.suspect.name().to_owned(),
            or_dash(load, |load| cut(&load.name, NAME)),
            state.to_owned(),
            number(|load| Some(load.cores)),
            or_dash(load.and_then(cpu::limit), |cpus| {
                format!("{}", (cpus * 100.0).round() / 100.0)
            }),
            number(|load| load.waiting),
            load.and_then(|load| load.threads.first()).map_or_else(
                || DASH.to_owned(),
                |thread| format!("{} {:.2}", cut(&thread.name, NAME), thread.cores),
            ),
        ]);
    }
    table
}

fn of_split(split: &Split) -> Table {
    let mut table = Table::new(["in flight", "requests", "share"]);
    for part in &split.parts {
        let share = percent(part.in_flight / split.in_flight);
        table.row([part.place.clone(), digits(part.in_flight), share]);
    }
    table
}

fn of_own_word(own: &TtfbParts) -> Table {
    let responses = format!("{} responses", count(own.responses));
    let mut table = Table::new(["target's headers", &responses]);
    for part in &own.parts {
        table.row([cut(&part.name, NAME), time(part.mean_ms)]);
    }
    table.row(["network, rest".to_owned(), time(own.rest_ms)]);
    table
}
