//! The table of what targets add to the same requests.

use plimsoll_report::table::Table;

use crate::comparison_result::ComparisonResult;
use crate::report::Section;
use crate::target::DIRECT;

/// The table: a row for each tier, or whatever else was compared, and target.
pub(super) fn section(what: &str, compared: &[ComparisonResult]) -> Option<Section> {
    let reference = compared.iter().map(ComparisonResult::reference).find(|name| !name.is_empty());
    let behind = reference.unwrap_or_default();
    let of_reference = format!("{behind} p50");
    let capitalised = capitalised(what);
    let heads = [
        capitalised.as_str(),
        "Target",
        "added, median",
        "p99 shift",
        "p50",
        &of_reference,
        "Figure",
        "Requests on each",
    ];
    let mut table = Table::new(heads);
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
    let against = if behind == DIRECT {
        "each target against the upstream".to_owned()
    } else {
        format!("each target against {behind}")
    };
    (!compared.is_empty()).then(|| Section::new(format!("What each {what} adds: {against}"), table))
}

/// A word at the head of a column.
fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    format!("{}{rest}", first.to_ascii_uppercase())
}
