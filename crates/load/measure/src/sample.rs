//! One measured turn.

use crate::id::{ConversationKey, ScenarioId, StageId, TargetId};
use crate::operation::{Operation, RpcReport};
use crate::outcome::{Outcome, PolicyDecision};
use crate::server_report::ServerReport;
use crate::stream::{FinishReason, StreamShape};
use crate::time::{Moment, Nanos};
use crate::timeline::{ConnectPhases, Timeline};
use crate::tokens::Usage;

/// Totals of the gaps between content events of one stream. Their distribution is kept elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapSummary {
    /// Number of gaps: reads that brought content, minus one.
    pub count: u32,
    /// Sum of all gaps.
    pub sum: Nanos,
    /// The longest gap.
    pub max: Nanos,
    /// The most content events that one read brought.
    pub largest_burst: u32,
    /// Content events of the first read that brought any; 0 if unknown.
    pub first_burst: u32,
    /// Those of the last one.
    pub last_burst: u32,
    /// Content events that may share their read with the event before them only because the
    /// generator read late: at most the lateness of the read divided by the mean time between the
    /// events of the stream. All others that share a read count as sent together.
    pub late_together: u32,
}

/// A read that lags the kernel's receive time stamp by more than this may return several sends at
/// once. An idle worker reads within some tens of microseconds.
pub const LATE_READ: Nanos = Nanos::from_micros(250);

/// What the generator itself may have added to the instants of one turn: upper bounds, zero where
/// it added nothing. `docs/adr/0007-judged-by-effect.md` derives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratorShare {
    /// How much earlier a generator that is never late would have dispatched the turn: from the
    /// intended start, or from the moment at which such a generator would have had a slot or a
    /// connection for it, to the dispatch. Of a turn that was never sent: more than zero if such a
    /// generator would have sent it.
    pub dispatch: Nanos,
    /// How much earlier the last byte of the request might have been in the kernel: what nothing
    /// but the generator delayed since the connection was ready, and how much earlier than noticed
    /// it may have been ready.
    pub send: Nanos,
    /// How much earlier than stamped the first byte may have arrived.
    pub first_byte: Nanos,
    /// The same for the first content event.
    pub first_token: Nanos,
    /// The same for the first content event that is not reasoning.
    pub first_output_token: Nanos,
    /// The same for the last content event.
    pub last_token: Nanos,
    /// The same for the end of the response.
    pub finished: Nanos,
}

impl GeneratorShare {
    /// Whether the generator added nothing.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Whether anything may have arrived earlier than it was stamped.
    #[inline]
    pub const fn received_earlier(&self) -> bool {
        let tokens =
            self.first_token.as_u64() | self.first_output_token.as_u64() | self.last_token.as_u64();
        self.first_byte.as_u64() | tokens | self.finished.as_u64() != 0
    }

    /// The parts, in the order in which rows have them.
    pub const fn parts(&self) -> [Nanos; 7] {
        [
            self.dispatch,
            self.send,
            self.first_byte,
            self.first_token,
            self.first_output_token,
            self.last_token,
            self.finished,
        ]
    }

    /// The same of a turn with these instants: no part, nor all of them before an instant together,
    /// is longer than the time from the intended start to that instant.
    #[must_use]
    pub fn within(self, line: &Timeline) -> Self {
        let whole = line.response_time().unwrap_or(Nanos::new(u64::MAX));
        let dispatch = self.dispatch.min(whole);
        let send = self.send.min(whole.saturating_sub(dispatch));
        let received = |part: Nanos, at: Option<Moment>| {
            let since = at.map(|at| at.since(line.intended).saturating_sub(dispatch + send));
            since.map_or(part, |since| part.min(since))
        };
        Self {
            dispatch,
            send,
            first_byte: received(self.first_byte, line.first_byte),
            first_token: received(self.first_token, line.first_token),
            first_output_token: received(self.first_output_token, line.first_output_token),
            last_token: received(self.last_token, line.last_token),
            finished: received(self.finished, line.finished),
        }
    }

