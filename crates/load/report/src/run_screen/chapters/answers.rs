//! How requests were answered: failures by error class and side, HTTP statuses, errors of JSON-RPC,
//! and what the target says of itself in response headers.

use plimsoll_measure::ErrorClass;
use plimsoll_metrics::Group;
use plimsoll_metrics::catalog::side_word;

use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

pub(super) fn chapter(total: &Group) -> Chapter {
    let mut chapter = Chapter::new("Answers");
    chapter.table(&table(total));
    let statuses = total.statuses.iter().map(|(code, n)| format!("{code} x {}", format::count(*n)));
    let rpc = total.rpc_errors.iter().map(|(code, n)| format!("{code} x {}", format::count(*n)));
    let kinds: [(&str, Vec<String>); 2] =
        [("HTTP statuses", statuses.collect()), ("JSON-RPC errors", rpc.collect())];
    for (kind, counts) in kinds.iter().filter(|(_, counts)| !counts.is_empty()) {
        chapter.text(&format!("{kind}: {}", counts.join(", ")));
    }
    own_words(&mut chapter, total);
    chapter
}

/// One line for each thing that the target speaks of: caches and retries.
fn own_words(chapter: &mut Chapter, total: &Group) {
    let counters = &total.counters;
    let states = [
        (counters.cache_hits, "hits"),
        (counters.cache_misses, "misses"),
        (counters.cache_bypassed, "bypassed"),
    ];
    let said: u64 = states.iter().map(|(count, _)| count).sum();
    if said > 0 {
        let all: u64 = total.statuses.values().sum();
        let shown = states.iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<_> =
            shown.map(|(count, name)| format!("{} {name}", format::count(*count))).collect();
        let silent = all.saturating_sub(said);
        if silent > 0 {
            parts.push(format!("{} did not say", format::count(silent)));
        }
        chapter.text(&format!("Caches, by response headers: {}", parts.join(", ")));
    }
    if counters.upstream_retries > 0 {
        chapter.text(&format!(
            "Upstream retries, by response headers: {} in {} requests",
            format::count(counters.upstream_retries),
            format::count(counters.retried_upstream)
        ));
    }
}

fn table(total: &Group) -> Table {
    let mut table = Table::new(["class", "side", "requests", "of scheduled"]);
    for class in ErrorClass::ALL {
        if let Some(&count) = total.errors.get(class.name()) {
            let share = count as f64 / total.counters.scheduled as f64;
            table.row(vec![
                class.name().to_owned(),
                side_word(class.side()).to_owned(),
                format::count(count),
                format::share(share),
            ]);
        }
    }
    table
}
