//! One measured turn.

use crate::id::{ConversationKey, ScenarioId, StageId, TargetId};
use crate::outcome::{Outcome, PolicyDecision};
use crate::server_report::ServerReport;
use crate::time::Nanos;
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
    /// Content events that shared a late read ([`LATE_READ`]) with the event before them: they may
    /// have arrived separately. Events that shared any other read count as sent together.
    pub late_together: u32,
}

/// A read that lags the kernel's receive time stamp by more than this may return several sends at
/// once. An idle worker reads within some tens of microseconds.
pub const LATE_READ: Nanos = Nanos::from_micros(250);

/// Delays of one turn by HTTP/2 flow control (RFC 9113, 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowControl {
    /// How long the request waited for the target's windows or its limit of concurrent streams;
    /// `None` if it did not wait.
    pub send_stall: Option<Nanos>,
    /// Whether so much of the response was unread that our own window may have delayed the target.
    pub receive_stall: bool,
}

/// One scheduled turn and its measurements. `Copy`, without heap.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Whether a stream was requested.
    pub stream: bool,
    /// Whether it belongs to a warm-up stage.
    pub warmup: bool,
    /// Whether it used a connection that had been used before.
    pub reused: bool,
    /// The instants of the turn.
    pub timeline: Timeline,
    /// Connection set-up, if there was one.
    pub connect: ConnectPhases,
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
}

impl Sample {
    /// Whether the policy decision is the expected one. `None` if nothing is expected, or if there
    /// was no response.
    pub fn as_expected(&self) -> Option<bool> {
        Some(self.expected? == self.policy_decision?)
    }

    /// Whether the turn ended in a way it should not: with an unexpected policy decision or, if
    /// there is none to compare, without success. A cancelled turn is not unexpected.
    pub fn is_unexpected(&self) -> bool {
        let unsuccessful = !matches!(self.outcome, Outcome::Completed | Outcome::Cancelled);
        self.as_expected().map_or(unsuccessful, |as_expected| !as_expected)
    }

    /// Content events that shared a read with the event before them.
    pub const fn events_together(&self) -> u32 {
        self.events.saturating_sub(1 + self.gaps.count)
    }

    /// The output tokens, if known.
    pub const fn output_tokens(&self) -> Option<u32> {
        self.usage.completion.known()
    }
}
