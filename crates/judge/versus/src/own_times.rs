//! The times of one target, in one round and over several.

use plimsoll_stats::samples_needed;
use plimsoll_stats::woodruff::Batched;

use crate::figure::Figure;
use crate::generator;
use crate::pairs::Run;
use crate::result::{FewValues, OwnTimes};

/// The times of a target in one round; `None` without values.
pub(crate) fn of_round(run: Run<'_>, target: usize, figure: Figure) -> Option<OwnTimes> {
    let (measured, without) = (run.own(target, figure), generator::own_times(run, target, figure));
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
