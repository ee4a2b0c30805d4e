//! The medians of the figures of several passes.

use plimsoll_metrics::{Bias, BoundedFigure, Refusal};
use plimsoll_stats::descriptive::median;
use plimsoll_why::Answer;

use super::{BusyShares, Figures};

impl Figures {
    /// The medians over several passes; counts are added up, and the largest is that of all. Where
    /// a figure may be used of some passes only, the others are left out, as invalid passes are.
    pub(crate) fn median(passes: &[&Self]) -> Self {
        let middle = |of: fn(&Self) -> Option<f64>| {
            let values: Option<Vec<f64>> = passes.iter().map(|pass| of(pass)).collect();
            median(&values?)
        };
        let [requests_per_s] = middles(passes, [|f| f.requests_per_s]);
        let [gap_p99_ms] = middles(passes, [|f| f.gap_p99_ms]);
        let [ttft_p50_ms, ttft_p99_ms] = middles(passes, [|f| f.ttft_p50_ms, |f| f.ttft_p99_ms]);
        let [mean_ms, p50_ms, p95_ms, p99_ms] =
            middles(passes, [|f| f.mean_ms, |f| f.p50_ms, |f| f.p95_ms, |f| f.p99_ms]);
        let busy = BusyShares {
            gateway: middle(|f| f.busy.gateway),
            generator: middle(|f| f.busy.generator),
            busiest_worker: middle(|f| f.busy.busiest_worker),
            provider: middle(|f| f.busy.provider),
            store: middle(|f| f.busy.store),
            waited: middle(|f| f.busy.waited),
            shared: passes.iter().any(|f| f.busy.shared),
        };
        Self {
            requests: passes.iter().map(|f| f.requests).sum(),
            errors: passes.iter().map(|f| f.errors).sum(),
            expected: Some(passes.iter().map(|f| f.expected()).sum()),
            error_kinds: passes.iter().find_map(|f| f.error_kinds.clone()),
            seconds: passes.iter().map(|f| f.seconds).reduce(f64::min).unwrap_or(0.0),
            requests_per_s,
            planned_per_s: middle(|f| f.planned_per_s),
            mean_ms,
            p50_ms,
            p95_ms,
            p99_ms,
            max_ms: largest(passes.iter().filter_map(|f| f.max_ms)),
            ttft_p50_ms,
            ttft_p99_ms,
            gap_p99_ms,
            megabytes_per_s: middle(|f| f.megabytes_per_s),
            answer_bytes: middle(|f| f.answer_bytes),
            threads: passes.iter().find_map(|f| f.threads),
            gateway_cpu_us: middle(|f| f.gateway_cpu_us),
            gateway_memory: passes.iter().filter_map(|f| f.gateway_memory).reduce(f64::max),
            busy,
            bottleneck: bottleneck(passes),
            busy_host: passes.iter().find_map(|f| f.busy_host.clone()),
            error_share: middle(|f| f.error_share),
            policy_correctness: passes.iter().filter_map(|f| f.policy_correctness).reduce(f64::min),
            limited: passes.iter().all(|f| f.limited),
            invalid: passes.iter().find_map(|f| f.invalid.clone()),
        }
    }
}

/// The bottleneck, if all passes have the same.
fn bottleneck(passes: &[&Figures]) -> Option<Answer> {
    let first = passes.first()?.bottleneck;
    if passes.iter().all(|pass| pass.bottleneck == first) { first } else { Some(Answer::Unknown) }
}

/// The medians of figures of one distribution, all of the same passes: a median p99 of some passes
/// can be less than a median p95 of others, which no distribution has. These passes are those in
/// which each figure may be used that may be used in any; without such a pass all of them, and a
/// figure is then refused with any of its own.
fn middles<const N: usize>(
    passes: &[&Figures],
    figures: [fn(&Figures) -> Option<BoundedFigure>; N],
) -> [Option<BoundedFigure>; N] {
    let needed = figures.map(|figure| passes.iter().any(|pass| is_usable(figure, pass)));
    let chosen: Vec<&Figures> = passes
        .iter()
        .filter(|pass| {
            figures.iter().zip(needed).all(|(figure, needed)| !needed || is_usable(*figure, pass))
        })
        .copied()
        .collect();
    let chosen = if chosen.is_empty() { passes } else { &chosen };
    figures.map(|figure| {
        let is_known = passes.iter().all(|pass| figure(pass).is_some());
        is_known.then(|| middle_of(chosen.iter().filter_map(|pass| figure(pass))))?
    })
}

fn is_usable(figure: fn(&Figures) -> Option<BoundedFigure>, pass: &Figures) -> bool {
    figure(pass).is_some_and(|figure| figure.refused.is_none())
}

/// The median of figures; its bound is the largest.
fn middle_of(figures: impl Iterator<Item = BoundedFigure>) -> Option<BoundedFigure> {
    let figures: Vec<_> = figures.collect();
    let values: Vec<_> = figures.iter().map(|figure| figure.value).collect();
    Some(BoundedFigure {
        value: median(&values)?,
        bound: figures.iter().map(|figure| figure.bound).reduce(f64::max)?,
        interval: None,
        refused: figures.iter().find_map(|figure| figure.refused),
    })
}