    /// The inverse of [`GeneratorShare::parts`].
    pub const fn from_parts(parts: [Nanos; 7]) -> Self {
        let [dispatch, send, first_byte, first_token, first_output_token, last_token, finished] =
            parts;
        Self { dispatch, send, first_byte, first_token, first_output_token, last_token, finished }
    }
}

/// A late read of a stream: its content events may have arrived one by one before their common time
/// stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateRead {
    /// Position, among the gaps of the stream, of the gap that ends with this read. The first read
    /// with content ends none: `None`.
    pub gap: Option<u32>,
    /// Content events that the read brought.
    pub events: u32,
    /// How much earlier than stamped the first of them may have arrived.
    pub earlier_by: Nanos,
    /// How much earlier the last of them may have arrived: nothing where the kernel stamped it.
    pub last_earlier_by: Nanos,
}

/// Less than this is not worth keeping: it is below what two clock readings around a system call
/// can resolve.
pub const LEAST_SHARE: Nanos = Nanos::from_micros(20);
/// Nor is less than one in so many of a time: 0.5 %.
pub const LEAST_ONE_IN: u64 = 200;

/// Delays of one turn by HTTP/2 flow control (RFC 9113, 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowControl {
    /// How long the request waited for the target's windows or its limit of concurrent streams;
    /// `None` if it did not wait.
    pub send_stall: Option<Nanos>,
    /// Whether so much of the response was unread that our own window may have delayed the target.
    pub receive_stall: bool,
}

/// The parts of an answer, in bytes, and digests by which two answers can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerContent {
    /// Text for the reader.
    pub text: u32,
    /// The model's reasoning.
    pub reasoning: u32,
    /// Names and arguments of tool calls.
    pub tool_calls: u32,
    /// CRC-32 of all parts in their order, however the stream cut them; 0 if unknown.
    pub digest: u32,
    /// Digest of the model that the answer names, without provider and date; 0 if it names none.
    pub model: u32,
}

impl AnswerContent {
    /// All parts together.
    pub const fn total(self) -> u32 {
        self.text.saturating_add(self.reasoning).saturating_add(self.tool_calls)
    }
}

/// One scheduled turn and its measurements. `Copy`, without heap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Sample {
    /// The stage in which the turn was intended to start.
    pub stage: StageId,
    /// The scenario it is an instance of.
    pub scenario: ScenarioId,
    /// The target it went to.
    pub target: TargetId,
    /// The conversation it belongs to.
    pub conversation: ConversationKey,
    /// Position in the conversation, from 0.
    pub turn: u16,
    /// In a comparison: its place in the order of the targets, from 0.
    pub position: u8,
    /// What it asks a tool server or an agent for; `None` for all other requests.
    pub operation: Option<Operation>,
    /// Whether a stream was requested.
    pub stream: bool,
    /// Whether it belongs to a warm-up stage.
    pub warmup: bool,
    /// Whether it used a connection that had been used before.
    pub reused: bool,
    /// The instants of the turn.
    pub timeline: Timeline,
    /// The wait for a connection and its set-up, where there was any.
    pub connect: ConnectPhases,
    /// Set if the request was sent again, because the target had not worked on it: how long its
    /// connection had been idle before the first attempt.
    pub retried_after: Option<Nanos>,
    /// HTTP status; 0 if none was received.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// The target's policy decision, if it responded.
    pub policy_decision: Option<PolicyDecision>,
    /// The policy decision that the scenario expects, if it states one.
    pub expected: Option<PolicyDecision>,
    /// Token counts.
    pub usage: Usage,
    /// Content-bearing events received.
    pub events: u32,
    /// Gaps between them.
    pub gaps: GapSummary,
    /// How they came; `None` unless a stream came to its end.
    pub shape: Option<StreamShape>,
    /// Why the model stopped, if the target said so.
    pub finish_reason: Option<FinishReason>,
    /// How much of each kind a whole answer brought.
    pub content: AnswerContent,
    /// Whether the target reported usage that cannot be true. It is left out of `usage`.
    pub usage_refused: bool,
    /// What the answer of a tool server or an agent says.
    pub rpc: RpcReport,
    /// Delays by flow control.
    pub flow: FlowControl,
    /// What the response's headers say of cache, retries and time.
    pub server: ServerReport,
    /// Bytes of the request, head included.
    pub bytes_out: u64,
    /// Bytes of the response, head included, as they came off the connection (after TLS).
    pub bytes_in: u64,
    /// The longest read lag of the turn: from the kernel's receive time stamp to our read. `None`
    /// without kernel time stamps.
    pub read_lag: Option<Nanos>,
    /// What the generator itself may have added to the instants.
    pub generator: GeneratorShare,
    /// Whether it was in flight while the target worked off what a pause of the generator had held
    /// back.
    pub affected: bool,
}

