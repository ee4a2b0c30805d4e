//! A need for a connection, and the bounds within which it is met.

use plimsoll_measure::{Moment, Nanos};

/// An arrival that the generator releases later than this adds no connection while a free one will
/// come soon: a generator in time would have found one.
const LATE_RELEASE: Nanos = Nanos::from_millis(1);

/// Bounds of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Most connections, those that are being opened included; at least 1.
    pub max_connections: usize,
    /// A connection that has been idle for longer is not used again. HTTP/1.1 only.
    pub idle_limit: Nanos,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { max_connections: usize::MAX, idle_limit: Nanos::new(u64::MAX) }
    }
}

/// A need for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Since when.
    pub now: Moment,
    /// Whether a connection is added for it.
    pub adds: Adds,
    /// Only a connection that has carried no request will do.
    pub unused: bool,
}

/// When a connection is added for a request that finds none free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// As far as the pool may grow now.
    Carefully,
    /// The same, but not while a free one will come soon: the generator itself released the request
    /// late, and that delay is not the target's.
    Late,
    /// At once: it is a virtual user's, of which there is a fixed number.
    AtOnce,
}

impl Adds {
    /// For an arrival of the open model that the generator released so much too late.
    pub fn for_arrival(late: Nanos) -> Self {
        if late > LATE_RELEASE { Self::Late } else { Self::Carefully }
    }
}

impl Demand {
    /// Any connection will do, and one is added carefully.
    pub const fn at(now: Moment) -> Self {
        Self { now, adds: Adds::Carefully, unused: false }
    }

    /// For a second attempt; on a connection that has carried no request (`unused`) where the
    /// target closed the first one. This wait is not the generator's, however late the first
    /// attempt was.
    #[must_use]
    pub const fn again(self, now: Moment, unused: bool) -> Self {
        let adds = match self.adds {
            Adds::Carefully | Adds::Late => Adds::Carefully,
            Adds::AtOnce => Adds::AtOnce,
        };
        Self { now, adds, unused }
    }

    /// Whether the generator released it late and no connection is added for that.
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
            (Adds::for_arrival(Nanos::from_millis(1)), Adds::Carefully),
            (Adds::for_arrival(Nanos::from_millis(2)), Adds::Carefully),
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
