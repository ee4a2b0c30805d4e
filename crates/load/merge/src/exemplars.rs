//! Single requests of all shards.

use std::cmp::Reverse;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use plimsoll_metrics::{Chosen, ExemplarRequest, RunExemplars};

const ALL: [Chosen; 4] = [Chosen::ResponseTime, Chosen::Ttft, Chosen::LongestGap, Chosen::Random];

/// The slowest requests of all shards, and random ones; `None` if no shard kept any.
pub(crate) fn merge(mut shards: Vec<RunExemplars>) -> Option<RunExemplars> {
    let requests: Vec<_> =
        shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.requests)).collect();
    let offered = shards.iter().map(|shard| shard.offered).sum();
    let first = shards.into_iter().next()?;
    let mut kept = choose(requests);
    kept.sort_by(|a, b| a.intended_s.total_cmp(&b.intended_s));
    Some(RunExemplars { offered, requests: kept, ..first })
}

/// For each reason the requests that would have been kept of the whole.
fn choose(mut requests: Vec<ExemplarRequest>) -> Vec<ExemplarRequest> {
    for reason in ALL {
        let mut order: Vec<_> =
            (0..requests.len()).filter(|&n| requests[n].chosen.contains(&reason)).collect();
        order.sort_by_key(|&n| Reverse(rank(&requests[n], reason)));
        for &beyond in order.iter().skip(reason.most()) {
            requests[beyond].chosen.retain(|other| *other != reason);
        }
    }
    requests.retain(|request| !request.chosen.is_empty());
    requests
}

/// Sort key of a list: a time in nanoseconds, or for random exemplars a number derived from the id.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times above zero")]
fn rank(request: &ExemplarRequest, reason: Chosen) -> u64 {
    let ms = match reason {
        Chosen::ResponseTime => request.response_time_ms.or(request.open_ms),
        Chosen::Ttft => request.ttft_ms,
        Chosen::LongestGap => request.gap_max_ms,
        Chosen::Random => {
            let hasher = BuildHasherDefault::<DefaultHasher>::default();
            return hasher.hash_one(&request.request_id);
        }
    };
    (ms.unwrap_or(0.0) * 1e6) as u64
}
