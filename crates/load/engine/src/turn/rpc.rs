//! A turn with a tool server or an agent.

use plimsoll_measure::{Moment, Nanos, Operation, Outcome, RpcReport, Sample};
use plimsoll_protocol::rpc::Expectation;
use plimsoll_protocol::{Decoder, PlainAnswer};
use plimsoll_transport::ResponseHead;
use plimsoll_workload::{Conversation, RpcEnd};

use super::OpenTurn;

/// The header in which a tool server names the session.
const SESSION: &str = "mcp-session-id";

/// Additional state of a turn with a tool server or an agent.
#[derive(Debug)]
pub(super) struct RpcTurn {
    expected: Expectation,
    /// Time after which the scenario gives the turn up.
    cancel_after: Option<Nanos>,
    /// Whether that is earlier than the time limit of all requests.
    gives_up: bool,
    /// The session that the response's head names.
    session: Option<String>,
}

impl RpcTurn {
    /// State of the current turn of a conversation; `None` for other turns.
    pub(super) fn begin(conversation: &Conversation) -> Option<Box<Self>> {
        let expected = conversation.expectation()?;
        let cancel_after = conversation.cancel_after();
        Some(Box::new(Self { expected, cancel_after, gives_up: false, session: None }))
    }

    /// The requested operation.
    pub(super) const fn operation(&self) -> Operation {
        self.expected.operation
    }

    /// When a turn is given up that was dispatched at `at`, where requests have until `limit`.
    pub(super) fn limit(&mut self, at: Moment, limit: Moment) -> Moment {
        let own = self.cancel_after.map(|after| at + after);
        self.gives_up = own.is_some_and(|own| own < limit);
        own.map_or(limit, |own| own.min(limit))
    }

    /// Takes the head of the response, before the decoder does.
    pub(super) fn head(&mut self, head: &ResponseHead<'_>, decoder: &mut Decoder) {
        decoder.expect(self.expected);
        self.session = head.header(SESSION).map(str::to_owned);
    }
}

impl OpenTurn {
    /// Whether the scenario gives the turn up before the time limit of all requests.
    pub(super) fn gives_up(&self) -> bool {
        self.rpc.as_ref().is_some_and(|rpc| rpc.gives_up)
    }

    /// Notes whether a tool reports a failure, which over REST is only in the body.
    pub(crate) fn note_tool_error(&mut self, answer: Option<&PlainAnswer>) {
        if let Some(PlainAnswer::Tool { is_error, .. }) = answer {
            self.measurement.sample.rpc.tool_error = *is_error;
        }
    }

    /// Records the content of the answer, for the sample and for the conversation.
    pub(super) fn end_rpc(&mut self, outcome: Outcome) -> Option<Box<RpcEnd>> {
        let rpc = self.rpc.as_mut()?;
        let decoder = self.decoder.as_ref();
        let answer = decoder.and_then(|decoder| decoder.rpc_answer()).cloned().unwrap_or_default();
        let code = decoder.and_then(|decoder| decoder.rpc_code());
        let Sample { status, rpc: report, .. } = &mut self.measurement.sample;
        *report = RpcReport {
            code: code.map(in_range),
            tool_error: answer.tool_error && outcome == Outcome::Completed,
            notifications: answer.notifications,
        };
        let session = rpc.session.take();
        Some(Box::new(RpcEnd { outcome, status: *status, session, code, answer }))
    }
}

/// A code clamped to the range of the results; JSON-RPC's own codes have five digits.
fn in_range(code: i64) -> i32 {
    i32::try_from(code).unwrap_or(if code < 0 { i32::MIN } else { i32::MAX })
}
