//! The instants of one turn, and the durations that the glossary defines on them.

use crate::time::{Moment, Nanos};

/// The instants of one turn; `None` for those that it did not reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Scheduled time of the request; closed model: when the virtual user became free.
    pub intended: Moment,
    /// Time at which the generator started to process it, before connection set-up and the first
    /// write. A turn that waits for a connection ([`ConnectPhases::wait`]) is dispatched when a
    /// used one becomes free, or when its new one begins to be opened.
    pub dispatched: Option<Moment>,
    /// Time at which the connection was ready; equals `dispatched` for a reused one.
    pub connected: Option<Moment>,
    /// Time at which the last byte of the request was passed to the kernel.
    pub sent: Option<Moment>,
    /// Time at which the first byte of the response arrived.
    pub first_byte: Option<Moment>,
    /// Time at which the first event with content arrived (text, reasoning or tool call).
    pub first_token: Option<Moment>,
    /// Time at which the first event with content other than reasoning arrived.
    pub first_output_token: Option<Moment>,
    /// Time at which the last event with content arrived.
    pub last_token: Option<Moment>,
    /// Time at which the turn was complete, failed or cancelled.
    pub finished: Option<Moment>,
}

impl Timeline {
    /// Creates a timeline with the intended start only.
    pub fn intended(at: Moment) -> Self {
        Self { intended: at, ..Self::default() }
    }

    /// `finished - intended`: the time that a user waits.
    pub fn response_time(&self) -> Option<Nanos> {
        Some(self.finished?.since(self.intended))
    }

    /// `finished - dispatched`: the target's time, including connection set-up.
    pub fn service_time(&self) -> Option<Nanos> {
        self.since_dispatch(self.finished)
    }

    /// `dispatched - intended`: the generator's delay, plus the waits for a slot of `max_in_flight`
    /// and for a connection.
    pub fn dispatch_lag(&self) -> Option<Nanos> {
        Some(self.dispatched?.since(self.intended))
    }

    /// First byte of the response minus dispatched.
    pub fn ttfb(&self) -> Option<Nanos> {
        self.since_dispatch(self.first_byte)
    }

    /// First event with content minus dispatched.
    pub fn ttft(&self) -> Option<Nanos> {
        self.since_dispatch(self.first_token)
    }

    /// First event with content minus intended.
    pub fn response_ttft(&self) -> Option<Nanos> {
        Some(self.first_token?.since(self.intended))
    }

    /// First event with content other than reasoning, minus dispatched.
    pub fn ttfot(&self) -> Option<Nanos> {
        self.since_dispatch(self.first_output_token)
    }

    /// Time from the first byte of the response to the end of the turn.
    pub fn transfer_time(&self) -> Option<Nanos> {
        Some(self.finished?.since(self.first_byte?))
    }

    /// `service_time / output_tokens`.
    pub fn ntpot(&self, output_tokens: u32) -> Option<Nanos> {
        self.service_time()?.as_u64().checked_div(u64::from(output_tokens)).map(Nanos::new)
    }

    fn since_dispatch(&self, moment: Option<Moment>) -> Option<Nanos> {
        Some(moment?.since(self.dispatched?))
    }
}

/// Durations of the phases of getting a connection; all `None` for an idle one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectPhases {
    /// Wait for a pooled connection, or for the permission to open one; it ends with `dispatched`.
    pub wait: Option<Nanos>,
    /// Name resolution; `None` for an address.
    pub dns: Option<Nanos>,
    /// The TCP handshake.
    pub tcp: Option<Nanos>,
    /// The TLS handshake.
    pub tls: Option<Nanos>,
    /// Whether the TLS handshake resumed an earlier session (by a ticket or a session id).
    pub resumed: bool,
    /// The handshake of a WebSocket, from the ready connection to the 101.
    pub upgrade: Option<Nanos>,
    /// Whether the turn was the first on an idle connection, which was opened before the run, or
    /// for a turn that another connection served first.
    pub ahead: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    #[test]
    fn durations_follow_the_glossary() {
        let line = Timeline {
            intended: at(100),
            dispatched: Some(at(110)),
            connected: Some(at(111)),
            sent: Some(at(112)),
            first_byte: Some(at(150)),
            first_token: Some(at(210)),
            first_output_token: Some(at(230)),
            last_token: Some(at(510)),
            finished: Some(at(520)),
        };
        let ms = |length: Option<Nanos>| length.map(Nanos::as_millis_f64);
        assert_eq!(ms(line.response_time()), Some(420.0));
        assert_eq!(ms(line.service_time()), Some(410.0));
        assert_eq!(ms(line.dispatch_lag()), Some(10.0));
        assert_eq!(ms(line.ttfb()), Some(40.0));
        assert_eq!(ms(line.ttft()), Some(100.0));
        assert_eq!(ms(line.response_ttft()), Some(110.0));
        assert_eq!(ms(line.ttfot()), Some(120.0));
        assert_eq!(ms(line.transfer_time()), Some(370.0));
        assert_eq!(ms(line.ntpot(41)), Some(10.0));
    }

    #[test]
    fn no_response_gives_no_value() {
        let line = Timeline::intended(at(5));
        assert_eq!(line.response_time(), None);
    }
}
