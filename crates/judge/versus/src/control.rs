//! The reference against itself: does the instrument find a difference that is not there?

use crate::figure::Figure;
use crate::result::{Control, Difference, Kind};

/// At this level the control target must not differ: one valid comparison in a thousand is called
/// invalid.
const LEVEL: f64 = 0.001;

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
            differs: difference.p.is_some_and(|p| p < LEVEL),
            ..empty
        },
    }
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
