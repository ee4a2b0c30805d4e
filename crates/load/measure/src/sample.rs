//! One measured turn.

use crate::id::{ConversationKey, ScenarioId, StageId, TargetId};
use crate::outcome::{Outcome, PolicyDecision};
use crate::time::Nanos;
use crate::timeline::{ConnectPhases, Timeline};
use crate::tokens::Usage;

/// What is kept of the gaps between content events of one stream, besides their distribution.
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
    /// Content events that came in one read with the one before them, in reads that were late
    /// ([`LATE_READ`]): they may have come apart. Events that came together in other reads were sent together, as far
    /// as anybody can tell.
    pub late_together: u32,
}

/// A read that lags behind the kernel's receive time stamp by more than this may have found more in the socket than
/// was sent at once: an idle worker reads within some tens of microseconds.
pub const LATE_READ: Nanos = Nanos::from_micros(250);

/// Flow control of HTTP/2 (RFC 9113, 5.2), as far as it held a turn up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowControl {
    /// How long the request waited for the target's windows or its limit of concurrent streams; `None` where it never had to.
    pub send_stall: Option<Nanos>,
    /// Was so much of the answer unread at once that our own window may have held the target up?
    pub receive_stall: bool,
}

/// One scheduled turn and what became of it. `Copy`, without heap.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of one another")]
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
    /// Was a stream asked for?
    pub stream: bool,
    /// Does it belong to a warm-up stage?
    pub warmup: bool,
    /// Did it go over a connection that had been used before?
    pub reused: bool,
    /// The instants.
    pub timeline: Timeline,
    /// Connection set-up, where there was one.
    pub connect: ConnectPhases,
    /// HTTP status; 0 where none was received.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// What the target decided, where it answered.
    pub policy_decision: Option<PolicyDecision>,
    /// What the scenario expects it to decide, where it says so.
    pub expected: Option<PolicyDecision>,
    /// Tokens.
    pub usage: Usage,
    /// Content-bearing events received.
    pub events: u32,
    /// Gaps between them.
    pub gaps: GapSummary,
    /// Flow control.
    pub flow: FlowControl,
    /// Bytes of the request, head included.
    pub bytes_out: u64,
    /// Bytes of the response, head included, as they came off the connection (after TLS).
    pub bytes_in: u64,
    /// How long the generator took to read what the kernel had already received: the worst read of
    /// the turn. `None` without kernel time stamps.
    pub read_lag: Option<Nanos>,
}

impl Sample {
    /// Was the turn answered as its scenario expects? `None` where nothing is expected, or nothing was answered.
    pub fn as_expected(&self) -> Option<bool> {
        Some(self.expected? == self.policy_decision?)
    }

    /// Did it end otherwise than it should: with another policy decision than the expected one or, where there is none to
    /// compare, without success? What we gave up ourselves did not.
    pub fn is_unexpected(&self) -> bool {
        let unsuccessful = !matches!(self.outcome, Outcome::Completed | Outcome::Cancelled);
        self.as_expected().map_or(unsuccessful, |as_expected| !as_expected)
    }

    /// Content events that came in one read with the one before them.
    pub const fn events_together(&self) -> u32 {
        self.events.saturating_sub(1 + self.gaps.count)
    }

    /// The output tokens, where they are known.
    pub const fn output_tokens(&self) -> Option<u32> {
        self.usage.completion.known()
    }
}
