//! One measured turn.

use serde::{Deserialize, Serialize};

use crate::id::{ConversationKey, ScenarioId, StageId, TargetId};
use crate::named_enum;
use crate::operation::{Operation, RpcReport};
use crate::outcome::{ErrorClass, Outcome, PolicyDecision, Side};
use crate::server_report::ServerReport;
use crate::stream::{FinishReason, StreamShape};
use crate::time::{ConnectPhases, Moment, Nanos, Timeline};

/// Totals of the gaps between content events of one stream. Their distribution is stored elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapSummary {
    /// Number of gaps: reads with content, minus one.
    pub count: u32,
    /// Sum of all gaps.
    pub sum: Nanos,
    /// The longest gap.
    pub max: Nanos,
    /// Largest number of content events in one read.
    pub largest_burst: u32,
    /// Number of content events in the first read with any; 0 if unknown.
    pub first_burst: u32,
    /// Number of content events in the last such read.
    pub last_burst: u32,
    /// Content events that may share their read with the previous event only because the generator
    /// read late: at most the delay of the read divided by the mean time between the stream's
    /// events. All others that share a read count as sent together.
    pub late_together: u32,
}

/// Read lag, relative to the kernel's receive time stamp, above which a read may return several
/// sends at once. An idle worker reads within some tens of microseconds.
pub const LATE_READ: Nanos = Nanos::from_micros(250);

/// Measurement error of the instants of one turn: upper bounds of the delay that the generator may
/// have added, or zero. `docs/adr/0007-judged-by-effect.md` derives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratorShare {
    /// How much earlier a punctual generator would have dispatched the turn: the time from the
    /// intended start, or from the moment at which a punctual generator would have had a slot or a
    /// connection for it, to the dispatch. For a turn that was never sent: more than zero if a
    /// punctual generator would have sent it.
    pub dispatch: Nanos,
    /// How much earlier the last byte of the request might have reached the kernel: the delay since
    /// the connection was ready that only the generator caused, and how much earlier than noticed
    /// it may have been ready.
    pub send: Nanos,
    /// How much earlier than its time stamp the first byte may have arrived.
    pub first_byte: Nanos,
    /// The same for the first content event.
    pub first_token: Nanos,
    /// The same for the first content event other than reasoning.
    pub first_output_token: Nanos,
    /// The same for the last content event.
    pub last_token: Nanos,
    /// The same for the end of the response.
    pub finished: Nanos,
}

impl GeneratorShare {
    /// Whether the measurement error is zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Whether any data may have arrived earlier than their time stamp.
    #[inline]
    pub const fn received_earlier(&self) -> bool {
        let tokens =
            self.first_token.as_u64() | self.first_output_token.as_u64() | self.last_token.as_u64();
        self.first_byte.as_u64() | tokens | self.finished.as_u64() != 0
    }

    /// The parts in the order of result rows.
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

    /// Limits the parts to a turn's instants: neither a part nor the sum of the parts before an
    /// instant exceeds the time from the intended start to that instant.
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
    /// Index, among the gaps of the stream, of the gap that ends with this read; `None` for the
    /// first read with content.
    pub gap: Option<u32>,
    /// Number of content events in the read.
    pub events: u32,
    /// How much earlier than stamped the first of them may have arrived.
    pub earlier_by: Nanos,
    /// How much earlier the last of them may have arrived: zero if the kernel stamped it.
    pub last_earlier_by: Nanos,
}

/// Smallest recorded measurement error: less is below the resolution of two clock readings around a
/// system call.
pub const LEAST_SHARE: Nanos = Nanos::from_micros(20);
/// Smallest recorded measurement error relative to a time: 1/200, or 0.5 %.
pub const LEAST_ONE_IN: u64 = 200;

/// Delays of one turn by HTTP/2 flow control (RFC 9113, 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowControl {
    /// Time that the request waited for the target's windows or its limit of concurrent streams;
    /// `None` if it did not wait.
    pub send_stall: Option<Nanos>,
    /// Whether so much of the response was unread that our own window may have delayed the target.
    pub receive_stall: bool,
}

/// Sizes of the parts of a response in bytes, and digests for comparing two responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerContent {
    /// Text for the user.
    pub text: u32,
    /// The model's reasoning.
    pub reasoning: u32,
    /// Names and arguments of tool calls.
    pub tool_calls: u32,
    /// CRC-32 of all parts in order, however the stream split them; 0 if unknown.
    pub digest: u32,
    /// Digest of the model named in the response, without provider and date; 0 if it names none.
    pub model: u32,
}

impl AnswerContent {
    /// Sum of all parts.
    pub const fn total(self) -> u32 {
        self.text.saturating_add(self.reasoning).saturating_add(self.tool_calls)
    }
}

