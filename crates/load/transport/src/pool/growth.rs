//! Decides when a pool opens another connection.
//!
//! A connection costs the target time: to accept it, and much more for TLS. A target that is slowed
//! down by that keeps its connections busy for longer, so that more arrivals find none free. If
//! each of them opened one, the target would do nothing else. So the number of connections grows
//! carefully, like the window of a TCP sender:
//!
//! - If responses are fast, waits must first add up to the price of a connection
//!   ([`savings`](super::savings)), or persist: the first in the queue waits for twice the
//!   [`patience`](Growth::patience), and later ones for once. A target that stalls for less time
//!   causes no new connection.
//! - If the first in the queue waits for longer than a connection and a response take, one
//!   connection *probes*: if its first response is as fast as usual, it was needed, because the
//!   others are busy with rare slow responses. If not, the target stalled, and the next probe waits
//!   four times as long ([`probe`](super::probe)).
//! - Until the first response of a new connection, it is *young*. The number of young connections
//!   is limited: one at first, twice as many each time that waits persist.
//! - After that response it stays young for as long again, because the existing connections first
//!   serve the backlog from the time that the target spent on it.
//! - A target whose responses take long is busy with responses, not with connections. Waiting for a
//!   free connection would cost more than opening one, so only handshakes are limited. A target
//!   without any response for [`SLOW_ANSWER`] counts as slow until it responds.
//! - A target that leaves a handshake [`UNANSWERED`] is not slowed down by others: every waiting
//!   request opens a connection, as the planned load requires.
//!
//! A closed connection leaves its *place*, which may be filled again at once, because a target that
//! closes each connection after its response makes other clients reconnect too.

use std::cell::{Cell, RefCell};

use plimsoll_measure::{Moment, Nanos};
use smart_default::SmartDefault;

use super::AnswerTime;

/// Maximum number of handshakes in progress to add connections, and of young connections.
const MAX_WINDOW: usize = 8;
/// Response time from which opening a connection is cheap in comparison.
const SLOW_ANSWER: Nanos = Nanos::from_millis(5);
/// Duration from which a handshake counts as unanswered: Linux retransmits a lost SYN after a
/// second.
const UNANSWERED: Nanos = Nanos::from_secs(1);
/// Maximum time for which a connection without a response is young: while no response of the target
/// is known, and if its responses are known to be fast.
const PATIENCE_UNKNOWN: Nanos = Nanos::from_millis(2);
const PATIENCE_FAST: Nanos = Nanos::from_millis(20);
/// Multiple of the usual response time that shows that the target stalled.
const STOOD_STILL: u64 = 8;
/// Maximum time for which a connection stays young after its first response.
const MAX_SETTLING: Nanos = Nanos::from_millis(4);

/// Speed of the target's responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Unknown,
    Fast,
    Slow,
}

/// A recently opened connection.
#[derive(Clone, Copy, Debug)]
struct Young {
    number: u32,
    started: Moment,
    ready: Moment,
    /// End of its youth, once it has received a response.
    settled: Option<Moment>,
}

/// State of the connections that a pool opens.
#[derive(Debug, SmartDefault)]
pub(super) struct Growth {
    /// Start times of the handshakes in progress.
    handshakes: RefCell<Vec<Moment>>,
    /// Number of these handshakes that fill a free place.
    refills: Cell<usize>,
    /// Number of places of closed connections.
    places: Cell<usize>,
    #[default(Cell::new(1))]
    window: Cell<usize>,
    young: RefCell<Vec<Young>>,
    answer: AnswerTime,
    savings: Savings,
    probe: Probe,
    /// End of the target's last stall.
    stood_still: Cell<Moment>,
    /// Time at which the first requested connection was open.
    first_opened: Cell<Option<Moment>>,
}

impl Growth {
    fn pace(&self) -> Pace {
        match self.answer.usual() {
            None => Pace::Unknown,
            Some(answer) if answer < SLOW_ANSWER => Pace::Fast,
            Some(_) => Pace::Slow,
        }
    }

