//! Expected and actual policy decisions.

use plimsoll_measure::PolicyDecision;
use plimsoll_metrics::confusion_matrix::UNANSWERED;
use plimsoll_metrics::{Group, RunSummary};

use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Policy");
    if summary.results.total.policy_decisions.is_empty() {
        return chapter;
    }
    chapter.table(&matrix(summary));
    let stages: Vec<_> = summary.results.by_stage.iter().filter(|stage| !stage.warmup).collect();
    if stages.len() > 1 {
        let mut table = Table::new(["by stage", "judged", "correct", "blocked", "unexpected"]);
        for stage in stages {
            table.row(shares(stage.stage.as_deref().unwrap_or_default(), stage));
        }
        chapter.table(&table);
    }
    chapter
}

/// How often the decision was the expected one.
pub(in crate::run_screen) fn sentence(total: &Group) -> String {
    let counters = &total.counters;
    format!(
        "Policy correctness {}: {} of {} answered requests have the policy decision that their scenario \
         expects. Blocked {}, unexpected {}.",
        format::share_of(total.rates.policy_correctness),
        format::count(counters.as_expected),
        format::count(counters.judged),
        format::share_of(total.rates.block_rate),
        format::share_of(total.rates.error_rate),
    )
}

/// A row for each expected policy decision of each category, or of each scenario without
/// categories.
fn matrix(summary: &RunSummary) -> Table {
    let groups: Vec<_> = match summary.results.by_category.as_slice() {
        [] => summary.results.by_scenario.iter().map(|g| (g.scenario.as_deref(), g)).collect(),
        categories => categories.iter().map(|g| (g.category.as_deref(), g)).collect(),
    };
    let shown: Vec<_> =
        groups.into_iter().filter(|(_, group)| !group.policy_decisions.is_empty()).collect();
    let mut rows: Vec<(&str, &Group)> =
        shown.iter().map(|(name, group)| (name.unwrap_or_default(), *group)).collect();
    if rows.len() != 1 {
        rows.push(("total", &summary.results.total));
    }
    let words = PolicyDecision::ALL.map(PolicyDecision::name);
    let head = ["expected and actual", "expected"].into_iter().chain(words);
    let mut table = Table::new(head.chain([UNANSWERED, "correct"]));
    for (name, group) in rows {
        for (expected, actual) in &group.policy_decisions {
            let mut cells = vec![name.to_owned(), expected.clone()];
            let count = |word: &str| actual.get(word).copied().unwrap_or_default();
            let all = words.into_iter().chain([UNANSWERED]);
            cells.extend(all.map(|word| match count(word) {
                0 => "-".to_owned(),
                n => format::count(n),
            }));
            let answered: u64 = words.into_iter().map(count).sum();
            let share = (answered > 0).then(|| count(expected) as f64 / answered as f64);
            cells.push(format::share_of(share));
            table.row(cells);
        }
    }
    table
}

fn shares(label: &str, group: &Group) -> Vec<String> {
    let rates = &group.rates;
    let mut cells = vec![label.to_owned(), format::count(group.counters.judged)];
    let shown = [rates.policy_correctness, rates.block_rate, rates.error_rate];
    cells.extend(shown.map(format::share_of));
    cells
}
