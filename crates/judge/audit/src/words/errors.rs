//! "zero errors", "no failed requests": against counts and shares of errors.

use super::Claim;
use crate::finding::Findings;
use crate::heading::Quantity;
use crate::reading::Reading;
use crate::record::Value;

const CLAIMS: [&str; 10] = [
    "zero errors",
    "no errors",
    "without errors",
    "0 errors",
    "zero failures",
    "no failures",
    "no failed requests",
    "error-free",
    "zero failed requests",
    "without a single error",
];

pub(super) fn check(claim: &Claim<'_>, reading: &Reading, findings: &mut Findings) {
    let denied = claim.has(&["not ", "n't", "0 errors per", "if ", "should", "target", "goal"]);
    let counted = claim.text.match_indices("0 errors").all(|(at, _)| {
        let before = claim.text.get(..at).and_then(|text| text.chars().next_back());
        before.is_some_and(|c| c.is_ascii_digit() || c == ',' || c == '.')
    });
    let words = CLAIMS.iter().any(|word| *word != "0 errors" && claim.text.contains(word));
    if denied || !(words || claim.has(&CLAIMS) && !counted) {
        return;
    }
    let here = values(reading, Some(claim.line.section));
    let values = if here.is_empty() { values(reading, None) } else { here };
    let any = claim.has(&["all ", "any ", "every", "across", "throughout", "each "]);
    let with_errors: Vec<_> = values.iter().filter(|value| value.number.low > 0.0).collect();
    if with_errors.len() < values.len() && !any {
        return;
    }
    let Some(first) = with_errors.first() else { return };
    let because = format!("{} ({}, line {})", first.says(), first.cell, first.line);
    findings.add(claim.finding("error words", because, "the number of errors"));
}

fn values(reading: &Reading, section: Option<usize>) -> Vec<&Value> {
    let tables =
        reading.tables.iter().filter(|table| section.is_none_or(|wanted| table.section == wanted));
    let values = tables.flat_map(|table| &table.records).flat_map(|record| &record.values);
    values
        .filter(|value| matches!(value.quantity, Quantity::Errors | Quantity::ErrorShare))
        .filter(|value| value.number.is_plain() && value.of.is_empty())
        .collect()
}