impl Sample {
    /// Whether it is an arrival of the open model: the first turn of its conversation.
    pub const fn is_arrival(&self) -> bool {
        self.conversation.is_arrival() && self.turn == 0
    }

    /// How late the generator dispatched it. The wait for a connection of its own is no lateness:
    /// it may be the target's, which answers no handshake.
    pub fn pacing_lag(&self) -> Nanos {
        self.generator.dispatch.saturating_sub(self.connect.wait.unwrap_or_default())
    }

    /// A turn that is scheduled and has not been sent, with everything else zero or unknown.
    #[inline]
    pub fn unsent(intended: Moment) -> Self {
        Self { timeline: Timeline::intended(intended), ..Self::default() }
    }

    /// The instants as they would be without what the generator itself may have added. The real
    /// ones lie between these and the measured ones.
    pub fn timeline_without_generator(&self) -> Timeline {
        let (line, own) = (&self.timeline, &self.generator);
        let before_sent = own.dispatch + own.send;
        let earlier = |moment: Option<Moment>, by: Nanos, floor: Option<Moment>| {
            let moment = moment?;
            Some((moment - by).max(floor.unwrap_or(line.intended)).min(moment))
        };
        let dispatched = earlier(line.dispatched, own.dispatch, None);
        let sent = earlier(line.sent, before_sent, dispatched);
        // What is more than the time from the connection to the sending was before the connection.
        let connected = earlier(line.connected, own.dispatch, dispatched);
        let connected = connected.map(|at| sent.map_or(at, |sent| at.min(sent)));
        let received = |moment, by| earlier(moment, before_sent + by, sent.or(dispatched));
        Timeline {
            intended: line.intended,
            dispatched,
            connected,
            sent,
            first_byte: received(line.first_byte, own.first_byte),
            first_token: received(line.first_token, own.first_token),
            first_output_token: received(line.first_output_token, own.first_output_token),
            last_token: received(line.last_token, own.last_token),
            finished: received(line.finished, own.finished),
        }
    }

    /// Whether what the generator itself may have added is large enough to matter: 20 us and 0.5 %
    /// of the time to the first byte, or any doubt about a time of receipt.
    #[inline]
    pub fn generator_matters(&self) -> bool {
        let (own, line) = (&self.generator, &self.timeline);
        let added = own.dispatch + own.send;
        if added < LEAST_SHARE {
            return own.received_earlier();
        }
        let first = line.first_byte.or(line.finished).unwrap_or(line.intended);
        let shortest = first.since(line.dispatched.unwrap_or(line.intended));
        added.as_u64().saturating_mul(LEAST_ONE_IN) >= shortest.as_u64() || own.received_earlier()
    }

    /// Whether the policy decision is the expected one. `None` if nothing is expected, or if there
    /// was no response.
    pub fn as_expected(&self) -> Option<bool> {
        Some(self.expected? == self.policy_decision?)
    }

    /// Whether the turn got no good answer: it ended without success and its scenario does not
    /// expect that, or with an unexpected policy decision. A turn that is let through and then
    /// breaks off is never good. A cancelled turn is not unexpected.
    pub fn is_unexpected(&self) -> bool {
        let unsuccessful = !matches!(self.outcome, Outcome::Completed | Outcome::Cancelled);
        let let_through =
            matches!(self.policy_decision, Some(PolicyDecision::Allow | PolicyDecision::Redact));
        match self.as_expected() {
            Some(as_expected) => !as_expected || (unsuccessful && let_through),
            None => unsuccessful,
        }
    }

