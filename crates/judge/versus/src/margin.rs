//! Judges every target but the best by the margin.

use plimsoll_report::format;

use crate::result::{Kind, Versus};
use crate::role::Role;

/// Sentences on targets that are worse than the best by more than the margin, and on those of which
/// it is not known. The order of the targets has no part in it, and the upstream itself has none:
/// no target can be as fast. The best one's median lies within what the generator may have added.
pub(crate) fn worse(versus: &Versus, margin: f64) -> (Vec<String>, Vec<String>) {
    let judged = versus.targets.iter().filter(|target| target.role != Role::Control);
    let judged = judged.filter(|target| !target.direct);
    let medians = judged
        .clone()
        .filter_map(|target| Some((&*target.name, target.own(versus.headline)?.p50_between_ns?)));
    let Some((best, (least, most))) = medians.min_by(|a, b| a.1.1.total_cmp(&b.1.1)) else {
        return (Vec::new(), vec!["no target has a median".to_owned()]);
    };
    let (mut worse, mut unknown) = (Vec::new(), Vec::new());
    for name in judged.clone().map(|target| &*target.name).filter(|name| *name != best) {
        let (than, limit) = (format!("than {best}"), format::percent(margin));
        match against(versus, name, best) {
            Some((low, _)) if low > most * margin => {
                worse.push(format!("{name} is worse {than} by more than {limit}"));
            }
            Some((_, high)) if high <= least * margin => {}
            Some(_) => unknown.push(format!(
                "these data do not show whether {name} is worse {than} by more than {limit}"
            )),
            None => unknown.push(format!("{name} and {best} cannot be compared")),
        }
    }
    if worse.is_empty() && judged.count() < 2 {
        unknown.push(format!("no target can be compared with {best}"));
    }
    (worse, unknown)
}

/// The ends of the interval of what `name` takes more than `best` at the median.
fn against(versus: &Versus, name: &str, best: &str) -> Option<(f64, f64)> {
    median_added(versus, name, best)
        .or_else(|| median_added(versus, best, name).map(|(low, high)| (-high, -low)))
}

fn median_added(versus: &Versus, target: &str, reference: &str) -> Option<(f64, f64)> {
    let headline = versus.headline;
    versus.difference(target, reference, headline, Kind::Added, "p50")?.lies_between()
}
