//! The longest silence of a target.

use super::change::median;
use super::{DISTURBED, Silence};
use crate::catalog::Metric;
use crate::timeline::{RunTimeline, median_ms};

/// Parts of a second in which ended requests are counted.
pub(crate) const TENTHS: usize = 10;
/// The shortest silence, in tenths.
const LEAST: usize = 3;
/// Times the 90th percentile of all silences.
const TIMES: f64 = 8.0;
/// The number of silences as long that chance explains.
const CHANCE: f64 = 1e-4;
/// Requests that must have ended.
const LEAST_ENDED: u64 = 30;
/// The 90th percentile of exponential gaps, in means.
const P90: f64 = 2.303;
/// Times the median response, so that users in lockstep are not silent.
const RESPONSES: f64 = 1.5;
/// Requests in flight, and times the median response without an end, that are no usual silence.
const PILED: (u64, f64) = (5, 20.0);

/// The longest silence, if it is out of proportion and Plimsoll was not paused in it.
pub(super) fn longest(
    timeline: &RunTimeline,
    index: usize,
    target: &str,
    ended: &[u32],
) -> Option<Silence> {
    // After the load the last requests end one by one.
    let load = timeline.stages.last().map(|last| (last.start_s + last.duration_s) * 10.0)?;
    let ended: Vec<u32> = ended
        .iter()
        .zip(0_u32..)
        .take_while(|(_, at)| f64::from(*at) < load)
        .map(|(count, _)| *count)
        .collect();
    let ended = ended.as_slice();
    let all: u64 = ended.iter().map(|count| u64::from(*count)).sum();
    let runs = silent_runs(ended);
    let (start, length) = runs.iter().copied().max_by_key(|(_, length)| *length)?;
    if length < LEAST || all < LEAST_ENDED {
        return None;
    }
    let (start_s, length_s) = (start as f64 / 10.0, length as f64 / 10.0);
    let intervals = timeline.intervals.iter();
    let overlapping: Vec<_> = intervals
        .filter(|interval| {
            interval.start_s < start_s + length_s
                && interval.start_s + interval.length_s > start_s - 1.0
        })
        .collect();
    // Those in flight are counted at the ends of intervals. A silence without such an end is judged
    // by those around it.
    let waiting = overlapping.iter().filter_map(|interval| {
        Some((interval.start_s + interval.length_s, *interval.in_flight.get(index)?))
    });
    let within =
        waiting.clone().filter(|(end, _)| *end > start_s + 0.1 && *end < start_s + length_s);
    let within = within.map(|(_, waiting)| waiting).min();
    let in_flight = within.or_else(|| waiting.map(|(_, waiting)| waiting).min())?;
    let response = response_ms(timeline, target)? / 100.0;
    let (many, responses) = PILED;
    let piled = if in_flight >= many { responses * response } else { f64::INFINITY };
    let least = (TIMES * usual_tenths(&runs, all, ended.len()))
        .min(piled)
        .max(by_chance(&runs, length))
        .max(RESPONSES * response);
    let disturbed: f64 = overlapping.iter().map(|interval| interval.disturbed_s).sum();
    let is_ours = disturbed > DISTURBED * length_s;
    (length as f64 >= least && in_flight > 0 && !is_ours).then(|| Silence {
        target: target.to_owned(),
        start_s,
        length_s,
        in_flight,
    })
}

/// Start and length of each run without an end, between two ends.
fn silent_runs(ended: &[u32]) -> Vec<(usize, usize)> {
    let busy: Vec<usize> =
        ended.iter().enumerate().filter(|(_, count)| **count > 0).map(|(tenth, _)| tenth).collect();
    let gaps = busy.windows(2).map(|two| (two[0] + 1, two[1] - two[0] - 1));
    gaps.filter(|(_, length)| *length > 0).collect()
}

/// The length that chance explains, if the lengths of all other silences are geometric.
fn by_chance(runs: &[(usize, usize)], longest: usize) -> f64 {
    let others = runs.len() - 1;
    let all: usize = runs.iter().map(|(_, length)| length).sum();
    let goes_on = 1.0 - others as f64 / (all - longest).max(1) as f64;
    if others > 0 && goes_on > 0.0 {
        1.0 + (CHANCE / others as f64).ln() / goes_on.ln()
    } else {
        0.0
    }
}

/// The 90th percentile of the time between two ends, in tenths.
fn usual_tenths(runs: &[(usize, usize)], all: u64, tenths: usize) -> f64 {
    let beyond = usize::try_from(all / 10).unwrap_or(usize::MAX);
    let mut lengths: Vec<usize> = runs.iter().map(|(_, length)| length + 1).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let of_exponential = P90 * tenths as f64 / all as f64;
    lengths.get(beyond).map_or(of_exponential, |length| (*length as f64).max(of_exponential))
}

/// The median response of a target.
pub(super) fn response_ms(timeline: &RunTimeline, target: &str) -> Option<f64> {
    let groups = timeline.intervals.iter().flat_map(|interval| &interval.groups);
    let own = groups.filter(|group| group.target == target);
    let medians: Vec<f64> = own
        .filter_map(|group| median_ms(&group.times.get(Metric::ServiceTime.key())?.bins))
        .collect();
    (!medians.is_empty()).then(|| median(&medians))
}
