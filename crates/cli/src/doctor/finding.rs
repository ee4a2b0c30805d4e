//! One thing that was looked at.

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// As it should be.
    Ok,
    /// May bend a measurement, or could not be found out.
    Warn,
    /// Will bend a measurement, or prevent it.
    Bad,
}

impl State {
    /// The word in front of the line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// What was looked at, what was seen, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) state: State,
    pub(crate) about: &'static str,
    pub(crate) seen: String,
    /// Empty where nothing is to be done.
    pub(crate) fix: &'static str,
}

impl Finding {
    /// With the fix told only where there is something to fix.
    pub(super) fn new(
        state: State,
        about: &'static str,
        seen: impl Into<String>,
        fix: &'static str,
    ) -> Self {
        let fix = if state == State::Ok { "" } else { fix };
        Self { state, about, seen: seen.into(), fix }
    }

    /// What could not be found out is neither good nor bad.
    pub(super) fn unknown(about: &'static str) -> Self {
        Self::new(State::Warn, about, "unknown", "the kernel does not tell, or this is not Linux")
    }
}

/// The state of a number that should be large.
pub(super) fn at_least<T: PartialOrd + Copy>(value: T, good: T, bearable: T) -> State {
    if value >= good {
        State::Ok
    } else if value >= bearable {
        State::Warn
    } else {
        State::Bad
    }
}

/// The state of a number that should be small.
pub(super) fn at_most<T: PartialOrd + Copy>(value: T, good: T, bearable: T) -> State {
    if value <= good {
        State::Ok
    } else if value <= bearable {
        State::Warn
    } else {
        State::Bad
    }
}
