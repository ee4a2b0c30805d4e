//! A single connection that finds out why requests wait.
//!
//! Requests to a fast target wait for longer than a connection and a response take. Either all
//! connections are busy with rare slow responses, so that an additional one responds as fast as
//! usual. Or the target stalls, so that it responds as late as the others, and its handshake was
//! wasted. Only one connection probes at a time, and after each unnecessary probe the next one
//! waits four times as long.

use std::cell::Cell;

use plimsoll_measure::Nanos;

/// Minimum wait before a probe; chance and a busy host cause shorter ones.
const LEAST_WAIT: Nanos = Nanos::from_millis(1);
/// Minimum wait in usual response times; shorter waits are chance.
const WAIT_IN_ANSWERS: u64 = 2;
/// Factor by which the next probe waits longer after an unnecessary one.
const BACKOFF: u64 = 4;
/// Maximum number of such increases.
const MAX_BACKOFFS: u32 = 3;

/// State of the probe.
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
pub(super) struct Probe {
    state: Cell<State>,
    in_vain: Cell<u32>,
}

impl Probe {
    /// Wait of the first in the queue after which a probe is opened, if a response takes `usual`
    /// and opening a connection `set_up`; `None` while one probes.
    pub(super) fn after(&self, usual: Nanos, set_up: Nanos) -> Option<Nanos> {
        let answers = Nanos::new(usual.as_u64().saturating_mul(WAIT_IN_ANSWERS));
        let wait = answers.max(set_up).max(LEAST_WAIT);
        (self.state.get() == State::None)
            .then(|| Nanos::new(wait.as_u64().saturating_mul(BACKOFF.pow(self.in_vain.get()))))
    }

    /// Records that a probe is being opened.
    pub(super) fn began(&self) {
        self.state.set(State::Opening);
    }

    /// Records that opening a connection failed.
    pub(super) fn failed(&self) {
        if self.state.get() == State::Opening {
            self.was_not_needed();
        }
    }

    /// Records that a connection is open. Any new one probes as well as the one opened for it.
    pub(super) fn opened(&self, number: u32) {
        if self.state.get() == State::Opening {
            self.state.set(State::Open(number));
        }
    }

    /// Records that a connection is closed.
    pub(super) fn closed(&self, number: u32) {
        if self.state.get() == State::Open(number) {
            self.was_not_needed();
        }
    }

    /// Records that a connection has responded, perhaps much later than usual.
    pub(super) fn answered(&self, number: u32, is_slow: bool) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
