//! Whether the network limited the load.

use plimsoll_metrics::{LinkLoad, Metric, QUANTILES};
use plimsoll_report::format::{count, percent};

use crate::load::Stage;
use crate::result::{Finding, State, Suspect};

/// Share of segments sent again from which on a network loses too many (`judge.md`, section 7): a
/// lost one delays its request by 200 ms (Linux's least retransmission time-out) or, in a long
/// answer, by a round trip. Those that the other side had already do not count: a server that a
/// quota stops acknowledges late, and nothing is lost.
const RETRANSMITTED: f64 = 0.001;
/// And at least so many: a few may be those of other programs, or of a connection that ended.
const LEAST: u64 = 10;
/// Linux's least retransmission time-out, in milliseconds: the first segment of a request or of an
/// answer that is lost comes so much later. The counters are those of the whole host. Where no
/// request of the run took that much longer than the median, other programs lost the segments.
const LEAST_TIMEOUT_MS: f64 = 200.0;
/// Share of the speed of a link at which it is full (`judge.md`, section 7).
const LINK_FULL: f64 = 0.9;

/// Judges the host's network. Sockets that overflow are no limit of the network while a
/// process is full: one that has no time to accept connections lets its queue overflow.
pub(crate) fn finding(stage: &Stage<'_>, full_process: bool) -> Finding {
    let Some(load) = stage.resources.and_then(|all| all.network.as_ref()) else {
        let missing = Some("the run has no counters of its host's network".to_owned());
        let (suspect, state) = (Suspect::Network, State::Unknown);
        return Finding {
            suspect,
            process: None,
            state,
            evidence: Vec::new(),
            used: None,
            missing,
        };
    };
    let lost = load.retransmitted.saturating_sub(load.needless);
    let share = lost as f64 / load.segments.max(1) as f64;
    let host_loses = share > RETRANSMITTED && lost >= LEAST;
    let loses = host_loses && waited_for_segments(stage);
    let used = load.link.as_ref().map(|link| link.received.max(link.sent));
    let full = used.is_some_and(|used| used >= LINK_FULL);
    let overflows = load.listen_overflows > 0 && !full_process;
    let saturated = loses || full || overflows;
    let state = if saturated { State::Saturated } else { State::Clear };
    let mut evidence = vec![format!(
        "{} of {} segments lost{}",
        count(lost),
        count(load.segments),
        if lost > 0 { format!(" ({})", percent(share)) } else { String::new() }
    )];
    if host_loses && !loses {
        evidence.push("no request waited for one: they are those of other programs".to_owned());
    }
    if load.needless > 0 {
        evidence.push(format!("{} sent again without need", count(load.needless)));
    }
    let overflow = (load.listen_overflows > 0).then(|| {
        format!("{} connections found the queue of a socket full", count(load.listen_overflows))
    });
    // The reason comes first.
    let place = usize::from(loses || !overflows);
    evidence.splice(place..place, overflow);
    let link = load.link.as_ref().zip(used).map(|(link, used)| {
        let LinkLoad { name, mbit_per_s, .. } = link;
        format!("{} of the {mbit_per_s} Mbit/s of {name}", percent(used))
    });
    let place = if full && !loses { 0 } else { evidence.len() };
    evidence.splice(place..place, link);
    Finding { suspect: Suspect::Network, process: None, state, evidence, used, missing: None }
}

/// Whether a request took so long as one does that waits for a lost segment.
fn waited_for_segments(stage: &Stage<'_>) -> bool {
    let Some(times) = stage.group.distribution(Metric::ServiceTime) else { return false };
    let (slowest, median) = (times.max_figure(), times.figure(&QUANTILES[0]));
    let slowest = slowest.value - slowest.bound;
    median.is_none_or(|median| slowest >= median.value + LEAST_TIMEOUT_MS)
}
