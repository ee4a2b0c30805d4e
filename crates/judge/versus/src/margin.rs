//! Judges every target except the best by the margin.

use plimsoll_metrics::{Bound, Comparison};
use plimsoll_report::format;

use crate::result::{Kind, Versus};
use crate::role::Role;

/// Statements on targets that are worse than the best one by more than the margin, and on targets
/// for which this is unknown. The order of the targets does not matter. The upstream takes no part,
/// because no target can be as fast.
pub(crate) fn worse(versus: &Versus, margin: f64) -> (Vec<String>, Vec<String>) {
    let judged = versus.targets.iter().filter(|target| target.role != Role::Control);
    let judged: Vec<_> = judged.filter(|target| !target.direct).collect();
    let medians = judged
        .iter()
        .filter_map(|target| Some((&*target.name, target.own(versus.headline)?.p50_between_ns?)));
    let Some((best, median)) = medians.min_by(|a, b| a.1.1.total_cmp(&b.1.1)) else {
        return (Vec::new(), vec!["no target has a median".to_owned()]);
    };
    let (mut worse, mut unknown) = (Vec::new(), Vec::new());
    let limit = format::percent(margin);
    for target in judged.iter().filter(|target| target.name != best) {
        let name = &target.name;
        match keeps(
            |among| against(versus, name, best, among),
            [median.0, median.1],
            margin,
            judged.len() - 1,
        ) {
            Some(true) => {}
            Some(false) => worse.push(format!("{name} is worse than {best} by more than {limit}")),
            None => unknown.push(format!(
                "inconclusive whether {name} is worse than {best} by more than {limit}"
            )),
        }
    }
    if judged.len() < 2 {
        unknown.push(format!("no target can be compared with {best}"));
    }
    (worse, unknown)
}

/// Whether a target's difference to the best one is within the margin: a share of the best one's
/// median, which itself is known only within the measurement error.
fn keeps(
    added: impl Fn(usize) -> Option<[f64; 2]>,
    median: [f64; 2],
    margin: f64,
    among: usize,
) -> Option<bool> {
    let [least, most] = median;
    let between = added(1)?;
    let bound = Bound::new(Comparison::AtMost, 0.0);
    bound.judge(
        |among| {
            let [low, high] = added(among).unwrap_or(between);
            [low - most * margin, high - least * margin]
        },
        among,
    )
}

/// Limits of the median difference between `name` and `best`, as one of `among` tests.
fn against(versus: &Versus, name: &str, best: &str, among: usize) -> Option<[f64; 2]> {
    let headline = versus.headline;
    let median = |target, reference| {
        versus.difference(target, reference, headline, Kind::Added, "p50")?.limits_among(among)
    };
    median(name, best).or_else(|| median(best, name).map(|[low, high]| [-high, -low]))
}