/// One scheduled turn and its measurements. `Copy`, without heap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The stage in which the turn was intended to start.
    pub stage: StageId,
    /// Scenario of the turn.
    pub scenario: ScenarioId,
    /// Target of the turn.
    pub target: TargetId,
    /// Conversation of the turn.
    pub conversation: ConversationKey,
    /// Position in the conversation, from 0.
    pub turn: u16,
    /// In a comparison: position of the target in the order, from 0.
    pub position: u8,
    /// Operation requested from a tool server or an agent; `None` for all other requests.
    pub operation: Option<Operation>,
    /// Whether a stream was requested.
    pub stream: bool,
    /// Whether it belongs to a warm-up stage.
    pub warmup: bool,
    /// Whether the connection was reused.
    pub reused: bool,
    /// The instants of the turn.
    pub timeline: Timeline,
    /// Wait for a connection and its set-up, if there was any.
    pub connect: ConnectPhases,
    /// Set if the request was retried because the target had not processed it: idle time of its
    /// connection before the first attempt.
    pub retried_after: Option<Nanos>,
    /// HTTP status; 0 if none was received.
    pub status: u16,
    /// Outcome of the turn.
    pub outcome: Outcome,
    /// The target's policy decision, if it responded.
    pub policy_decision: Option<PolicyDecision>,
    /// Expected policy decision, if the scenario defines one.
    pub expected: Option<PolicyDecision>,
    /// Token counts.
    pub usage: Usage,
    /// Input tokens of a shared prefix that an earlier request sent to the same target.
    pub repeated_tokens: u32,
    /// Content-bearing events received.
    pub events: u32,
    /// Gaps between these events.
    pub gaps: GapSummary,
    /// Shape of the stream; `None` unless a stream was complete.
    pub shape: Option<StreamShape>,
    /// Finish reason, if the target sent one.
    pub finish_reason: Option<FinishReason>,
    /// Sizes of the parts of a complete response.
    pub content: AnswerContent,
    /// Whether the target reported implausible usage, which `usage` excludes.
    pub usage_refused: bool,
    /// Content of a tool server's or an agent's response.
    pub rpc: RpcReport,
    /// Delays by flow control.
    pub flow: FlowControl,
    /// Cache state, retries and times reported in the response's headers.
    pub server: ServerReport,
    /// Bytes of the request, including its head.
    pub bytes_out: u64,
    /// Bytes of the response, including its head, as received from the connection (after TLS).
    pub bytes_in: u64,
    /// Longest read lag of the turn: from the kernel's receive time stamp to our read. `None`
    /// without kernel time stamps.
    pub read_lag: Option<Nanos>,
    /// Measurement error of the instants.
    pub generator: GeneratorShare,
    /// Whether it was in flight while the target worked off a backlog caused by a pause of the
    /// generator.
    pub affected: bool,
}

impl Sample {
    /// Whether it is an arrival of the open model: the first turn of its conversation.
    pub const fn is_arrival(&self) -> bool {
        self.conversation.is_arrival() && self.turn == 0
    }

    /// Delay of the dispatch by the generator. The wait for its own connection is excluded, because
    /// the target may cause it by not answering a handshake.
    pub fn pacing_lag(&self) -> Nanos {
        self.generator.dispatch.saturating_sub(self.connect.wait.unwrap_or_default())
    }

    /// Creates a scheduled, unsent turn, with all other fields zero or unknown.
    #[inline]
    pub fn unsent(intended: Moment) -> Self {
        Self { timeline: Timeline::intended(intended), ..Self::default() }
    }

    /// The instants without the measurement error. The true ones lie between these and the measured
    /// ones.
    pub fn timeline_without_generator(&self) -> Timeline {
        let (line, own) = (&self.timeline, &self.generator);
        let before_sent = own.dispatch + own.send;
        let earlier = |moment: Option<Moment>, by: Nanos, floor: Option<Moment>| {
            let moment = moment?;
            Some((moment - by).max(floor.unwrap_or(line.intended)).min(moment))
        };
        let dispatched = earlier(line.dispatched, own.dispatch, None);
        let sent = earlier(line.sent, before_sent, dispatched);
        // The part that exceeds the time from the connection to the sending was before the
        // connection.
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

    /// Whether the measurement error matters: at least 20 us and 0.5 % of the time to first byte,
    /// or any doubt about an arrival time.
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

    /// Whether the policy decision was as expected. `None` without an expectation, or without a
    /// response.
    pub fn as_expected(&self) -> Option<bool> {
        Some(self.expected? == self.policy_decision?)
    }

    /// Whether the turn failed: it ended without success and its scenario does not expect that, or
    /// with an unexpected policy decision. A turn that is allowed and then breaks off always
    /// failed. A cancelled turn did not.
    pub fn is_unexpected(&self) -> bool {
        let unsuccessful = !matches!(self.outcome, Outcome::Completed | Outcome::Cancelled);
        let let_through =
            matches!(self.policy_decision, Some(PolicyDecision::Allow | PolicyDecision::Redact));
        match self.as_expected() {
            Some(as_expected) => !as_expected || (unsuccessful && let_through),
            None => unsuccessful,
        }
    }

    /// Number of content events that shared a read with the previous event.
    pub const fn events_together(&self) -> u32 {
        self.events.saturating_sub(1 + self.gaps.count)
    }

    /// `(last_token - first_token) after_first`. `None` if the number of tokens is unknown, or if
    /// the content came in one piece, so that its tokens have no time between them.
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
        // A count below the whole answer excludes the reasoning before it.
        let of_answer = reasoning > 0 && after_first? < answer;
        let first = if of_answer { timeline.first_output_token } else { timeline.first_token };
        let span = Some(timeline.last_token?.since(first?)).filter(|span| *span > Nanos::ZERO)?;
        span.as_u64().checked_div(after_first?.into()).map(Nanos::new)
    }

