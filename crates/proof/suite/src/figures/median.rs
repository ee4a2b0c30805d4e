//! The medians of the figures of several passes.

use plimsoll_harness::statistics::median;
use plimsoll_metrics::BoundedFigure;

use super::{BusyShares, Figures};

impl Figures {
    /// The medians over several passes; counts are added up, and the largest is that of all. Where
    /// a figure may be used of some passes only, the others are left out, as invalid passes are.
    pub(crate) fn median(passes: &[&Self]) -> Self {
        let middle = |of: fn(&Self) -> Option<f64>| {
            let values: Option<Vec<f64>> = passes.iter().map(|pass| of(pass)).collect();
            median(&values?)
        };
        let of = |figure: fn(&Self) -> Option<BoundedFigure>| {
            middle_of(passes.iter().map(|pass| figure(pass)))
        };
        let busy = BusyShares {
            gateway: middle(|f| f.busy.gateway),
            generator: middle(|f| f.busy.generator),
            busiest_worker: middle(|f| f.busy.busiest_worker),
            provider: middle(|f| f.busy.provider),
            waited: middle(|f| f.busy.waited),
            shared: passes.iter().any(|f| f.busy.shared),
            gateway_cores: middle(|f| f.busy.gateway_cores),
        };
        Self {
            requests: passes.iter().map(|f| f.requests).sum(),
            errors: passes.iter().map(|f| f.errors).sum(),
            expected: Some(passes.iter().map(|f| f.expected()).sum()),
            error_kinds: passes.iter().find_map(|f| f.error_kinds.clone()),
            seconds: passes.iter().map(|f| f.seconds).reduce(f64::min).unwrap_or(0.0),
            requests_per_s: of(|f| f.requests_per_s),
            planned_per_s: middle(|f| f.planned_per_s),
            mean_ms: of(|f| f.mean_ms),
            p50_ms: of(|f| f.p50_ms),
            p95_ms: of(|f| f.p95_ms),
            p99_ms: of(|f| f.p99_ms),
            max_ms: largest(passes.iter().filter_map(|f| f.max_ms)),
            ttft_p50_ms: of(|f| f.ttft_p50_ms),
            ttft_p99_ms: of(|f| f.ttft_p99_ms),
            gap_p99_ms: of(|f| f.gap_p99_ms),
            megabytes_per_s: middle(|f| f.megabytes_per_s),
            gateway_cpu_us: middle(|f| f.gateway_cpu_us),
            gateway_memory: passes.iter().filter_map(|f| f.gateway_memory).reduce(f64::max),
            busy,
            busy_host: passes.iter().find_map(|f| f.busy_host.clone()),
            error_share: middle(|f| f.error_share),
            policy_correctness: passes.iter().filter_map(|f| f.policy_correctness).reduce(f64::min),
            limited: passes.iter().all(|f| f.limited),
            invalid: passes.iter().find_map(|f| f.invalid.clone()),
        }
    }
}

/// The median of the usable figures, or of all if none may be used; `None` if a pass lacks it. Its
/// bound is the largest.
fn middle_of(passes: impl Iterator<Item = Option<BoundedFigure>>) -> Option<BoundedFigure> {
    let all: Vec<BoundedFigure> = passes.collect::<Option<_>>()?;
    let is_usable = |figure: &BoundedFigure| figure.refused.is_none();
    let usable: Vec<_> = all.iter().copied().filter(is_usable).collect();
    let figures = if usable.is_empty() { all } else { usable };
    let values: Vec<_> = figures.iter().map(|figure| figure.value).collect();
    Some(BoundedFigure {
        value: median(&values)?,
        bound: figures.iter().map(|figure| figure.bound).reduce(f64::max)?,
        refused: figures.first()?.refused,
    })
}

/// The largest of the figures. If one of them must not be used it might be another one, and nor
/// must the largest.
fn largest(figures: impl Iterator<Item = BoundedFigure>) -> Option<BoundedFigure> {
    let wider = |a: BoundedFigure, b: BoundedFigure| {
        let (more, less) = if a.value < b.value { (b, a) } else { (a, b) };
        BoundedFigure { refused: more.refused.or(less.refused), ..more }
    };
    figures.reduce(wider)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_metrics::Refusal;

    fn figure(value: f64, is_usable: bool) -> BoundedFigure {
        let refused = (!is_usable).then_some(Refusal::Generator);
        BoundedFigure { value, bound: value / 10.0, refused }
    }

    #[test]
    fn refused_figures_are_left_out_of_medians_where_others_may_be_used() {
        let of = |figures: &[Option<BoundedFigure>]| middle_of(figures.iter().copied());
        let [one, two, nine] = [figure(1.0, true), figure(2.0, true), figure(9.0, false)];
        let middle = BoundedFigure { value: 1.5, ..two };
        assert_eq!(of(&[Some(one), Some(nine), Some(two)]), Some(middle));
        assert_eq!(of(&[Some(nine), Some(nine)]), Some(nine));
        assert_eq!(of(&[Some(one), None]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_largest_is_refused_with_any() {
        let of = |figures: &[BoundedFigure]| largest(figures.iter().copied()).unwrap();
        let (small, large) = (figure(1.0, false), figure(9.0, true));
        for figures in [[small, large], [large, small]] {
            assert_eq!(of(&figures), BoundedFigure { refused: small.refused, ..large });
        }
        assert_eq!(of(&[large]).refused, None);
    }
}