    /// Whether a connection is likely to be free soon.
    pub(super) fn is_fast(&self) -> bool {
        self.pace() == Pace::Fast
    }

    /// How long a young connection may block others, and the time after which waits persist.
    pub(super) fn patience(&self) -> Nanos {
        if self.is_fast() { PATIENCE_FAST } else { PATIENCE_UNKNOWN }
    }

    /// Time until the next check of the queue.
    pub(super) fn look_after(&self) -> Nanos {
        let probe = if self.is_fast() { self.probe_after() } else { None };
        probe.unwrap_or_else(|| self.patience()).min(self.patience())
    }

    /// Wait of the first in the queue after which a connection probes; `None` while one does.
    fn probe_after(&self) -> Option<Nanos> {
        self.probe.after(self.usual(), self.savings.set_up())
    }

    /// Whether to open a connection as a probe, given the wait of the first in the queue.
    pub(super) fn wants_probe(&self, wait: Nanos) -> bool {
        self.is_fast() && self.probe_after().is_some_and(|after| wait >= after)
    }

    /// Records that a probe is being opened.
    pub(super) fn probe_began(&self) {
        self.probe.began();
    }

    /// Number of handshakes in progress.
    pub(super) fn handshakes(&self) -> usize {
        self.handshakes.borrow().len()
    }

    /// Whether the target answers no handshake, so that every waiting request may open a
    /// connection.
    fn is_unanswered(&self, now: Moment) -> bool {
        self.handshakes.borrow().first().is_some_and(|began| now >= *began + UNANSWERED)
    }

    /// Takes a free place, if there is one.
    pub(super) fn take_place(&self) -> bool {
        let places = self.places.get();
        self.places.set(places.saturating_sub(1));
        places > 0
    }

    /// Whether another connection may be added now.
    pub(super) fn may_add(&self, now: Moment) -> bool {
        self.note_silence(now);
        if self.is_unanswered(now) {
            return true;
        }
        if !self.is_worth_it() {
            return false;
        }
        let adding = self.handshakes() - self.refills.get();
        let window = if self.pace() == Pace::Slow { MAX_WINDOW } else { self.window.get() };
        adding + self.count_young(now) < window
    }

    /// While no response is known, the target's silence shows that responses take at least as long.
    fn note_silence(&self, now: Moment) {
        if self.first_opened.get().is_some_and(|opened| now >= opened + SLOW_ANSWER) {
            self.answer.expect(SLOW_ANSWER);
        }
    }

    /// Whether waits have reached the price of a connection, persist, or exceed it anyway.
    fn is_worth_it(&self) -> bool {
        !self.is_fast() || self.window.get() > 1 || self.savings.suffice(self.usual())
    }

    fn usual(&self) -> Nanos {
        self.answer.usual().unwrap_or_default()
    }

    /// Records that a request that was not late has waited for a connection. Requests from before a
    /// stall would have waited on any connection.
    pub(super) fn waited(&self, since: Moment, now: Moment) {
        if since >= self.stood_still.get() {
            self.savings.waited(now.since(since), self.usual());
        }
    }

    /// Records the duration of opening a connection.
    pub(super) fn set_up_took(&self, time: Nanos) {
        self.savings.set_up_took(time);
    }

    fn count_young(&self, now: Moment) -> usize {
        let pace = self.pace();
        let patience = self.patience();
        let mut young = self.young.borrow_mut();
        young.retain(|young| match young.settled {
            _ if pace == Pace::Slow => false,
            Some(settled) => now < settled,
            None => now < young.ready + patience,
        });
        young.len()
    }

    /// Records the start of a handshake, in a free place or to add a connection.
    pub(super) fn handshake_began(&self, refill: bool, now: Moment) {
        if !refill {
            self.savings.spend();
        }
        self.handshakes.borrow_mut().push(now);
        self.refills.set(self.refills.get() + usize::from(refill));
    }