    /// Content events that shared a read with the event before them.
    pub const fn events_together(&self) -> u32 {
        self.events.saturating_sub(1 + self.gaps.count)
    }

    /// `(last_token - first_token) / after_first`. `None` if the number of tokens is unknown, or if
    /// the content came in one piece: then there is no time between its tokens.
    pub fn tpot(&self) -> Option<Nanos> {
        self.tpot_of(&self.timeline)
    }

    /// The same with other instants.
    pub fn tpot_of(&self, timeline: &Timeline) -> Option<Nanos> {
        if self.gaps.count == 0 || self.shape == Some(StreamShape::BufferedWhole) {
            return None;
        }
        let Usage { completion, reasoning, after_first, .. } = self.usage;
        let answer = completion.count.saturating_sub(reasoning);
        // Less than the whole answer excludes the reasoning before it.
        let of_answer = reasoning > 0 && after_first? < answer;
        let first = if of_answer { timeline.first_output_token } else { timeline.first_token };
        let span = Some(timeline.last_token?.since(first?)).filter(|span| *span > Nanos::ZERO)?;
        span.as_u64().checked_div(after_first?.into()).map(Nanos::new)
    }

    /// Whether the usage of a stream does not separate the tokens that were sent.
    pub const fn hides_tokens(&self) -> bool {
        self.output_tokens().is_some() && self.usage.after_first.is_none()
    }

