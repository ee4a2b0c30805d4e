//! The measurement error of differences.
//!
//! The generator delays all targets alike and in random order, so most of its part cancels in a
//! difference, unlike in the times of one target. A difference is never withheld because of it: its
//! interval is widened by the measurement error on either side, and the verdict uses these limits.

use plimsoll_measure::{LEAST_SHARE, Nanos, PairedTurn};
use plimsoll_stats::samples_needed;
use plimsoll_stats::shift::Shift;
use plimsoll_stats::woodruff::Batched;

use crate::figure::{Figure, as_f64};
use crate::pairs::{Run, Turns, Two, value};
use crate::result::{Difference, FewValues, Kind, OwnTimes};

/// The targets whose times are reduced by the doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubted {
    Both,
    Target,
    Reference,
}

/// The times of two targets without the generator's part.
pub(crate) struct WithoutGenerator(Vec<(Batched, Shift)>);

impl WithoutGenerator {
    /// Returns `None` if the generator added nothing to this figure.
    ///
    /// The delay of late sends is known exactly. The arrival of bytes that were read late is not,
    /// so that part is subtracted from both targets, and from each alone.
    pub(crate) fn of(run: Run<'_>, two: Two, figure: Figure) -> Option<Self> {
        let parts: Vec<Part> = run
            .pairs(two)
            .flat_map(|(target, reference)| [target, reference])
            .map(|turn| Part::of(turn, figure))
            .collect();
        let variants: &[Doubted] = if parts.iter().any(|part| part.doubt != 0.0) {
            &[Doubted::Both, Doubted::Target, Doubted::Reference]
        } else if parts.iter().any(|part| part.sent != 0.0) {
            &[Doubted::Both]
        } else {
            return None;
        };
        Some(Self(variants.iter().map(|doubted| variant(run, two, figure, *doubted)).collect()))
    }

    /// Sets the measurement error of a difference, and the limits that include it.
    pub(crate) fn limit(&self, q: f64, found: &mut Difference) {
        let Some((value, low, high)) = found.measured() else { return };
        let without: Vec<f64> = self
            .0
            .iter()
            .filter_map(|(added, shift)| match found.kind {
                Kind::Added => added.value(q),
                Kind::Shift => shift.value(q),
            })
            .map(|without| without - value)
            .collect();
        if without.is_empty() {
            return;
        }
        let (down, up) = without
            .iter()
            .fold((0.0_f64, 0.0_f64), |(down, up), off| (down.min(*off), up.max(*off)));
        let most = up.max(-down);
        // A late first token shortens a mean gap and a late last one lengthens it, so neither
        // variant is an extreme.
        let (down, up) = if found.figure == Figure::MeanGap { (-most, most) } else { (down, up) };
        found.generator_ns = Some(most.round());
        found.at_least_ns = Some((low + down).round());
        found.at_most_ns = Some((high + up).round());
    }
}

/// All values of one target without the generator's part.
pub(crate) fn own_times(run: Run<'_>, target: usize, figure: Figure) -> Batched {
    let values = run.turns(target).filter_map(|turn| without(turn, figure, true)).collect();
    Batched::new(vec![vec![values]])
}

/// A time without the generator's known delay and, with `doubted`, without its possible delay.
fn without(turn: &PairedTurn, figure: Figure, doubted: bool) -> Option<f64> {
    let Part { sent, doubt } = Part::of(turn, figure);
    let off = if doubted { sent + doubt } else { sent };
    Some((value(turn, figure)? - off).max(0.0))
}