    /// Records the end of a handshake that began at this moment, successful or not.
    pub(super) fn handshake_ended(&self, refill: bool, began: Moment) {
        let mut handshakes = self.handshakes.borrow_mut();
        if let Some(index) = handshakes.iter().position(|known| *known == began) {
            handshakes.remove(index);
        }
        self.refills.set(self.refills.get().saturating_sub(usize::from(refill)));
    }

    /// Records that a handshake has failed.
    pub(super) fn handshake_failed(&self) {
        self.probe.failed();
    }

    /// Records that a connection is open, with a handshake from `started` to `ready`.
    pub(super) fn opened(&self, number: u32, started: Moment, ready: Moment) {
        self.savings.set_up_took(ready.since(started));
        self.first_opened.set(self.first_opened.get().or(Some(ready)));
        self.probe.opened(number);
        let mut young = self.young.borrow_mut();
        // Reserves a single element, because each virtual user has a pool with one connection.
        young.reserve_exact(1);
        young.push(Young { number, started, ready, settled: None });
    }

    /// Frees a place: its connection is closed, or could not be opened.
    pub(super) fn free_place(&self) {
        self.places.set(self.places.get() + 1);
    }

    /// Records that a connection is closed.
    pub(super) fn closed(&self, number: u32) {
        self.young.borrow_mut().retain(|young| young.number != number);
        self.probe.closed(number);
        self.free_place();
    }

    /// Records a complete response, `held` after its connection was checked out. `first`: it is the
    /// first response on the connection.
    pub(super) fn answered(&self, number: u32, first: bool, held: Nanos, now: Moment) {
        let is_slow = held.as_u64() > self.usual().as_u64().saturating_mul(STOOD_STILL);
        if self.is_fast() && is_slow {
            self.stood_still.set(now);
        }
        self.probe.answered(number, is_slow);
        self.answer.record(held, first, now);
        self.savings.answered();
        if first
            && let Some(young) =
                self.young.borrow_mut().iter_mut().find(|young| young.number == number)
        {
            let took = now.since(young.started).min(MAX_SETTLING);
            young.settled.get_or_insert(now + took);
        }
    }

    /// Sets the expected response time, which applies until one is known.
    pub(super) fn expect_answer(&self, answer: Nanos) {
        self.answer.expect(answer);
    }

    /// Checks the queue, once per [`patience`](Self::patience) while requests wait; `wait` is the
    /// wait of the first.
    pub(super) fn look(&self, wait: Nanos) {
        let (window, patience) = (self.window.get(), self.patience());
        let enough = if window > 1 { patience } else { patience + patience };
        self.window.set(if wait >= enough { (window * 2).min(MAX_WINDOW) } else { 1 });
    }

    /// Records that the queue is empty.
    pub(super) fn drained(&self) {
        self.window.set(1);
    }
}

/// Minimum wait before a probe; chance and a busy host cause shorter ones.
const LEAST_WAIT: Nanos = Nanos::from_millis(1);
/// Minimum wait in usual response times; shorter waits are chance.
const WAIT_IN_ANSWERS: u64 = 2;
/// Factor by which the next probe waits longer after an unnecessary one.
const BACKOFF: u64 = 4;
/// Maximum number of such increases.
const MAX_BACKOFFS: u32 = 3;

/// State of the probe.
///
/// Requests to a fast target wait for longer than a connection and a response take. Either all
/// connections are busy with rare slow responses, so an additional one responds as fast as usual;
/// or the target stalls, so the additional one responds as late as the others and its handshake was
/// wasted. Only one connection probes at a time, and after each unnecessary probe the next one
/// waits four times as long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    None,
    /// The handshake is in progress.
    Opening,
    /// This connection has not responded yet.
    Open(u32),
}

/// The probing connection, and the number of unnecessary probes in a row.
#[derive(Debug, Default)]
struct Probe {
    state: Cell<State>,
    in_vain: Cell<u32>,
}

