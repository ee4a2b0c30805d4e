//! The table of the overhead of targets for the same requests.

use plimsoll_report::table::Table;

use crate::comparison_result::ComparisonResult;
use crate::report::Section;
use crate::target::DIRECT;

/// The table: a row for each tier, or whatever else was compared, and target.
pub(super) fn section(what: &str, compared: &[ComparisonResult]) -> Option<Section> {
    let reference = compared.iter().map(ComparisonResult::reference).find(|name| !name.is_empty());
    let behind = reference.unwrap_or_default();
    let heads = format!(
        "{}|Target|added, median|p99 shift|p50|{behind} p50|Figure|Requests on each",
        capitalised(what)
    );
    let mut table = Table::new(heads.split('|'));
    for result in compared {
        for target in result.compared() {
            table.row([
                format!("{}{}", result.marker(), result.label),
                target.to_owned(),
                result.added_cell(target),
                result.tail_cell(target),
                result.p50(target),
                result.p50(result.reference()),
                result.figure(),
                result.pairs(),
            ]);
        }
    }
    let against = if behind == DIRECT { "the upstream" } else { behind };
    let title = format!("Overhead by {what}: each target against {against}");
    (!compared.is_empty()).then(|| Section::new(title, table))
}

/// A word at the head of a column.
fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    format!("{}{rest}", first.to_ascii_uppercase())
}
