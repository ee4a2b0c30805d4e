//! The accounting identity: every scheduled request has exactly one outcome.

use std::fmt;

use crate::catalog::Counters;

/// `scheduled = completed + rejected + failed + timed out + cancelled + in flight at the end +
/// never sent`.
impl Counters {
    /// The sum of all outcomes.
    pub const fn accounted(&self) -> u64 {
        self.completed
            + self.rejected
            + self.failed
            + self.timed_out
            + self.cancelled
            + self.in_flight
            + self.never_sent
    }

    /// Whether the identity holds.
    pub const fn balanced(&self) -> bool {
        self.scheduled == self.accounted()
    }
}

/// The identity on one line. If it does not hold, it is written with `!=` and the sum.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.balanced() { "=" } else { "!=" };
        write!(
            f,
            "{} scheduled {sign} {} completed + {} rejected + {} failed + {} timed out \
             + {} cancelled + {} in flight + {} never sent",
            self.scheduled,
            self.completed,
            self.rejected,
            self.failed,
            self.timed_out,
            self.cancelled,
            self.in_flight,
            self.never_sent
        )?;
        if self.balanced() { Ok(()) } else { write!(f, " (= {})", self.accounted()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_whether_the_identity_holds() {
        let even =
            Counters { scheduled: 10, completed: 7, rejected: 1, failed: 2, ..Default::default() };
        assert!(even.balanced());
        assert_eq!(
            even.to_string(),
            "10 scheduled = 7 completed + 1 rejected + 2 failed + 0 timed out \
             + 0 cancelled + 0 in flight + 0 never sent"
        );
        let odd = Counters { scheduled: 11, ..even };
        assert!(!odd.balanced());
        assert!(odd.to_string().starts_with("11 scheduled != 7"), "{odd}");
        assert!(odd.to_string().ends_with("(= 10)"), "{odd}");
    }
}