    /// Whether the request got no connection, and so was not sent.
    pub const fn is_unconnected(&self) -> bool {
        match self.outcome {
            Outcome::Failed(ErrorClass::Reset | ErrorClass::ClosedEarly) => false,
            Outcome::Failed(ErrorClass::PortExhaustion | ErrorClass::FdExhaustion) => true,
            Outcome::Failed(class) => matches!(class.side(), Side::Network),
            Outcome::TimedOut | Outcome::InFlight => !self.reused && self.connect.tcp.is_none(),
            _ => false,
        }
    }

    /// Whether the usage of a stream does not separate the sent tokens.
    pub const fn hides_tokens(&self) -> bool {
        self.output_tokens().is_some() && self.usage.after_first.is_none()
    }

    /// The output tokens, if known.
    pub const fn output_tokens(&self) -> Option<u32> {
        self.usage.completion.known()
    }
}

// Token counts, each with its source.

named_enum! {
    /// Source of a token count. Counts of different sources are never added silently.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TokenSource {
        /// Neither reported nor counted.
        #[default]
        Unknown => "unknown",
        /// The target's own usage report.
        Reported => "reported",
        /// Counted content events of a stream (output), or an estimate from the text (input).
        Estimated => "estimated",
    }
}

/// A number of tokens, with its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// Number of tokens; 0 if the source is [`TokenSource::Unknown`].
    pub count: u32,
    /// Source of the number.
    pub source: TokenSource,
}

impl TokenCount {
    /// A count reported by the target.
    pub const fn reported(count: u32) -> Self {
        Self { count, source: TokenSource::Reported }
    }

    /// A count estimated by Plimsoll.
    pub const fn estimated(count: u32) -> Self {
        Self { count, source: TokenSource::Estimated }
    }

    /// The count, if known.
    pub const fn known(self) -> Option<u32> {
        match self.source {
            TokenSource::Unknown => None,
            TokenSource::Reported | TokenSource::Estimated => Some(self.count),
        }
    }
}

/// Tokens of one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens.
    pub prompt: TokenCount,
    /// Output tokens, including reasoning if the target includes it.
    pub completion: TokenCount,
    /// Input tokens that the target read from its prompt cache, if reported; otherwise 0.
    pub cached: u32,
    /// Output tokens used for reasoning, if reported; otherwise 0.
    pub reasoning: u32,
    /// Output tokens after the first read of a stream that has content. If the reasoning is hidden
    /// or summarized, only tokens of the answer after its own first read. 0 if the target paused
    /// between them, for example for a search. `None` if the usage does not separate the sent
    /// tokens.
    pub after_first: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{TokenCount, TokenSource};

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    /// 11 visible tokens in 100 ms, after 989 hidden ones (awslabs/llmeter#99): 10 ms each. If the
    /// reasoning is streamed, all 1,000 tokens share the time; if a summary of it is, the answer
    /// has its own.
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

    /// Sent 5 ms late, written 1 ms late; the first byte may have come 20 ms before its time stamp.
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

    /// Connected after 100 ms, for 98 of which the worker was away.
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
        // 98 ms of the set-up, and 4 from then to the sending.
        let generator =
            GeneratorShare { send: Nanos::from_millis(102), ..GeneratorShare::default() };
        let sample = Sample { timeline: line, generator, ..Sample::unsent(at(100)) };
        let without = sample.timeline_without_generator();
        assert_eq!([without.connected, without.sent], [Some(at(102)); 2]);
        assert_eq!(without.response_time(), Some(Nanos::from_millis(13)));
        // Less than the time since the connection moves only the sending.
        let generator = GeneratorShare { send: Nanos::from_millis(3), ..generator };
        let without = Sample { generator, ..sample }.timeline_without_generator();
        assert_eq!([without.connected, without.sent], [Some(at(200)), Some(at(201))]);
    }

    /// A turn of 5 ms after a pause of a second: the uncertainty is never longer than the turn.
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
        // The remaining times are the same.
        let all = Sample { timeline: line, generator: sent, ..Sample::unsent(at(100)) };
        let bounded = Sample { generator: sent.within(&line), ..all };
        assert_eq!(bounded.timeline_without_generator(), all.timeline_without_generator());
    }
}
