//! What targets state of their own time, beside what was measured.

use plimsoll_report::format;

use crate::result::{Difference, Kind, Versus};

/// A sentence for each target that states something, with what it was measured to add.
pub(super) fn sentences(versus: &Versus) -> Vec<String> {
    let stating =
        versus.targets.iter().filter_map(|target| Some((target, target.stated.as_ref()?)));
    stating
        .map(|(target, stated)| {
            let parts: Vec<_> = stated
                .mean_ns
                .iter()
                .map(|(name, mean): (&String, &f64)| format!("{name} {}", format::time(mean / 1e6)))
                .collect();
            format!(
                "{} states in its headers: {} (means of {} answers, its own word){}",
                target.name,
                parts.join(", "),
                format::count(stated.responses),
                measured(versus, &target.name)
            )
        })
        .collect()
}

/// `; measured: +4.10ms [3.90ms, 4.30ms] of TTFT against direct`.
fn measured(versus: &Versus, target: &str) -> String {
    let (figure, reference) = (versus.headline, versus.reference());
    let added = versus.difference(target, reference, figure, Kind::Added, "p50");
    let Some((value, low, high)) = added.and_then(Difference::limited) else {
        return String::new();
    };
    let shown = format::difference(value / 1e6, low / 1e6, high / 1e6);
    format!("; measured: {shown} of the median {} against {reference}", figure.title())
}