    /// The output tokens, if known.
    pub const fn output_tokens(&self) -> Option<u32> {
        self.usage.completion.known()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::{TokenCount, TokenSource};

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    /// 11 visible tokens in 100 ms, after 989 hidden ones (awslabs/llmeter#99): 10 ms each. Where
    /// the reasoning is streamed, all 1,000 share the time, and where a summary of it is, the
    /// answer has its own.
    #[test]
    fn hidden_reasoning_has_no_part_in_the_time_of_a_token() {
        let sample = |first_output_token, after_first| {
            let timeline = Timeline {
                dispatched: Some(at(0)),
                first_token: Some(at(900)),
                first_output_token: Some(first_output_token),
                last_token: Some(at(1_000)),
                finished: Some(at(1_000)),
                ..Timeline::intended(at(0))
            };
            let completion = TokenCount { count: 1_000, source: TokenSource::Reported };
            let usage = Usage { completion, reasoning: 989, after_first, ..Usage::default() };
            let gaps = GapSummary { count: 10, ..GapSummary::default() };
            Sample { timeline, usage, gaps, ..Sample::unsent(at(0)) }
        };
        let hidden = sample(at(900), Some(10));
        assert_eq!(hidden.tpot(), Some(Nanos::from_millis(10)));
        let shown = sample(at(950), Some(999));
        assert_eq!(shown.tpot(), Some(Nanos::new(100_000_000 / 999)));
        let summarised = sample(at(950), Some(10));
        assert_eq!(summarised.tpot(), Some(Nanos::from_millis(5)));
        let unknown = sample(at(900), None);
        assert_eq!((unknown.tpot(), unknown.hides_tokens()), (None, true));
        assert!(!sample(at(900), Some(0)).hides_tokens());
    }

    /// Sent 5 ms late, written 1 ms late; the first byte may have come 20 ms before its stamp.
    #[test]
    fn the_generators_part_is_taken_off_and_no_instant_before_the_one_it_follows() {
        let sample = Sample {
            timeline: Timeline {
                intended: at(100),
                dispatched: Some(at(107)),
                connected: Some(at(107)),
                sent: Some(at(108)),
                first_byte: Some(at(120)),
                first_token: Some(at(130)),
                first_output_token: None,
                last_token: Some(at(140)),
                finished: Some(at(150)),
            },
            generator: GeneratorShare {
                dispatch: Nanos::from_millis(5),
                send: Nanos::from_millis(1),
                first_byte: Nanos::from_millis(20),
                ..GeneratorShare::default()
            },
            ..Sample::unsent(at(100))
        };
        let line = sample.timeline_without_generator();
        assert_eq!(line.dispatched, Some(at(102)));
        assert_eq!(line.connected, Some(at(102)));
        assert_eq!(line.sent, Some(at(102)));
        // 120 - 6 - 20 would be before the request was sent.
        assert_eq!(line.first_byte, Some(at(102)));
        assert_eq!(line.first_token, Some(at(124)));
        assert_eq!(line.first_output_token, None);
        assert_eq!(line.finished, Some(at(144)));
        assert_eq!(line.response_time(), Some(Nanos::from_millis(44)));
        assert!(sample.generator_matters());
        let share = sample.generator;
        assert_eq!(GeneratorShare::from_parts(share.parts()), share);
        let unaffected = Sample { generator: GeneratorShare::default(), ..sample };
        assert!(!unaffected.generator_matters());
        // The first byte came 13 ms after the dispatch, of which 0.5 % are 65 us.
        for (us, matters) in [(64, false), (65, true)] {
            let generator =
                GeneratorShare { dispatch: Nanos::from_micros(us), ..GeneratorShare::default() };
            assert_eq!(Sample { generator, ..sample }.generator_matters(), matters, "{us} us");
        }
        assert_eq!(unaffected.timeline_without_generator(), sample.timeline);
    }

    /// Connected after 100 ms, of which the worker was away for 98.
    #[test]
    fn a_connection_that_was_noticed_late_may_have_been_ready_before() {
        let line = Timeline {
            intended: at(100),
            dispatched: Some(at(100)),
            connected: Some(at(200)),
            sent: Some(at(204)),
            first_byte: Some(at(214)),
            finished: Some(at(215)),
            ..Timeline::default()
        };
        // 98 of the set-up, and 4 from then to the sending.
        let generator =
            GeneratorShare { send: Nanos::from_millis(102), ..GeneratorShare::default() };
        let sample = Sample { timeline: line, generator, ..Sample::unsent(at(100)) };
        let without = sample.timeline_without_generator();
        assert_eq!([without.connected, without.sent], [Some(at(102)); 2]);
        assert_eq!(without.response_time(), Some(Nanos::from_millis(13)));
        // Less than since the connection moves only the sending.
        let generator = GeneratorShare { send: Nanos::from_millis(3), ..generator };
        let without = Sample { generator, ..sample }.timeline_without_generator();
        assert_eq!([without.connected, without.sent], [Some(at(200)), Some(at(201))]);
    }

    /// A turn of 5 ms after a pause of a second: what is not known is never more than the turn.
    #[test]
    fn no_part_of_the_generator_is_longer_than_the_time_it_is_part_of() {
        let line = Timeline {
            intended: at(100),
            dispatched: Some(at(101)),
            first_byte: Some(at(104)),
            finished: Some(at(105)),
            ..Timeline::default()
        };
        let second = Nanos::from_secs(1);
        let share =
            GeneratorShare { first_byte: second, finished: second, ..GeneratorShare::default() };
        let parts = |share: GeneratorShare| {
            share.within(&line).parts().map(|part| part.as_u64() / 1_000_000)
        };
        assert_eq!(parts(share), [0, 0, 4, 0, 0, 0, 5]);
        let sent = GeneratorShare { dispatch: second, send: second, ..share };
        assert_eq!(parts(sent), [5, 0, 0, 0, 0, 0, 0]);
        let late = GeneratorShare { dispatch: Nanos::from_millis(1), ..share };
        assert_eq!(parts(late), [1, 0, 3, 0, 0, 0, 4]);
        let less = GeneratorShare { finished: Nanos::from_millis(2), ..GeneratorShare::default() };
        assert_eq!(less.within(&line), less);
        // What stays of its times is the same.
        let all = Sample { timeline: line, generator: sent, ..Sample::unsent(at(100)) };
        let bounded = Sample { generator: sent.within(&line), ..all };
        assert_eq!(bounded.timeline_without_generator(), all.timeline_without_generator());
    }
}
