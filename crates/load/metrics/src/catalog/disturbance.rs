//! How other load on the hosts of generator and target can change a figure.

/// How other load on the hosts of generator and target can change a figure, found by simulation of
/// limiters, queues and timeouts under open and closed loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Not at all.
    None,
    /// It can only increase it.
    Up,
    /// It can only decrease it.
    Down,
    /// It can do either.
    Either,
}

impl Disturbance {
    /// Whether a bound that is kept, or broken, on a disturbed host would be so on a quiet one.
    /// Times have upper bounds and rates have floors: both are only harder to keep.
    pub const fn settles(self, kept: bool) -> bool {
        match self {
            Self::None => true,
            Self::Up | Self::Down => kept,
            Self::Either => false,
        }
    }
}
