//! What could have been seen.

use plimsoll_stats::Looks;
use plimsoll_stats::power::{detectable, failures_one_in};

use crate::figure::Figure;
use crate::result::{Detectable, Difference, ErrorDifference, Kind};

/// For each two targets, from what was measured.
pub(crate) fn of(
    headline: Figure,
    looks: Looks,
    differences: &[Difference],
    errors: &[ErrorDifference],
) -> Vec<Detectable> {
    errors
        .iter()
        .map(|error| Detectable {
            target: error.target.clone(),
            reference: error.reference.clone(),
            added_ns: differences
                .iter()
                .find(|found| {
                    found.is_of(&error.target, &error.reference)
                        && (found.figure, found.kind) == (headline, Kind::Added)
                        && found.quantile == "p50"
                })
                .and_then(|found| added(found, looks)),
            one_failure_in: failures_one_in(error.pairs, looks),
        })
        .collect()
}

fn added(difference: &Difference, looks: Looks) -> Option<f64> {
    let (_, low, high) = difference.measured()?;
    let (batches, freedom) = (difference.batches?, difference.degrees_of_freedom?);
    Some(detectable((high - low) / 2.0, batches, freedom, looks))
}
