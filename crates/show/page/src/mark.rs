//! Marks of values. Shapes differ, so that no meaning hangs on colour.

use maud::{Markup, html};

use crate::plot::place;

/// What a value's mark looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A plain value.
    #[default]
    Disc,
    /// One that is fine.
    Good,
    /// One that is not.
    Bad,
    /// One of which nothing is known.
    Open,
    /// What is compared with itself.
    Control,
    /// Something that says nothing.
    Void,
}

impl Mark {
    /// The class of its line and of its area.
    pub(crate) const fn classes(self) -> (&'static str, &'static str) {
        match self {
            Self::Disc => ("l0", "f0"),
            Self::Good => ("l2", "f2"),
            Self::Bad => ("l1", "f1"),
            Self::Open => ("l0", "ring l0"),
            Self::Control | Self::Void => ("frame", "pale"),
        }
    }
}

/// A mark around a place; `class` is that of its area.
pub(crate) fn shape(mark: Mark, class: &str, x: f64, y: f64) -> Markup {
    let [left, top] = [x - 5.0, y - 5.0].map(place);
    html! {
        @match mark {
            Mark::Bad => path class=(class) d=(format!("M{} {top}l5 5l-5 5l-5 -5z", place(x))) {},
            Mark::Control => rect class=(class) x=(left) y=(top) width="10" height="10" {},
            Mark::Void => path.void d=(format!("M{} {}l8 8m0-8l-8 8", place(x - 4.0), place(y - 4.0))) {},
            Mark::Disc | Mark::Good | Mark::Open => circle class=(class) cx=(place(x)) cy=(place(y)) r="4.5" {},
        }
    }
}