impl Probe {
    /// Wait of the first in the queue after which a probe is opened, if a response takes `usual`
    /// and opening a connection `set_up`; `None` while one probes.
    fn after(&self, usual: Nanos, set_up: Nanos) -> Option<Nanos> {
        let answers = Nanos::new(usual.as_u64().saturating_mul(WAIT_IN_ANSWERS));
        let wait = answers.max(set_up).max(LEAST_WAIT);
        (self.state.get() == State::None)
            .then(|| Nanos::new(wait.as_u64().saturating_mul(BACKOFF.pow(self.in_vain.get()))))
    }

    /// Records that a probe is being opened.
    fn began(&self) {
        self.state.set(State::Opening);
    }

    /// Records that opening a connection failed.
    fn failed(&self) {
        if self.state.get() == State::Opening {
            self.was_not_needed();
        }
    }

    /// Records that a connection is open. Any new one probes as well as the one opened for it.
    fn opened(&self, number: u32) {
        if self.state.get() == State::Opening {
            self.state.set(State::Open(number));
        }
    }

    /// Records that a connection is closed.
    fn closed(&self, number: u32) {
        if self.state.get() == State::Open(number) {
            self.was_not_needed();
        }
    }

    /// Records that a connection has responded, perhaps much later than usual.
    fn answered(&self, number: u32, is_slow: bool) {
        if self.state.get() != State::Open(number) {
            return;
        }
        if is_slow {
            self.was_not_needed();
        } else {
            self.state.set(State::None);
            self.in_vain.set(0);
        }
    }

    fn was_not_needed(&self) {
        self.state.set(State::None);
        self.in_vain.set((self.in_vain.get() + 1).min(MAX_BACKOFFS));
    }
}

/// Minimum price of a connection. A pause of the target or of the host affects some tens of
/// requests, each of which waits for as long as a response takes; that must not pay for a
/// connection.
const LEAST_PRICE: Nanos = Nanos::from_millis(4);
/// Price in usual response times, if that is more.
const PRICE_IN_ANSWERS: u64 = 2;
/// Waits of up to 1/512 of the response times are forgotten.
const FORGOTTEN: u64 = 512;

/// The counted waits and responses.
///
/// This is the ski rental problem (Karlin, Manasse, Rudolph and Sleator, "Competitive snoopy
/// caching", 1988): buying once the rent so far has reached the price costs at most twice the
/// optimum. The rent is the time that requests wait for a connection. It excludes, besides waits
/// for a target that stalls:
///
/// - Waits beyond a usual response time, within which a connection would have been free again.
/// - Chance: each response subtracts a small share of its time from the sum. A rare coincidence of
///   arrivals is forgotten, and waits that are a small share of all response times never add up.
#[derive(Debug, Default)]
struct Savings {
    saved: Cell<Nanos>,
    answers: Cell<u64>,
    /// Number of responses for which waits were forgotten.
    settled: Cell<u64>,
    /// Shortest time that opening a connection took; zero if unknown.
    set_up: Cell<Nanos>,
}

impl Savings {
    /// Counts a complete response.
    fn answered(&self) {
        self.answers.set(self.answers.get() + 1);
    }

    /// Records the duration of opening a connection.
    fn set_up_took(&self, time: Nanos) {
        let known = self.set_up.get();
        self.set_up.set(if known == Nanos::ZERO { time } else { known.min(time) });
    }

    /// Shortest time that opening a connection took; zero if unknown.
    const fn set_up(&self) -> Nanos {
        self.set_up.get()
    }

    /// Records the wait of a request, if a response takes `usual`.
    fn waited(&self, wait: Nanos, usual: Nanos) {
        let answers = self.answers.get() - self.settled.replace(self.answers.get());
        let forgotten = Nanos::new(usual.as_u64().saturating_mul(answers) / FORGOTTEN);
        let saved = self.saved.get().saturating_sub(forgotten) + wait.min(usual);
        self.saved.set(saved.min(self.price(usual)));
    }

    /// Whether the waits reach the price of a connection. Before the first response they always do.
    fn suffice(&self, usual: Nanos) -> bool {
        self.answers.get() == 0 || self.saved.get() >= self.price(usual)
    }

