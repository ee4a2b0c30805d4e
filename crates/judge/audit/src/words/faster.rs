//! "2x faster", "40 % lower latency": against the figures of the two that the sentence names.

use super::Claim;
use crate::finding::Findings;
use crate::heading::Quantity;
use crate::number::{Bound, Locale, Number};
use crate::reading::Reading;
use crate::record::{Record, Value};
use crate::rules::digits;
use crate::unit::{Dimension, Unit};

/// A comparison in words.
struct Comparison {
    number: Number,
    /// The ratio that it claims, as what the digits allow.
    low: f64,
    high: f64,
}

pub(super) fn check(claim: &Claim<'_>, reading: &Reading, findings: &mut Findings) {
    if claim.is_hedged() || claim.has(&["than before", "previous", "earlier", "since v", "last "]) {
        return;
    }
    let Some(comparison) = comparison(&claim.text) else { return };
    let Some((one, other)) = pair(claim, reading) else { return };
    let ratios = ratios(one, other);
    if ratios.is_empty()
        || ratios.iter().any(|(value, low, high): &(&Value, f64, f64)| {
            let wanted = (comparison.low, comparison.high);
            // `up to` and `over` still need one figure that reaches it.
            let reaches =
                *high >= wanted.0 && (*low <= wanted.1 || comparison.number.bound != Bound::Is);
            reaches && !value.cell.is_empty()
        })
    {
        return;
    }
    let largest = ratios.iter().max_by(|one, other| one.2.total_cmp(&other.2));
    let Some((value, low, high)) = largest else { return };
    let because = format!(
        "{} and {} differ at most by {} times ({})",
        one.label,
        other.label,
        digits(low.midpoint(*high)),
        value.quantity.name()
    );
    findings.add(claim.finding("faster words", because, "the ratio of the figures"));
}

/// `2x faster`, `1.5 times the throughput`, `40% lower latency`
fn comparison(text: &str) -> Option<Comparison> {
    const WORDS: [&str; 12] = [
        "faster",
        "higher",
        "more throughput",
        "lower",
        "less",
        "slower",
        "throughput",
        "better",
        "quicker",
        "improvement",
        "reduction",
        "speedup",
    ];
    let starts = text.char_indices().filter(|(at, c)| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        c.is_ascii_digit() && before.is_none_or(|c| c.is_whitespace() || c == '(' || c == '~')
    });
    for (at, _) in starts {
        let Some(mut number) = text.get(at..).and_then(|rest| Number::parse(rest, Locale::Point))
        else {
            continue;
        };
        if number.unit.is_none() && number.rest.starts_with("times") {
            number.unit = Some(Unit { dimension: Dimension::Factor, scale: 1.0 });
        }
        let Some(unit) = number.unit else { continue };
        let rest = number.rest.trim_start_matches(['x', '-', ' ']);
        let near: String = rest.chars().take(30).collect();
        if !WORDS.iter().any(|word| near.contains(word)) {
            continue;
        }
        let (low, high) = match unit.dimension {
            Dimension::Factor => (number.low, number.high),
            Dimension::Share => {
                let (low, high) = (number.low / 100.0, number.high / 100.0);
                (1.0 + low, (1.0 + high).max(1.0 / (1.0 - high.min(0.999))))
            }
            _ => continue,
        };
        let up_to = text.get(..at).is_some_and(|before| before.trim_end().ends_with("up to"));
        if up_to {
            number.bound = Bound::Below;
        }
        return Some(Comparison { number, low, high });
    }
    None
}

/// The two that the sentence names; the only two there are, if it names one.
fn pair<'doc>(claim: &Claim<'_>, reading: &'doc Reading) -> Option<(&'doc Record, &'doc Record)> {
    let mut found: Option<(&Record, &Record)> = None;
    for table in &reading.tables {
        let named: Vec<&Record> =
            table.records.iter().filter(|record| names(claim, &record.label)).collect();
        let pair = match (named.as_slice(), table.records.as_slice()) {
            ([one, other], _) => (*one, *other),
            ([_], [one, other]) => (one, other),
            _ => continue,
        };
        if found.is_some() {
            return None;
        }
        found = Some(pair);
    }
    found
}

fn names(claim: &Claim<'_>, label: &str) -> bool {
    let label = label.trim().to_lowercase();
    label.chars().count() >= 2
        && claim.text.match_indices(&label).any(|(at, word)| {
            let before = claim.text.get(..at).and_then(|text| text.chars().next_back());
            let after = claim.text.get(at + word.len()..).and_then(|text| text.chars().next());
            ![before, after].into_iter().flatten().any(char::is_alphanumeric)
        })
}

/// Ratios of figures of one kind, the larger over the smaller, with what the digits allow.
fn ratios<'rec>(one: &'rec Record, other: &Record) -> Vec<(&'rec Value, f64, f64)> {
    let matches = one
        .values
        .iter()
        .filter(|value: &&Value| {
            matches!(value.quantity, Quantity::Time(_) | Quantity::Rate | Quantity::DataRate)
                && value.number.is_plain()
                && value.number.low > 0.0
        })
        .filter_map(|value| {
            let against = other.get(value.quantity, &value.of)?;
            let (a, b) = if value.number.value >= against.number.value {
                (&value.number, &against.number)
            } else {
                (&against.number, &value.number)
            };
            (b.low > 0.0).then(|| (value, a.low / b.high, a.high / b.low))
        });
    matches.collect()
}
