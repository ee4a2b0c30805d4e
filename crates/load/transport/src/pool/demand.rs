//! A demand for a connection, and the limits of a pool.

use plimsoll_measure::{Moment, Nanos};

/// Delay by the generator above which an arrival adds no connection if one will be free soon,
/// because a punctual generator would have found a free one.
const LATE_RELEASE: Nanos = Nanos::from_millis(1);

/// Limits of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Maximum number of connections, including those being opened; at least 1.
    pub max_connections: usize,
    /// Maximum idle time of a connection that is reused. HTTP/1.1 only.
    pub idle_limit: Nanos,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { max_connections: usize::MAX, idle_limit: Nanos::new(u64::MAX) }
    }
}

/// A demand for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Start of the demand.
    pub now: Moment,
    /// Whether to add a connection for it.
    pub adds: Adds,
    /// Whether it requires a connection without an earlier request.
    pub unused: bool,
}

/// When to add a connection for a request that finds none free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// Within the pool's current growth limit.
    WithinLimit,
    /// Within the growth limit, but not if a connection will be free soon: the generator released
    /// the request late, and the target must not be blamed for that delay.
    Late,
    /// At once, for a virtual user, because the number of users is fixed.
    AtOnce,
}

impl Adds {
    /// The demand of an arrival in the open model that the generator released this late.
    pub fn for_arrival(late: Nanos) -> Self {
        if late > LATE_RELEASE { Self::Late } else { Self::WithinLimit }
    }
}

impl Demand {
    /// A demand for any connection, added within the growth limit.
    pub const fn at(now: Moment) -> Self {
        Self { now, adds: Adds::WithinLimit, unused: false }
    }

    /// The demand of a retry; on a connection without earlier requests (`unused`) if the target
    /// closed the first one. This wait is not the generator's, however late the first attempt was.
    #[must_use]
    pub const fn again(self, now: Moment, unused: bool) -> Self {
        let adds = match self.adds {
            Adds::WithinLimit | Adds::Late => Adds::WithinLimit,
            Adds::AtOnce => Adds::AtOnce,
        };
        Self { now, adds, unused }
    }

    /// Whether the generator released it late, so that it adds no connection.
    pub fn is_late(self) -> bool {
        self.adds == Adds::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_attempt_of_a_late_arrival_is_not_late() {
        let (began, closed) = (Moment::from_nanos(5), Moment::from_nanos(7));
        let again = |adds| Demand { adds, ..Demand::at(began) }.again(closed, true);
        for (first, second) in [
            (Adds::for_arrival(Nanos::from_millis(1)), Adds::WithinLimit),
            (Adds::for_arrival(Nanos::from_millis(2)), Adds::WithinLimit),
            (Adds::AtOnce, Adds::AtOnce),
        ] {
            assert_eq!(again(first), Demand { now: closed, adds: second, unused: true });
        }
        assert!(
            Demand { adds: Adds::for_arrival(Nanos::from_millis(2)), ..Demand::at(began) }
                .is_late()
        );
    }
}
