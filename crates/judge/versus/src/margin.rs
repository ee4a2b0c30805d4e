//! Is a target worse than the best one by more than the margin?

use plimsoll_report::format;

use crate::result::{Kind, Versus};

/// Sentences on targets that are worse by more than the margin, and on those of which it is not
/// known. The best one's median lies within what the generator may have added to it.
pub(crate) fn worse(versus: &Versus, margin: f64) -> (Vec<String>, Vec<String>) {
    let compared = versus.compared();
    let medians = compared.iter().filter_map(|name| {
        let target = versus.targets.iter().find(|target| target.name == *name)?;
        Some((*name, target.own(versus.headline)?.p50_between_ns?))
    });
    let Some((best, (least, most))) = medians.min_by(|a, b| a.1.1.total_cmp(&b.1.1)) else {
        return (Vec::new(), vec!["no target has a median".to_owned()]);
    };
    let (mut worse, mut unknown) = (Vec::new(), Vec::new());
    for name in compared.iter().filter(|name| **name != best) {
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
