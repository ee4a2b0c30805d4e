//! Weighs the wait that another connection would have saved against the price of opening one.
//!
//! This is the ski rental problem (Karlin, Manasse, Rudolph and Sleator, "Competitive snoopy
//! caching", 1988): buying once the rent so far has reached the price costs at most twice the
//! optimum. The rent is the time that requests wait for a connection. It excludes, besides waits
//! for a target that [stalls](super::growth):
//!
//! - Waits beyond a usual response time, within which a connection would have been free again.
//! - Chance: each response subtracts a small share of its time from the sum. A rare coincidence of
//!   arrivals is forgotten, and waits that are a small share of all response times never add up.

use std::cell::Cell;

use plimsoll_measure::Nanos;

/// Minimum price of a connection. A pause of the target or of the host affects some tens of
/// requests, each of which waits for as long as a response takes; that must not pay for a
/// connection.
const LEAST_PRICE: Nanos = Nanos::from_millis(4);
/// Price in usual response times, if that is more.
const PRICE_IN_ANSWERS: u64 = 2;
/// Waits of up to 1/512 of the response times are forgotten.
const FORGOTTEN: u64 = 512;

/// The counted waits and responses.
#[derive(Debug, Default)]
pub(super) struct Savings {
    saved: Cell<Nanos>,
    answers: Cell<u64>,
    /// Number of responses for which waits were forgotten.
    settled: Cell<u64>,
    /// Shortest time that opening a connection took; zero if unknown.
    set_up: Cell<Nanos>,
}

impl Savings {
    /// Counts a complete response.
    pub(super) fn answered(&self) {
        self.answers.set(self.answers.get() + 1);
    }

    /// Records the duration of opening a connection.
    pub(super) fn set_up_took(&self, time: Nanos) {
        let known = self.set_up.get();
        self.set_up.set(if known == Nanos::ZERO { time } else { known.min(time) });
    }

    /// Shortest time that opening a connection took; zero if unknown.
    pub(super) const fn set_up(&self) -> Nanos {
        self.set_up.get()
    }

    /// Records the wait of a request, if a response takes `usual`.
    pub(super) fn waited(&self, wait: Nanos, usual: Nanos) {
        let answers = self.answers.get() - self.settled.replace(self.answers.get());
        let forgotten = Nanos::new(usual.as_u64().saturating_mul(answers) / FORGOTTEN);
        let saved = self.saved.get().saturating_sub(forgotten) + wait.min(usual);
        self.saved.set(saved.min(self.price(usual)));
    }

    /// Whether the waits reach the price of a connection. Before the first response they always do.
    pub(super) fn suffice(&self, usual: Nanos) -> bool {
        self.answers.get() == 0 || self.saved.get() >= self.price(usual)
    }

    /// Records that a connection is being opened: the next one must earn its own price.
    pub(super) fn spend(&self) {
        self.saved.set(Nanos::ZERO);
    }

    fn price(&self, usual: Nanos) -> Nanos {
        let answers = Nanos::new(usual.as_u64().saturating_mul(PRICE_IN_ANSWERS));
        self.set_up.get().max(answers).max(LEAST_PRICE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Nanos = Nanos::from_micros(100);

    /// Savings after one response.
    fn savings() -> Savings {
        let savings = Savings::default();
        savings.answered();
        savings
    }

    /// Number of waits of this length that pay for a connection.
    fn waits(savings: &Savings, wait: Nanos, usual: Nanos) -> usize {
        (1..100_000)
            .find(|_: &usize| {
                savings.waited(wait, usual);
                savings.suffice(usual)
            })
            .unwrap()
    }

    #[test]
    fn waits_add_up_to_the_price() {
        assert_eq!(waits(&savings(), Nanos::from_micros(50), ANSWER), 80);
        assert_eq!(waits(&savings(), Nanos::from_millis(1), Nanos::from_millis(2)), 4);
        assert_eq!(waits(&savings(), Nanos::from_millis(1), Nanos::from_millis(4)), 8);
    }

    #[test]
    fn a_wait_counts_for_at_most_a_usual_answer() {
        assert_eq!(waits(&savings(), Nanos::from_secs(1), ANSWER), 40);
    }

    #[test]
    fn each_connection_must_earn_its_own_price() {
        let savings = savings();
        assert_eq!(waits(&savings, ANSWER, ANSWER), 40);
        // Waits beyond the price are not kept for the next connection.
        (0..1_000).for_each(|_| savings.waited(ANSWER, ANSWER));
        savings.spend();
        assert!(!savings.suffice(ANSWER));
        assert_eq!(waits(&savings, ANSWER, ANSWER), 40);
    }

    #[test]
    fn rare_waits_never_add_up() {
        let savings = savings();
        let suffice = |n: u64, every: u64| {
            savings.answered();
            savings.waited(if n.is_multiple_of(every) { ANSWER } else { Nanos::ZERO }, ANSWER);
            savings.suffice(ANSWER)
        };
        // One in 600 requests waits for a whole response; then one in 400.
        assert!(!(0..100_000).any(|n| suffice(n, 600)));
        assert!((0..100_000).any(|n| suffice(n, 400)));
    }

    #[test]
    fn a_slow_set_up_is_a_higher_price() {
        let savings = savings();
        savings.set_up_took(Nanos::from_millis(12));
        savings.set_up_took(Nanos::from_millis(8));
        savings.set_up_took(Nanos::from_millis(9));
        assert_eq!(waits(&savings, ANSWER, ANSWER), 80);
    }

    #[test]
    fn before_the_first_answer_a_connection_has_no_price() {
        assert!(Savings::default().suffice(ANSWER));
    }
}