fn variant(run: Run<'_>, two: Two, figure: Figure, doubted: Doubted) -> (Batched, Shift) {
    let target = |turn: &PairedTurn| without(turn, figure, doubted != Doubted::Reference);
    let reference = |turn: &PairedTurn| without(turn, figure, doubted != Doubted::Target);
    (
        run.added_by(two, |turns: Turns<'_>| Some(target(turns.0)? - reference(turns.1)?)),
        run.shift_of(two, target, reference),
    )
}

/// The generator's part of a time, in nanoseconds.
#[derive(Clone, Copy)]
struct Part {
    /// Added by late sends.
    sent: f64,
    /// At most added by late reads; negative if the true time may be longer than measured.
    doubt: f64,
}

impl Part {
    fn of(turn: &PairedTurn, figure: Figure) -> Self {
        let own = &turn.generator;
        match figure {
            Figure::ResponseTime => {
                Self { sent: resolved(own.dispatch + own.send), doubt: resolved(own.finished) }
            }
            Figure::ServiceTime => Self { sent: resolved(own.send), doubt: resolved(own.finished) },
            Figure::Ttft => Self { sent: resolved(own.send), doubt: resolved(own.first_token) },
            Figure::MeanGap => {
                let (first, last) = (resolved(own.first_token), resolved(own.last_token));
                let by = if first > last { -first } else { last };
                Self { sent: 0.0, doubt: by / f64::from(turn.gaps.max(1)) }
            }
            // A late read lengthens one gap and shortens the next one by as much.
            Figure::LongestGap => {
                Self { sent: 0.0, doubt: resolved(own.first_token.max(own.last_token)) }
            }
        }
    }
}

/// Zero below the resolution of the clock.
fn resolved(time: Nanos) -> f64 {
    if time < LEAST_SHARE { 0.0 } else { as_f64(time) }
}

// The times of one target, in one round and over several.

/// The times of a target in one round; `None` without values.
pub(crate) fn of_round(run: Run<'_>, target: usize, figure: Figure) -> Option<OwnTimes> {
    let (measured, without) = (run.own(target, figure), own_times(run, target, figure));
    let times = of_values(figure, &measured, &without);
    let few = (times.count < samples_needed(0.99)).then(|| FewValues {
        measured: measured.ascending().to_vec(),
        without: without.ascending().to_vec(),
    });
    (times.count > 0).then_some(OwnTimes { few, ..times })
}

/// The times over several rounds: the mean of each percentile that every round has. A percentile
/// for which one round is too small is taken from all values together.
pub(crate) fn over_rounds(rounds: &[&OwnTimes], figure: Figure) -> OwnTimes {
    let of = |percentile: fn(&OwnTimes) -> Option<f64>| {
        mean(rounds.iter().map(|times| percentile(times)))
    };
    let together = together(rounds, figure);
    OwnTimes {
        figure,
        count: rounds.iter().map(|times| times.count).sum(),
        p50_ns: of(|times| times.p50_ns).or(together.p50_ns),
        p50_between_ns: of(|times| Some(times.p50_between_ns?.0))
            .zip(of(|times| Some(times.p50_between_ns?.1)))
            .or(together.p50_between_ns),
        p90_ns: of(|times| times.p90_ns).or(together.p90_ns),
        p95_ns: of(|times| times.p95_ns).or(together.p95_ns),
        p95_between_ns: of(|times| Some(times.p95_between_ns?.0))
            .zip(of(|times| Some(times.p95_between_ns?.1)))
            .or(together.p95_between_ns),
        p99_ns: of(|times| times.p99_ns).or(together.p99_ns),
        few: None,
    }
}

/// The percentiles of all rounds' values together; none if a round did not store its values.
fn together(rounds: &[&OwnTimes], figure: Figure) -> OwnTimes {
    let few: Option<Vec<&FewValues>> = rounds.iter().map(|times| times.few.as_ref()).collect();
    let Some(few) = few else { return OwnTimes::default() };
    let all = |values: fn(&FewValues) -> &[f64]| {
        Batched::new(vec![few.iter().map(|round| values(round).to_vec()).collect()])
    };
    of_values(figure, &all(|round| &round.measured), &all(|round| &round.without))
}

fn of_values(figure: Figure, measured: &Batched, without: &Batched) -> OwnTimes {
    let [p50_between_ns, p95_between_ns] = [0.5, 0.95].map(|q| {
        let (measured, without) = (measured.value(q)?, without.value(q)?);
        Some((measured.min(without).round(), measured.max(without).round()))
    });
    OwnTimes {
        figure,
        count: measured.count() as u64,
        p50_ns: measured.value(0.5),
        p50_between_ns,
        p90_ns: measured.value(0.9),
        p95_ns: measured.value(0.95),
        p95_between_ns,
        p99_ns: measured.value(0.99),
        few: None,
    }
}

/// The mean, or `None` if a round has no value.
pub(crate) fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values = values.collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())?;
    Some(plimsoll_stats::descriptive::mean(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(values: std::ops::RangeInclusive<u32>) -> OwnTimes {
        let values: Vec<f64> = values.map(f64::from).collect();
        let few = FewValues { measured: values.clone(), without: values.clone() };
        let batched = Batched::new(vec![vec![values]]);
        OwnTimes { few: Some(few), ..of_values(Figure::Ttft, &batched, &batched) }
    }

    #[test]
    fn rounds_with_too_few_values_for_a_percentile_have_it_together() {
        let rounds = [round(1..=100), round(101..=200), round(201..=300)];
        assert!(rounds.iter().all(|round| round.p95_ns.is_none()), "a p95 needs 200 values");
        let all = over_rounds(&rounds.iter().collect::<Vec<_>>(), Figure::Ttft);
        // The nearest rank of 0.95 among 1 to 300.
        assert_eq!((all.count, all.p95_ns, all.p99_ns), (300, Some(285.0), None));
        // Each round has a median, so the result is their mean: of 50, 150 and 250.
        assert_eq!(all.p50_ns, Some(150.0));
    }

    #[test]
    fn a_round_with_many_values_keeps_none() {
        let many = OwnTimes { few: None, ..round(1..=100) };
        let all = over_rounds(&[&many, &round(1..=300)], Figure::Ttft);
        assert_eq!((all.p95_ns, all.count), (None, 400));
    }
}