    /// Records that a connection is being opened: the next one must earn its own price.
    fn spend(&self) {
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

    fn at(us: u64) -> Moment {
        Moment::EPOCH + Nanos::from_micros(us)
    }

    /// Opens a connection instantly.
    fn open(growth: &Growth, number: u32, us: u64) {
        growth.handshake_began(false, at(us));
        growth.handshake_ended(false, at(us));
        growth.opened(number, at(us), at(us));
    }

    /// Opens a connection if it may be added now, and returns whether it did.
    fn opens(growth: &Growth, number: u32, us: u64) -> bool {
        let may = growth.may_add(at(us));
        if may {
            open(growth, number, us);
        }
        may
    }

    /// Checks a queue that does not drain.
    fn look_persists(growth: &Growth) {
        growth.look(growth.patience() + growth.patience());
    }

    /// Lets requests wait until a connection is worth its price.
    fn pay(growth: &Growth) {
        (0..100).for_each(|_| growth.waited(at(100_000), at(101_000)));
    }

    #[test]
    fn where_answers_are_fast_a_connection_must_be_worth_its_price() {
        let growth = Growth::default();
        growth.answered(1, false, Nanos::from_micros(100), at(0));
        growth.waited(at(0), at(1_000));
        assert!(!growth.may_add(at(0)));
        pay(&growth);
        assert!(opens(&growth, 2, 0));
        growth.answered(2, true, Nanos::from_micros(100), at(100));
        assert!(!growth.may_add(at(90_000)), "the next one has its own price");
        // A persistent queue does not need to reach the price.
        look_persists(&growth);
        assert!(growth.may_add(at(90_000)));
        growth.drained();
        growth.expect_answer(Nanos::from_secs(1));
        assert!(!growth.may_add(at(90_000)), "what was expected no longer counts");
    }

    #[test]
    fn the_next_connection_waits_for_the_first_answer_and_as_long_again() {
        let growth = Growth::default();
        assert!(growth.may_add(at(0)));
        open(&growth, 1, 0);
        assert!(!growth.may_add(at(899)));
        growth.answered(1, true, Nanos::from_micros(900), at(900));
        pay(&growth);
        assert!(!growth.may_add(at(1_799)));
        assert!(growth.may_add(at(1_800)));
    }

    #[test]
    fn a_connection_without_an_answer_blocks_others_for_a_time_only() {
        let growth = Growth::default();
        open(&growth, 1, 0);
        assert!(!growth.may_add(at(1_999)));
        assert!(growth.may_add(at(2_000)));
        // If responses are known to take 100 us, 2 ms without one mean that the target is stuck.
        growth.answered(9, false, Nanos::from_micros(100), at(2_000));
        open(&growth, 2, 2_000);
        pay(&growth);
        assert!(!growth.may_add(at(21_999)));
        assert!(growth.may_add(at(22_000)));
    }

    #[test]
    fn waits_that_persist_double_what_may_be_opened_at_once() {
        let growth = Growth::default();
        growth.expect_answer(Nanos::from_micros(100));
        pay(&growth);
        let mut room = Vec::new();
        for look in 0..5_u32 {
            let now = u64::from(look) * 50_000;
            let before = look * 100;
            let opened = (0..20).take_while(|n| opens(&growth, before + n, now));
            room.push(opened.count());
            look_persists(&growth);
        }
        assert_eq!(room, [1, 2, 4, 8, 8]);
        growth.drained();
        open(&growth, 999, 900_000);
        assert!(!growth.may_add(at(900_000)));
    }

    #[test]
    fn who_waits_while_the_target_stands_still_pays_for_no_connection() {
        let growth = Growth::default();
        let answer = Nanos::from_micros(100);
        growth.answered(1, false, answer, at(0));
        growth.answered(1, false, Nanos::from_millis(30), at(30_000));
        (0..1_000).for_each(|_| growth.waited(at(29_999), at(30_500)));
        assert!(!growth.may_add(at(31_000)));
        (0..100).for_each(|_| growth.waited(at(30_000), at(31_000)));
        assert!(growth.may_add(at(31_000)), "they came afterwards");
    }

    /// The wait of the first request counts, not how often the pool has checked meanwhile.
    #[test]
    fn a_pause_shorter_than_twice_the_patience_needs_no_connection() {
        let growth = Growth::default();
        growth.answered(1, false, Nanos::from_micros(100), at(0));
        for wait_ms in [20, 30, 39] {
            growth.look(Nanos::from_millis(wait_ms));
            assert!(!growth.may_add(at(0)), "{wait_ms} ms");
        }
        growth.look(Nanos::from_millis(40));
        assert!(growth.may_add(at(0)));
        growth.look(Nanos::from_millis(1));
        assert!(!growth.may_add(at(0)), "another is the first");
    }

    #[test]
    fn where_answers_take_long_only_handshakes_are_bounded() {
        let growth = Growth::default();
        growth.expect_answer(Nanos::from_secs(2));
        (0..100).for_each(|number| open(&growth, number, 0));
        (0..8).for_each(|_| {
            assert!(growth.may_add(at(0)));
            growth.handshake_began(false, at(0));
        });
        assert!(!growth.may_add(at(0)));
    }

    #[test]
    fn handshakes_without_an_answer_hold_no_others_up() {
        let growth = Growth::default();
        growth.handshake_began(false, at(0));
        assert!(!growth.may_add(at(999_999)));
        assert!((0..100).all(|_| {
            growth.handshake_began(false, at(1_000_000));
            growth.may_add(at(1_000_000))
        }));
        growth.handshake_ended(false, at(0));
        assert!(!growth.may_add(at(1_000_001)), "the others may still be answered");
    }

    /// Streams of seconds, without an earlier probe: the first thousand do not wait for each other.
    #[test]
    fn a_target_that_does_not_answer_at_all_is_slow() {
        let growth = Growth::default();
        open(&growth, 1, 0);
        open(&growth, 2, 4_000);
        assert!(!growth.may_add(at(4_999)), "nobody knows yet");
        assert!((3..100).all(|number| opens(&growth, number, 5_000)));
        (0..200).for_each(|_| growth.answered(1, false, Nanos::from_micros(100), at(6_000)));
        assert!(!growth.may_add(at(6_000)), "its answers are fast: it was only late at first");
    }

    #[test]
    fn the_place_of_a_closed_connection_may_be_filled_at_once() {
        let growth = Growth::default();
        assert!(!growth.take_place());
        open(&growth, 1, 0);
        growth.closed(1);
        assert!(growth.take_place() && !growth.take_place());
        growth.handshake_began(true, at(0));
        assert!(growth.may_add(at(0)), "it is none of those that are added");
    }

    const USUAL: Nanos = Nanos::from_millis(2);

    fn after(probe: &Probe) -> Option<u64> {
        probe.after(USUAL, Nanos::ZERO).map(|wait| wait.as_u64() / 1_000_000)
    }

    #[test]
    fn one_probes_at_a_time_and_the_next_waits_longer_if_it_was_not_needed() {
        let probe = Probe::default();
        assert_eq!(after(&probe), Some(4));
        probe.began();
        assert_eq!(after(&probe), None);
        probe.opened(7);
        probe.answered(3, true);
        assert_eq!(after(&probe), None, "another connection says nothing");
        probe.answered(7, true);
        assert_eq!(after(&probe), Some(16));
        probe.began();
        probe.opened(8);
        probe.answered(8, false);
        assert_eq!(after(&probe), Some(4), "it was needed");
        for _ in 0..9 {
            probe.began();
            probe.failed();
        }
        assert_eq!(after(&probe), Some(256));
    }

    #[test]
    fn a_wait_is_longer_than_opening_a_connection() {
        let probe = Probe::default();
        assert_eq!(probe.after(Nanos::from_micros(50), Nanos::ZERO), Some(LEAST_WAIT));
        let handshake = Nanos::from_millis(9);
        assert_eq!(probe.after(Nanos::from_micros(50), handshake), Some(handshake));
    }

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
