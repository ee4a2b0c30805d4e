//! The reference against itself: does the instrument find a difference that is not there?

use crate::figure::Figure;
use crate::result::{Control, Difference, Kind};

/// At this level the control target must not differ: one valid comparison in a thousand is called
/// invalid.
const LEVEL: f64 = 0.001;
/// Below this level it is unclear: so is one in twenty of valid comparisons.
const UNCLEAR_LEVEL: f64 = 0.05;

/// The check, from the difference of the `control` target.
pub(crate) fn control(
    control: &str,
    reference: &str,
    figure: Figure,
    differences: &[Difference],
) -> Control {
    let empty = Control { target: control.to_owned(), ..Control::default() };
    let found = differences.iter().find(|difference| {
        difference.is_of(control, reference)
            && (difference.figure, difference.kind) == (figure, Kind::Added)
            && difference.quantile == "p50"
    });
    match found {
        None => Control { refused: Some("it has no complete pair".to_owned()), ..empty },
        Some(Difference { refused: Some(why), .. }) => {
            Control { refused: Some(why.clone()), ..empty }
        }
        Some(difference) => Control {
            value_ns: difference.value_ns,
            p: difference.p,
            differs: difference.p.is_some_and(|p| p < LEVEL) && difference.is_beyond_generator(),
            unclear: unclear(difference, differences),
            ..empty
        },
    }
}

/// Why the control shows nothing: it may differ, or its interval reaches as far as what is found
/// between other targets.
fn unclear(control: &Difference, differences: &[Difference]) -> Option<String> {
    let p = control.p?;
    if p < LEVEL {
        return None;
    }
    let (value, low, high) = control.measured()?;
    let interval = plimsoll_report::format::difference(value / 1e6, low / 1e6, high / 1e6);
    let name = &control.target;
    if p < UNCLEAR_LEVEL {
        return Some(format!("{name} differs by {interval}, as one in twenty would by chance"));
    }
    let reach = low.abs().max(high.abs());
    let found = differences
        .iter()
        .filter(|found: &&Difference| {
            (found.figure, found.kind, &found.quantile)
                == (control.figure, control.kind, &control.quantile)
                && found.reference == control.reference
                && found.target != *name
        })
        .find(|found| {
            found.p.is_some_and(|p| p < UNCLEAR_LEVEL)
                && found.value_ns.is_some_and(|value| value.abs() <= reach)
        })?;
    Some(format!("{name} may differ by {interval}, which is as much as {} adds", found.target))
}

/// What a reader must know of it.
pub(crate) fn warning(control: &Control) -> Option<String> {
    let why = control.unclear.as_ref()?;
    Some(format!(
        "the control is unclear: {why}. Measure for longer, or on an idler host, before you rely \
         on small differences"
    ))
}

/// Why the comparison is invalid, if the control target differs.
pub(crate) fn invalid(control: &Control, reference: &str) -> Option<String> {
    let value = control.value_ns.filter(|_| control.differs)?;
    let time = plimsoll_report::format::time(value / 1e6);
    Some(format!(
        "the control differs: {} is {time} off {reference}, where nothing should differ",
        control.target
    ))
}
