//! Where the requests in flight were, by Little's law: `N = X R`. What the provider takes is told
//! by a target that asks it directly, or by a join with the gateway's own log.

use plimsoll_join::{Join, StageTimes, Verdict};
use plimsoll_metrics::RunSummary;
use plimsoll_report::format::{count, percent, time};

use crate::growth::mean;
use crate::load::Stage;
use crate::result::{Part, Split};

/// The parts must make up what was in flight but for this share: requests that cross the ends of
/// the stage are in one of the two alone.
const TOLERANCE: f64 = 0.02;
/// Steps of a log's times, in milliseconds, from which on a reader is told: below, no printed digit
/// depends on them.
const COARSE_MS: f64 = 0.01;
/// The share of a stage's requests that a log must have: the rest could move a mean by as much.
const MATCHED: f64 = 0.99;

/// The split of a stage, or why there is none.
///
/// What was in flight is an integral over time that the workers took from the clock; the parts are
/// rates and response times of requests that completed. The two differ where requests failed or had
/// no end, or where many began before the stage or ended after it: then there is no split.
pub(crate) fn split(
    summary: &RunSummary,
    stage: &Stage<'_>,
    join: Option<&Join>,
) -> Result<Split, String> {
    match join {
        _ if has_direct(summary) => by_direct(summary, stage),
        Some(join) => by_join(summary, stage, join),
        None => Err("nothing tells the provider's part; `plimsoll versus --direct URL` measures \
                     it, or `plimsoll join` reads it from the gateway's log"
            .to_owned()),
    }
}

/// Whether a target asks the provider without the gateway.
pub(crate) fn has_direct(summary: &RunSummary) -> bool {
    summary.metadata.targets.iter().any(|target| target.direct)
}

fn part(place: impl Into<String>, in_flight: f64) -> Part {
    Part { place: place.into(), in_flight }
}

/// The split, if its parts make up what the workers counted.
fn checked(stage: &Stage<'_>, parts: Vec<Part>, evidence: String) -> Result<Split, String> {
    let in_flight = stage.info.mean_in_flight.filter(|mean| *mean > 0.0);
    let in_flight = in_flight.ok_or("what was in flight is not known")?;
    let sum: f64 = parts.iter().map(|part| part.in_flight).sum();
    let adds_up_to = sum / in_flight;
    if (adds_up_to - 1.0).abs() > TOLERANCE {
        let share = percent(adds_up_to);
        return Err(format!(
            "rate x time of what completed is {share} of what was in flight, not within 2 % of it"
        ));
    }
    Ok(Split { in_flight, parts, adds_up_to, evidence: Some(evidence) })
}

/// The mean response time of the requests to a target in milliseconds, and their rate.
fn mean_and_rate(
    summary: &RunSummary,
    stage: &Stage<'_>,
    target: &str,
) -> Result<(f64, f64), String> {
    let (mean_ms, requests) = mean(summary, stage, target)
        .ok_or_else(|| format!("the mean response time of `{target}` must not be used"))?;
    Ok((mean_ms, requests as f64 / stage.info.duration_s))
}

fn by_direct(summary: &RunSummary, stage: &Stage<'_>) -> Result<Split, String> {
    let targets = &summary.metadata.targets;
    let (mut direct_ms, mut directly) = (None, 0.0);
    for target in targets.iter().filter(|target| target.direct) {
        let (mean_ms, rate) = mean_and_rate(summary, stage, &target.name)?;
        directly += rate * mean_ms / 1e3;
        direct_ms = direct_ms.or(Some((mean_ms, &target.name)));
    }
    let (direct_ms, direct) = direct_ms.ok_or("the run has no direct target")?;
    let mut parts = vec![part("provider, asked directly", directly)];
    for target in targets.iter().filter(|target| !target.direct) {
        let (mean_ms, rate) = mean_and_rate(summary, stage, &target.name)?;
        if mean_ms < direct_ms {
            return Err(format!("`{}` is faster than the direct target", target.name));
        }
        let name = &target.name;
        parts.push(part(format!("gateway {name}"), rate * (mean_ms - direct_ms) / 1e3));
        parts.push(part(format!("provider behind {name}"), rate * direct_ms / 1e3));
    }
    checked(stage, parts, format!("the mean response times of the targets and of `{direct}`"))
}

/// The split by what the gateway's own log says of each request.
fn by_join(summary: &RunSummary, stage: &Stage<'_>, join: &Join) -> Result<Split, String> {
    let [target] = summary.metadata.targets.as_slice() else {
        return Err("the run has several targets, and a log is that of one".to_owned());
    };
    let times = usable(summary, stage, join)?;
    let (mean_ms, rate) = mean_and_rate(summary, stage, &target.name)?;
    let in_flight = |ms: f64| rate * ms / 1e3;
    let mut parts = Vec::new();
    // From the intended start to the dispatch.
    let before_ms = mean_ms - times.client_ms;
    if before_ms > TOLERANCE * mean_ms {
        parts.push(part("not yet sent", in_flight(before_ms)));
    }
    if let Some(gateway_ms) = times.gateway_ms {
        parts.push(part("outside", in_flight(times.outside_ms)));
        parts.push(part("gateway", in_flight(gateway_ms)));
    } else {
        parts.push(part("in front of the provider", in_flight(times.outside_ms)));
    }
    parts.push(part("provider", in_flight(times.upstream_ms)));
    let (matched, completed) = (count(times.matched), count(times.completed));
    let steps = join.steps_ms.filter(|steps| *steps >= COARSE_MS);
    let steps =
        steps.map_or_else(String::new, |ms| format!(", whose times have steps of {}", time(ms)));
    let log = &join.log;
    let evidence =
        format!("{matched} of {completed} completed requests, matched with {log}{steps}");
    checked(stage, parts, evidence)
}

/// The times of the stage, if the join vouches for them.
fn usable<'j>(
    summary: &RunSummary,
    stage: &Stage<'_>,
    join: &'j Join,
) -> Result<&'j StageTimes, String> {
    let run_id = &summary.metadata.run.run_id;
    if join.run_id.as_ref().is_some_and(|own| own != run_id) {
        return Err("the join is of another run".to_owned());
    }
    let books = &join.books;
    match &join.verdict {
        Verdict::Agree => {}
        Verdict::Disagree => {
            return Err(format!(
                "run and log disagree (`plimsoll join`): {} lost, {} twice, {} disagreeing",
                count(books.lost),
                count(books.twice),
                count(books.disagreeing)
            ));
        }
        Verdict::Unjudged(why) => return Err(format!("the join cannot be judged: {why}")),
    }
    if let Some(why) = &join.times_refused {
        return Err(format!("the times of the log are not compared: {why}"));
    }
    let name = &stage.info.name;
    let times = join.stages.iter().find(|times| times.stage == *name).ok_or_else(|| {
        format!(
            "the join has no upstream times of the stage {name}; if the log has them, map their \
             column: `plimsoll join ... --map upstream=COLUMN:UNIT`"
        )
    })?;
    let share = times.matched as f64 / times.completed.max(1) as f64;
    if share < MATCHED {
        return Err(format!(
            "the join has the upstream times of {} of {} requests of the stage {name}, less than \
             99 %",
            count(times.matched),
            count(times.completed)
        ));
    }
    Ok(times)
}
