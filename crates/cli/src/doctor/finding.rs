//! A finding: the result of one check, with a severity and a fix.

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// No effect on measurements.
    Ok,
    /// May distort a measurement, or is unknown.
    Warn,
    /// Will distort a measurement, or prevent it.
    Bad,
}

impl Severity {
    /// The word at the start of the line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// The setting or property that was checked.
    pub(crate) subject: &'static str,
    /// Its value.
    pub(crate) value: String,
    /// The remedy; empty where none is needed.
    pub(crate) fix: &'static str,
}

impl Finding {
    /// A finding. The fix is left out where the severity is `Ok`.
    pub(super) fn new(
        severity: Severity,
        subject: &'static str,
        value: impl Into<String>,
        fix: &'static str,
    ) -> Self {
        let fix = if severity == Severity::Ok { "" } else { fix };
        Self { severity, subject, value: value.into(), fix }
    }

    /// A finding whose value the system does not report: a warning.
    pub(super) fn unknown(subject: &'static str) -> Self {
        let fix = "check it yourself: this kernel or container does not report it";
        Self::new(Severity::Warn, subject, "unknown", fix)
    }
}

/// The severity of a number that should be large.
pub(super) fn at_least<T: PartialOrd + Copy>(value: T, good: T, acceptable: T) -> Severity {
    if value >= good {
        Severity::Ok
    } else if value >= acceptable {
        Severity::Warn
    } else {
        Severity::Bad
    }
}

/// The severity of a number that should be small.
pub(super) fn at_most<T: PartialOrd + Copy>(value: T, good: T, acceptable: T) -> Severity {
    if value <= good {
        Severity::Ok
    } else if value <= acceptable {
        Severity::Warn
    } else {
        Severity::Bad
    }
}
