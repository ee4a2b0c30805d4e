//! The self-check: compares the reference with itself, where no difference may appear.

use plimsoll_report::format;
use plimsoll_rules::{Finding, Level};

use crate::result::{Control, Difference, Versus};

/// Significance level of a control difference: one valid comparison in 1,000 is called invalid.
const LEVEL: f64 = 0.001;
/// Significance level below which the control is unclear: one valid comparison in 20.
const UNCLEAR_LEVEL: f64 = 0.05;

/// Builds the check from the difference of the `control` target.
pub(crate) fn control(control: &str, versus: &Versus) -> Control {
    let empty = Control { target: control.to_owned(), ..Control::default() };
    let Some(found) = versus.headline_added().find(|found| found.target == control) else {
        return Control { refused: Some("it has no complete pair".to_owned()), ..empty };
    };
    Control {
        value_ns: found.value_ns,
        p: found.p,
        differs: found.p.is_some_and(|p| p < LEVEL) && found.is_beyond_generator(),
        refused: found.refused.clone(),
        ..empty
    }
}

/// The finding on a control that differs, or may differ, or whose interval is as wide as another
/// target's difference.
pub(crate) fn finding(versus: &Versus) -> Option<Finding> {
    let control = versus.control.as_ref()?;
    let found = versus.headline_added().find(|found| found.target == control.target)?;
    let (value, low, high) = found.measured()?;
    let p = found.p?;
    let is_unclear = (LEVEL..UNCLEAR_LEVEL).contains(&p);
    let name = if is_unclear || control.differs { "difference" } else { "unclear" };
    let finding = Finding::new(406)
        .with("control", &control.target)
        .with("reference", versus.reference())
        .with(name, format::difference(value / 1e6, low / 1e6, high / 1e6));
    if control.differs {
        return Some(finding.at(Level::Invalid));
    }
    let like = (p >= LEVEL).then(|| within_reach(versus, found, low.abs().max(high.abs())));
    let like = like.flatten();
    (is_unclear || like.is_some()).then(|| finding.with_some("target", like))
}

/// A target whose significant difference does not exceed the control's interval.
fn within_reach<'v>(versus: &'v Versus, control: &Difference, reach: f64) -> Option<&'v String> {
    let mut others = versus.headline_added().filter(|found| found.target != control.target);
    others
        .find(|found: &&Difference| {
            found.p.is_some_and(|p| p < UNCLEAR_LEVEL)
                && found.value_ns.is_some_and(|value| value.abs() <= reach)
        })
        .map(|found| &found.target)
}
