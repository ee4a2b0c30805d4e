//! Cache results according to the log and the response headers.

use plimsoll_measure::CacheState;

use crate::result::Caches;
use crate::run::Run;

/// Counts over all matched requests; `None` if the log has no cache states.
pub(crate) fn caches(run: &Run) -> Option<Caches> {
    let mut caches = Caches::default();
    for request in run.requests.iter().filter(|request| request.rows > 0) {
        match request.log.cache {
            Some(CacheState::Hit) => caches.hits += 1,
            Some(CacheState::Miss) => caches.misses += 1,
            Some(CacheState::Bypass) => caches.bypassed += 1,
            None => caches.unknown += 1,
        }
        let both = request.cache.zip(request.log.cache);
        let unlike = both
            .is_some_and(|(header, log)| (header == CacheState::Hit) != (log == CacheState::Hit));
        caches.unlike_headers += u64::from(unlike);
    }
    (caches.hits + caches.misses + caches.bypassed > 0).then_some(caches)
}
