//! CPU time per request: per target, and target against target.

use plimsoll_stats::ratio::{Sums, difference, ratio};
use plimsoll_stats::{Estimate, NoIntervalReason};

use crate::batching::Place;
use crate::comparisons::comparisons;
use crate::facts::{CpuReading, Facts};
use crate::figure::as_f64;
use crate::pairs::{Run, Two, turn};
use crate::result::CpuDifference;

/// CPU time per request in nanoseconds.
///
/// # Errors
/// The reason for a missing interval. Runs by turns have none, because a reading covers more than
/// the window of one target.
pub(crate) fn per_request(
    facts: &Facts,
    run: Run<'_>,
    target: usize,
) -> Result<Estimate, NoIntervalReason> {
    let sums: Vec<Sums> = sums(facts, run, target)?.into_iter().flatten().collect();
    ratio(&sums, run.batching.looks)
}

/// Compares the CPU time of any two compared targets that were monitored. The reference is a
/// different kind of process, so it takes part only if the targets are its variants.
pub(crate) fn differences(facts: &Facts, run: Run<'_>) -> Vec<CpuDifference> {
    let compared = comparisons(facts)
        .into_iter()
        .filter(|two: &Two| facts.variants || two.reference != facts.reference())
        .filter(|two: &Two| {
            [two.target, two.reference].iter().all(|index| !facts.targets[*index].cpu.is_empty())
        });
    compared.map(|two| of_two(facts, run, two)).collect()
}

fn of_two(facts: &Facts, run: Run<'_>, Two { target, reference }: Two) -> CpuDifference {
    let empty = CpuDifference {
        target: facts.name(target).to_owned(),
        reference: facts.name(reference).to_owned(),
        ..CpuDifference::default()
    };
    let found = sums(facts, run, target).and_then(|mine| {
        let theirs = sums(facts, run, reference)?;
        let both = mine.into_iter().zip(theirs).filter_map(|(mine, theirs)| mine.zip(theirs));
        difference(&both.collect::<Vec<_>>(), run.batching.looks)
    });
    match found {
        Ok(estimate) => CpuDifference {
            value_ns: Some(estimate.value),
            low_ns: Some(estimate.interval.low),
            high_ns: Some(estimate.interval.high),
            p: Some(estimate.p_zero).filter(|p| !p.is_nan()),
            degrees_of_freedom: Some(estimate.degrees_of_freedom),
            ..empty
        },
        Err(why) => CpuDifference { refused: Some(run.words(why)), ..empty },
    }
}

/// CPU time and requests of each batch; `None` for a batch outside the readings. The reference's
/// process also serves the turns of the control.
fn sums(facts: &Facts, run: Run<'_>, target: usize) -> Result<Vec<Option<Sums>>, NoIntervalReason> {
    let readings = &facts.targets[target].cpu;
    if readings.len() < 2 || run.batching.is_by_turns() {
        return Err(NoIntervalReason::UnknownOrder);
    }
    let mut requests: Vec<Vec<f64>> = run.batching.by_batch();
    let same_process = facts.of_same_process(target);
    for (place, block) in run.batching.places(run.blocks) {
        if let Place::Measured { stage, batch } = place {
            let turns = same_process.iter().filter(|index| turn(block, **index).is_some());
            requests[stage][batch] += turns.count() as f64;
        }
    }
    let mut sums = Vec::new();
    for (stage, requests) in run.batching.stages().iter().zip(requests) {
        let Some((start, length)) = stage.time else { continue };
        for (batch, below) in (0_u64..).zip(requests) {
            let from = start + batch * length;
            let used = cpu_at(readings, from + length).zip(cpu_at(readings, from));
            sums.push(used.map(|(until, from)| Sums { above: until - from, below }));
        }
    }
    Ok(sums)
}

/// CPU time at a moment, interpolated between two readings; `None` outside them.
fn cpu_at(readings: &[CpuReading], at: u64) -> Option<f64> {
    let after = readings.partition_point(|reading| reading.at.as_u64() < at);
    let later = readings.get(after)?;
    if later.at.as_u64() == at {
        return Some(as_f64(later.cpu));
    }
    let earlier = readings.get(after.checked_sub(1)?)?;
    let (from, to) = (as_f64(earlier.at), as_f64(later.at));
    let share = (at as f64 - from) / (to - from);
    Some(as_f64(earlier.cpu) + share * (as_f64(later.cpu) - as_f64(earlier.cpu)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Nanos;

    #[test]
    fn between_two_readings_time_is_shared_out_evenly() {
        let reading = |at, cpu| CpuReading { at: Nanos::new(at), cpu: Nanos::new(cpu) };
        let readings = [reading(100, 7), reading(200, 17), reading(300, 117)];
        for (at, cpu) in [
            (99, None),
            (100, Some(7.0)),
            (150, Some(12.0)),
            (200, Some(17.0)),
            (210, Some(27.0)),
            (300, Some(117.0)),
            (301, None),
        ] {
            assert_eq!(cpu_at(&readings, at), cpu, "{at}");
        }
    }
}
