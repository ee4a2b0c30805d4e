//! What one more connection would have saved, against the price of opening one.
//!
//! It is the choice between renting and buying (Karlin, Manasse, Rudolph and Sleator, "Competitive
//! snoopy caching", 1988): who buys when the rent so far has reached the price pays at most twice
//! what was needed, whatever comes. Rent is the time that requests wait for a connection. Two
//! things are no rent, besides the waits for a target that [stands still](super::growth):
//!
//! - More than a usual answer takes. Within that time a connection would have been free again.
//! - Chance. Each answer takes a small share of its time off the sum, so that a rare coincidence of
//!   arrivals is forgotten, and waits that are a small share of all answers never add up.

use std::cell::Cell;

use plimsoll_measure::Nanos;

/// The least price of a connection. A pause of the target or of the host concerns some tens of
/// requests, each of which waits for as long as an answer takes: that must not buy any.
const LEAST_PRICE: Nanos = Nanos::from_millis(4);
/// The price is that of so many usual answers, if that is more.
const PRICE_IN_ANSWERS: u64 = 2;
/// Waits may add up to one in so many parts of the answer times without being too much.
const FORGOTTEN: u64 = 512;

/// The waits that count, and the answers.
#[derive(Debug, Default)]
pub(super) struct Savings {
    saved: Cell<Nanos>,
    answers: Cell<u64>,
    /// The answers for which waits were forgotten.
    settled: Cell<u64>,
    /// The shortest time that opening a connection took; zero if none is known.
    set_up: Cell<Nanos>,
}

impl Savings {
    /// An answer is complete.
    pub(super) fn answered(&self) {
        self.answers.set(self.answers.get() + 1);
    }

    /// A connection was opened within this time.
    pub(super) fn set_up_took(&self, time: Nanos) {
        let known = self.set_up.get();
        self.set_up.set(if known == Nanos::ZERO { time } else { known.min(time) });
    }

    /// The shortest time that opening a connection took; zero if none is known.
    pub(super) const fn set_up(&self) -> Nanos {
        self.set_up.get()
    }

    /// A request has waited for so long, where an answer takes `usual`.
    pub(super) fn waited(&self, wait: Nanos, usual: Nanos) {
        let answers = self.answers.get() - self.settled.replace(self.answers.get());
        let forgotten = Nanos::new(usual.as_u64().saturating_mul(answers) / FORGOTTEN);
        let saved = self.saved.get().saturating_sub(forgotten) + wait.min(usual);
        self.saved.set(saved.min(self.price(usual)));
    }

    /// Whether they reach the price of a connection. As long as no answer has come, they do.
    pub(super) fn suffice(&self, usual: Nanos) -> bool {
        self.answers.get() == 0 || self.saved.get() >= self.price(usual)
    }

    /// A connection is being opened: the next one must earn its own price.
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

    /// Savings after an answer.
    fn savings() -> Savings {
        let savings = Savings::default();
        savings.answered();
        savings
    }

    /// How many waits of so long buy a connection.
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
        // What comes on top of a price is not kept for the next one.
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
        // One in 600 waits for a whole answer; then one in 400.
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