/// The largest of times that the generator can only make longer: it is no longer than the longest
/// measured one, and no shorter than the longest without the generator's part. Requests without an
/// end in any pass may be longer still.
fn largest(figures: impl Iterator<Item = BoundedFigure> + Clone) -> Option<BoundedFigure> {
    let is_censored = figures.clone().any(|figure| figure.refused == Some(Refusal::Censored));
    let least = figures.clone().map(|figure| figure.limits(Bias::Adds)[0]).fold(0.0, f64::max);
    let longest = figures.max_by(|a, b| a.value.total_cmp(&b.value))?;
    let largest = BoundedFigure { bound: longest.value - least, ..longest };
    let refused = longest.refused.filter(|_| largest.has_notable_bound());
    Some(BoundedFigure {
        refused: if is_censored { Some(Refusal::Censored) } else { refused },
        ..largest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, is_usable: bool) -> BoundedFigure {
        let refused = (!is_usable).then_some(Refusal::Generator);
        BoundedFigure { value, bound: value / 10.0, interval: None, refused }
    }

    #[test]
    fn refused_figures_are_left_out_of_medians_where_others_may_be_used() {
        let [one, two, nine] = [figure(1.0, true), figure(2.0, true), figure(9.0, false)];
        let middle = BoundedFigure { value: 1.5, ..two };
        assert_eq!(largest_of(&[Some(one), Some(nine), Some(two)]), Some(middle));
        assert_eq!(largest_of(&[Some(nine), Some(nine)]), Some(nine));
        assert_eq!(largest_of(&[Some(one), None]), None);
        assert_eq!(largest_of(&[]), None);
    }

    fn largest_of(figures: &[Option<BoundedFigure>]) -> Option<BoundedFigure> {
        let passes: Vec<_> = figures
            .iter()
            .map(|figure| Figures { p50_ms: *figure, ..Figures::default() })
            .collect();
        middles(&passes.iter().collect::<Vec<_>>(), [|f| f.p50_ms])[0]
    }

    #[test]
    fn percentiles_are_medians_of_the_same_passes() {
        let pass = |p50, p95, p99| Figures {
            p50_ms: Some(p50),
            p95_ms: Some(p95),
            p99_ms: Some(p99),
            ..Figures::default()
        };
        let (yes, no) = (true, false);
        // Seen on a busy host: p95 18.9 ms of the slow pass alone, p99 18.1 ms of the other.
        let slow = pass(figure(9.0, yes), figure(18.9, yes), figure(23.7, no));
        let fast = pass(figure(1.0, no), figure(12.0, no), figure(18.1, yes));
        let both = Figures::median(&[&slow, &fast]);
        let [p50, p95, p99] = [both.p50_ms, both.p95_ms, both.p99_ms].map(Option::unwrap);
        assert!(p50.value <= p95.value && p95.value <= p99.value, "{p95:?} {p99:?}");
        assert!([p50, p95, p99].iter().all(|figure| figure.refused.is_some()));
        // A pass that has all decides alone; what may be used nowhere is of that pass as well.
        let whole = pass(figure(2.0, yes), figure(3.0, yes), figure(4.0, yes));
        assert_eq!(Figures::median(&[&slow, &fast, &whole]).p95_ms, whole.p95_ms);
        let no_tail = pass(figure(2.0, yes), figure(3.0, yes), figure(4.0, no));
        let worse = pass(figure(5.0, yes), figure(6.0, no), figure(7.0, no));
        assert_eq!(Figures::median(&[&no_tail, &worse]).p50_ms, no_tail.p50_ms);
        assert_eq!(Figures::median(&[&no_tail, &worse]).p99_ms, no_tail.p99_ms);
    }

    /// By hand: a figure of these has a tenth that may be the generator's.
    #[test]
    fn the_largest_has_the_limits_of_all_passes() {
        let [sound, refused] = [figure(9.0, true), figure(9.0, false)];
        assert_eq!(largest_of_both(figure(1.0, false), sound), sound);
        assert_eq!(largest_of_both(figure(1.0, true), refused), refused);
        // Of 10, one may be the generator's, but 9.9 took at least 9.8.
        let other = BoundedFigure { value: 9.9, bound: 0.1, interval: None, refused: None };
        let limited = BoundedFigure { bound: 0.2, ..figure(10.0, false) };
        assert_eq!(largest_of_both(figure(10.0, false), other), limited);
        // 9.99 took at least 9.98: nothing worth a word is open.
        let other = BoundedFigure { value: 9.99, bound: 0.01, interval: None, refused: None };
        assert_eq!(largest_of_both(figure(10.0, false), other).refused, None);
        let censored = BoundedFigure { refused: Some(Refusal::Censored), ..figure(1.0, true) };
        assert_eq!(largest_of_both(censored, sound).refused, censored.refused);
    }

    /// The largest, which does not depend on the order of the passes, its bound to nine digits.
    fn largest_of_both(a: BoundedFigure, b: BoundedFigure) -> BoundedFigure {
        let [forth, back] = [[a, b], [b, a]].map(|both| largest(both.into_iter()).unwrap());
        assert_eq!(forth, back);
        BoundedFigure { bound: (forth.bound * 1e9).round() / 1e9, ..forth }
    }
}
