//! Several searches that take turns probe by probe, so that the machine's drift reaches all alike.

use crate::probe::{Measured, Planned};
use crate::search::Search;

/// Carries searches out until all are over. `probe` makes the next probe of the search with that
/// index; `None` from it is the user's interrupt and ends all of them.
///
/// The order within a round rotates: none is always right after the same other one.
///
/// # Errors
/// The first that `probe` has.
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
            // An odd round goes backwards.
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
