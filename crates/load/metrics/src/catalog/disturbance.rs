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
    /// Whether a limit from above or from below that is kept, or broken, on a disturbed host would
    /// be so on a quiet one: what can only have increased a figure cannot have made it keep an
    /// upper limit.
    #[expect(clippy::fn_params_excessive_bools, reason = "whether it is kept, and on which side")]
    pub const fn settles(self, kept: bool, is_upper: bool) -> bool {
        match self {
            Self::None => true,
            Self::Up => kept == is_upper,
            Self::Down => kept != is_upper,
            Self::Either => false,
        }
    }
}
