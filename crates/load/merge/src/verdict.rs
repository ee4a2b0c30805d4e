//! What shards that are missing, cut off, late or not simultaneous mean for the whole.

use plimsoll_metrics::{
    BandLevel, Interruption, Judgement, Reason, RunSummary, ShardPart, ShardState, Validity,
};

use crate::part::Spread;

/// Starts further apart than this, in seconds, are told.
const TOLD_SPREAD_S: f64 = 0.1;
/// Reasons that follow from a shard that was cut off.
const OF_CUT_OFF: [&str; 2] = ["accounting", "end of the run"];
/// The part of the load's length by which starts may lie apart.
const MOST_SPREAD: f64 = 0.02;

/// The figure of a rate that is only lower because a shard did not send its part.
const RATE: &str = "achieved_rate";

/// Makes the whole invalid where the load was not what was planned. Thresholds are then not judged.
/// A run that was `stopped` as a whole is an interrupted one, as it would be with one process.
pub(crate) fn apply(summary: &mut RunSummary, spread: Spread, stopped: bool) {
    let load_s: f64 = summary.metadata.stages.iter().map(|stage| stage.duration_s).sum();
    let apart = starts(spread, load_s);
    let lost = lost(&summary.shards).filter(|_| !stopped);
    let is_lost = lost.is_some();
    let mut reasons: Vec<_> = lost.into_iter().collect();
    if apart.is_none() && spread.began > 1 {
        summary.metadata.notes.push(together(spread));
    }
    if spread.seconds > load_s * MOST_SPREAD {
        reasons.extend(apart);
    } else {
        summary.warnings.extend(apart);
    }
    summary.warnings.extend(invalid_alone(&summary.shards));
    if reasons.is_empty() {
        return;
    }
    let why = format!("{}: {}", reasons[0].what, reasons[0].measured);
    for threshold in &mut summary.thresholds {
        threshold.judgement = Judgement::Inconclusive(why.clone());
    }
    for band in &mut summary.bands {
        band.level = BandLevel::Inconclusive(why.clone());
    }
    let cut_off =
        summary.shards.iter().any(|part| part.state == ShardState::Partial && !part.counted_all);
    if let Validity::Invalid(others) = &mut summary.validity {
        // What a shard had in flight when it was cut off has no outcome, and it saw no end.
        others.retain(|other| !cut_off || !OF_CUT_OFF.contains(&other.what.as_str()));
        others.retain(|other| !is_lost || other.figure.as_deref() != Some(RATE));
        reasons.append(others);
    }
    summary.validity = Validity::Invalid(reasons);
}

/// The shards that did not carry their part of the load to its end.
fn lost(parts: &[ShardPart]) -> Option<Reason> {
    let lost: Vec<_> = parts.iter().filter(|part| part.state != ShardState::Done).collect();
    let done = parts.len() - lost.len();
    let each = lost.iter().map(|part| describe(part)).collect::<Vec<_>>().join("; ");
    let fix = if lost.iter().all(|part| part.counted_all && part.damaged.is_empty()) {
        "every request was sent and counted; whether these shards kept up with their load is not known: run again if that matters"
    } else {
        "the figures are those of the shards that are known, not of the planned load; merge again if the files turn up, or run again"
    };
    (!lost.is_empty()).then(|| Reason {
        what: "shards".to_owned(),
        measured: format!("{done} of {} ended; {each}", parts.len()),
        bound: "all of them".to_owned(),
        fix: fix.to_owned(),
        causes: Vec::new(),
        figure: None,
    })
}

fn describe(part: &ShardPart) -> String {
    let name = &part.shard;
    if !part.damaged.is_empty() {
        let files = part.damaged.join(", ");
        return format!(
            "files of shard {name} are damaged ({files}): copy its folder again, and repeat the merge"
        );
    }
    if let Some(Interruption { at_s, of_s }) = part.interrupted {
        let percent = 100.0 * at_s / of_s;
        return format!(
            "a signal ended shard {name} at {at_s:.1} s of {of_s:.0} s ({percent:.0} %)"
        );
    }
    match (part.state, part.counted_s) {
        (ShardState::Missing, _) => format!("shard {name} is missing"),
        (ShardState::Late, _) => {
            let late = part.late_by_s.map(|late| format!("{late:.1} s ")).unwrap_or_default();
            format!("shard {name} was ready {late}after the common start and sent nothing")
        }
        (_, Some(_)) if part.counted_all => {
            format!("shard {name} sent its whole load, and was cut off while it wrote its files")
        }
        (_, Some(until)) => format!("shard {name} was cut off, counted for {until:.0} s"),
        (_, None) => format!("shard {name} was cut off before it counted anything"),
    }
}

/// Starts that lie apart.
fn starts(spread: Spread, load_s: f64) -> Option<Reason> {
    let (apart, clocks) = (spread.seconds, clocks(spread));
    (apart > TOLD_SPREAD_S).then(|| Reason {
        what: "common start".to_owned(),
        measured: format!(
            "the shards began {apart:.1} s apart, {clocks}, in {load_s:.0} s of load"
        ),
        bound: format!("{:.0} % of the load's length", MOST_SPREAD * 100.0),
        fix: "give all shards the same --start-at, and synchronise the clocks of their hosts"
            .to_owned(),
        causes: Vec::new(),
        figure: None,
    })
}

/// The note of shards that began together.
fn together(spread: Spread) -> String {
    let ms = (spread.seconds * 1e3).ceil().max(1.0);
    format!("the shards began within {ms:.0} ms of each other, {}", clocks(spread))
}

/// Whose word a time between two hosts is.
fn clocks(spread: Spread) -> String {
    match spread.uncertainty_s {
        Some(most) => format!("give or take {:.0} ms", (most * 1e3).ceil()),
        None => "by their hosts' clocks, which nobody compared".to_owned(),
    }
}

/// Shards that are invalid by themselves.
fn invalid_alone(parts: &[ShardPart]) -> Option<Reason> {
    let invalid = parts.iter().filter(|part| part.valid == Some(false));
    let names: Vec<_> = invalid.map(|part| part.shard.as_str()).collect();
    (!names.is_empty()).then(|| Reason {
        what: "shards by themselves".to_owned(),
        measured: format!("{} of {} are invalid alone: {}", names.len(), parts.len(), names.join(", ")),
        bound: "none".to_owned(),
        fix: "`plimsoll report` of its folder says why; the verdict of the whole rests on the added counts".to_owned(),
        causes: Vec::new(),
        figure: None,
    })
}
