//! The plan of a stream of JSON-RPC messages.

use std::collections::VecDeque;
use std::task::Context;

use crate::fault::Fault;
use crate::stop::Stop;
use crate::timed_plan::{StreamEnd, TimedPlan};

/// Messages as server-sent events, each with its due time.
#[derive(Debug)]
pub(crate) struct EventPlan {
    events: VecDeque<(u64, Vec<u8>)>,
    end: Option<StreamEnd>,
    end_due: u64,
    stop: Option<Stop>,
    /// The last event of a stopped stream.
    farewell: Vec<u8>,
}

impl EventPlan {
    /// The last of `messages` is the answer, due after `latency`; the others precede it at equal
    /// intervals.
    pub(crate) fn evenly(
        messages: &[Vec<u8>],
        latency: u64,
        fault: Option<Fault>,
        stop: Option<Stop>,
    ) -> Self {
        let count = messages.len() as u64;
        Self::timed(
            messages
                .iter()
                .zip(1..)
                .map(|(message, number)| (part(latency, number, count), named_event(message)))
                .collect(),
            fault,
            stop,
        )
    }

    /// Sets the last event of a stopped stream.
    pub(crate) fn with_farewell(self, farewell: Vec<u8>) -> Self {
        Self { farewell, ..self }
    }

    /// Events with their due times, in order. A fault after `n` events replaces event `n`, or the
    /// last event. The caller provides the event of an error.
    pub(crate) fn timed(
        events: Vec<(u64, Vec<u8>)>,
        fault: Option<Fault>,
        stop: Option<Stop>,
    ) -> Self {
        let fault = fault.filter(|fault| !fault.is_error());
        let last = events.len().saturating_sub(1);
        let place = fault.map_or(events.len(), |fault| (fault.at_token() as usize).min(last));
        let (pause, end) = fault.map_or((0, None), Fault::effect);
        let kept = if end.is_some() { place } else { events.len() };
        // An aborted stream ends at the due time of the next event.
        let next = events.get(kept).map(|(due, _)| *due);
        let events: VecDeque<_> = events
            .into_iter()
            .take(kept)
            .enumerate()
            .map(|(index, (due, event))| {
                (due.saturating_add(if index >= place { pause } else { 0 }), event)
            })
            .collect();
        let last = events.back().map_or(0, |(due, _)| *due);
        let end = Some(end.unwrap_or(StreamEnd::Complete));
        Self { events, end, end_due: next.unwrap_or(last), stop, farewell: Vec::new() }
    }
}

/// The time of part `number` of `count` equal ones.
pub(crate) fn part(whole: u64, number: u64, count: u64) -> u64 {
    let part = u128::from(whole) * u128::from(number) / u128::from(count.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// A message as a server-sent event named `message`. JSON contains no raw line breaks.
fn named_event(message: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", message, b"\n\n"].concat()
}

/// The effect of a fault on an unstreamed answer: a pause in nanoseconds, and its end.
pub(crate) fn unstreamed(fault: Option<Fault>) -> (u64, StreamEnd) {
    let (pause, end) = fault.map_or((0, None), Fault::effect);
    (pause, end.unwrap_or(StreamEnd::Complete))
}

impl TimedPlan for EventPlan {
    fn due(&self) -> Option<u64> {
        let next = self.events.front().map(|(due, _)| *due);
        next.or_else(|| self.end.map(|_| self.end_due))
    }

    fn tokens_sent(&self) -> u32 {
        0
    }

    fn disconnects(&self) -> bool {
        self.events.is_empty() && matches!(self.end, Some(StreamEnd::Disconnected { .. }))
    }

    fn advance(&mut self, _in_flight: u64, out: &mut Vec<u8>) -> Option<StreamEnd> {
        match self.events.pop_front() {
            Some((_, event)) => {
                out.extend_from_slice(&event);
                None
            }
            None => self.end.take(),
        }
    }

    fn poll_stopped(&mut self, cx: &mut Context<'_>) -> bool {
        self.stop.as_mut().is_some_and(|stop| stop.poll(cx))
    }

    fn farewell(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.farewell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The due time of every step, its text, and the end.
    fn steps(fault: Option<Fault>) -> (Vec<(u64, String)>, StreamEnd) {
        let messages = [b"1".to_vec(), b"2".to_vec(), b"3".to_vec()];
        let mut plan = EventPlan::evenly(&messages, 300, fault, None);
        let mut found = Vec::new();
        loop {
            let (due, mut out) = (plan.due().unwrap(), Vec::new());
            let end = plan.advance(0, &mut out);
            found
                .push((due, String::from_utf8(out).unwrap().replace("event: message\ndata: ", "")));
            if let Some(end) = end {
                assert_eq!(plan.due(), None);
                return (found, end);
            }
        }
    }

    #[test]
    fn messages_come_at_equal_distances_and_faults_in_their_place() {
        let pause = "7ns".parse().unwrap();
        for (fault, expected, end) in [
            (None, vec![(100, "1"), (200, "2"), (300, "3"), (300, "")], StreamEnd::Complete),
            (
                Some(Fault::Stall { at: 1, pause }),
                vec![(100, "1"), (207, "2"), (307, "3"), (307, "")],
                StreamEnd::Complete,
            ),
            (
                "cut@1".parse().ok(),
                vec![(100, "1"), (200, "")],
                StreamEnd::Disconnected { reset: false },
            ),
            // There are only two messages before the answer, whose place it takes.
            (
                "truncate@9".parse().ok(),
                vec![(100, "1"), (200, "2"), (300, "")],
                StreamEnd::Truncated,
            ),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(due, text)| step(due, text)).collect();
            assert_eq!(steps(fault), (expected, end), "{fault:?}");
        }
    }

    fn step(due: u64, text: &str) -> (u64, String) {
        (due, if text.is_empty() { String::new() } else { format!("{text}\n\n") })
    }
}
