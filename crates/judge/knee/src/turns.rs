//! Runs several searches that alternate probe by probe, so that a drift of the machine affects all
//! alike.

use crate::probe::{Measured, Planned};
use crate::search::Search;

/// Runs searches until all of them end. `probe` runs the next probe of the search with that index;
/// if it returns `None`, the user interrupted all searches.
///
/// The order rotates from round to round, so that no search always follows the same other one.
///
/// # Errors
/// The first error of `probe`.
pub fn in_turns<E>(
    searches: &mut [Search],
    mut probe: impl FnMut(usize, Planned, &Search) -> Result<Option<Measured>, E>,
) -> Result<(), E> {
    let count = searches.len();
    for round in 0.. {
        if searches.iter().all(|search| search.next().is_none()) {
            break;
        }
        for place in 0..count {
            // Odd rounds run backwards.
            let turn = if round % 2 == 0 { place } else { count - 1 - place };
            let index = (turn + round / 2) % count;
            let elapsed_s = searches.iter().map(Search::spent_s).sum();
            let search = &mut searches[index];
            let Some(planned) = search.next() else { continue };
            let Some(measured) = probe(index, planned, search)? else {
                searches.iter_mut().for_each(Search::interrupt);
                return Ok(());
            };
            search.record(elapsed_s, measured);
        }
    }
    Ok(())
}
