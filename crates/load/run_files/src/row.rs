//! `results.jsonl`: one line per turn, in the order in which turns end.
//!
//! A key that does not apply (no first token, no connection opened) is left out. Times are in
//! milliseconds with up to six decimals, which is exact to the nanosecond.
//!
//! If the writer cannot keep up, the file is a sample of the turns. The `weight` of a row is then
//! the number of turns that it represents.

mod write;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_measure::{
    AnswerContent, CacheState, ConnectPhases, ConversationKey, ErrorClass, FinishReason,
    FlowControl, GapSummary, GeneratorShare, Moment, Nanos, Operation, Outcome, PolicyDecision,
    RpcReport, Sample, ScenarioId, ServerReport, StageId, StreamShape, TargetId, Timeline,
    TokenCount, TokenSource, Usage,
};
use plimsoll_metrics::{LoadModel, RunMetadata};
use serde::Deserialize;
use smart_default::SmartDefault;
pub use write::{RowContext, RowNames, write_row};

use crate::error::RunFileError;

// Every key of a row, in the order in which it is written, and how it is read. The reference page
// of `results.jsonl` is made from `columns.tsv`, and a test compares it with real rows.

/// One key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The key.
    pub key: &'static str,
    /// Its type, or the unit of a number.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// When the key is left out; empty if it never is.
    pub absent: &'static str,
}

/// Every key of a row.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let lines = include_str!("row/columns.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(Column::read).collect()
});

impl Column {
    fn read(line: &'static str) -> Self {
        let mut cells = line.split('\t');
        let [key, unit, meaning, absent] =
            std::array::from_fn(|_| cells.next().unwrap_or_default());
        Self { key, unit, meaning, absent }
    }
}

/// One line of `results.jsonl`, as [`crate::write_row`] wrote it.
#[derive(Clone, Debug, SmartDefault, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "`COLUMNS` defines every key")]
pub struct ParsedRow {
    pub conversation: String,
    pub request_id: String,
    pub scenario: String,
    pub category: Option<String>,
    pub target: String,
    pub stage: String,
    pub pair: Option<u64>,
    pub position: u8,
    pub turn: u16,
    pub operation: Option<String>,
    pub stream: bool,
    pub warmup: bool,
    pub reused: bool,
    pub intended_unix_ns: u64,
    pub dispatch_lag_ms: Option<f64>,
    pub response_time_ms: Option<f64>,
    pub service_time_ms: Option<f64>,
    pub ttfb_ms: Option<f64>,
    pub ttft_ms: Option<f64>,
    pub ttfot_ms: Option<f64>,
    pub last_token_ms: Option<f64>,
    pub transfer_ms: Option<f64>,
    pub connection_wait_ms: Option<f64>,
    pub opened_ahead: bool,
    pub retried_after_ms: Option<f64>,
    pub dns_ms: Option<f64>,
    pub connect_ms: Option<f64>,
    pub tls_ms: Option<f64>,
    pub tls_resumed: bool,
    pub upgrade_ms: Option<f64>,
    pub read_lag_ms: Option<f64>,
    pub send_stall_ms: Option<f64>,
    pub receive_stall: bool,
    pub tpot_ms: Option<f64>,
    pub generator_ms: Option<f64>,
    pub generator_parts_ms: Vec<f64>,
    pub events: u32,
    pub gap_count: u32,
    pub gap_mean_ms: Option<f64>,
    pub gap_max_ms: Option<f64>,
    pub largest_burst: u32,
    pub late_together: u32,
    pub stream_shape: Option<String>,
    pub event_ms: Option<Vec<f64>>,
    pub status: u16,
    pub outcome: String,
    pub error: Option<String>,
    pub error_detail: Option<String>,
    pub rpc_code: Option<i32>,
    pub tool_error: bool,
    pub notifications: u32,
    pub finish_reason: Option<String>,
    pub policy_decision: Option<PolicyDecision>,
    pub expected: Option<PolicyDecision>,
    pub prompt_tokens: u32,
    pub prompt_tokens_source: TokenSource,
    pub completion_tokens: u32,
    pub completion_tokens_source: TokenSource,
    pub cached_tokens: u32,
    pub repeated_tokens: u32,
    pub reasoning_tokens: u32,
    pub usage_refused: bool,
    pub tokens_after_first: Option<u32>,
    pub cache: Option<CacheState>,
    pub upstream_retries: u32,
    pub server_time_ms: Option<f64>,
    pub server_parts_ms: BTreeMap<String, f64>,
    pub response_headers: BTreeMap<String, String>,
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub decoded_bytes: Option<u64>,
    #[default = 1]
    pub weight: u32,
}

/// A time of a row, which is in milliseconds. Exact below ten days: a double keeps 15 decimal
/// digits.
pub fn row_time(millis: Option<f64>) -> Option<Nanos> {
    millis.map(|millis| Nanos::from_secs_f64(millis / 1e3))
}

// Parses rows.

/// Parses one line. Unknown keys, of later versions, are ignored.
///
/// # Errors
/// [`RunFileError::Row`] for anything that is not a whole row.
pub fn parse_row(line: &[u8]) -> Result<ParsedRow, RunFileError> {
    let row: ParsedRow =
        serde_json::from_slice(line).map_err(|error| RunFileError::Row(error.to_string()))?;
    row.outcome()?;
    Ok(row)
}

impl ParsedRow {
    /// How the turn ended.
    ///
    /// # Errors
    /// [`RunFileError::Row`] for an outcome that no version of Plimsoll writes.
    pub fn outcome(&self) -> Result<Outcome, RunFileError> {
        let plain = [
            Outcome::Completed,
            Outcome::Rejected(self.status),
            Outcome::TimedOut,
            Outcome::Cancelled,
            Outcome::InFlight,
            Outcome::NeverSent,
        ];
        let failed = self
            .error
            .as_ref()
            .and_then(|name| ErrorClass::ALL.into_iter().find(|class| class.name() == name))
            .map(Outcome::Failed);
        let found = plain.into_iter().chain(failed).find(|o| o.name() == self.outcome);
        found.ok_or_else(|| {
            RunFileError::Row(format!("outcome `{}` with error {:?}", self.outcome, self.error))
        })
    }

    /// The sample of the row, without the single gaps and the conversation's number.
    ///
    /// # Errors
    /// [`RunFileError::UnknownName`] if the metadata belongs to another run.
    pub fn sample(&self, metadata: &RunMetadata) -> Result<Sample, RunFileError> {
        let stages = metadata.stages.iter().map(|stage| stage.name.as_str());
        let scenarios = metadata.scenarios.iter().map(String::as_str);
        let targets = metadata.targets.iter().map(|target| target.name.as_str());
        Ok(Sample {
            stage: StageId(position("stage", stages, &self.stage)?),
            scenario: ScenarioId(position("scenario", scenarios, &self.scenario)?),
            target: TargetId(position("target", targets, &self.target)?),
            conversation: self.conversation_key(metadata),
            turn: self.turn,
            operation: self.operation.as_deref().and_then(Operation::named),
            position: self.position,
            stream: self.stream,
            warmup: self.warmup,
            reused: self.reused,
            timeline: self.timeline(metadata.run.started_unix_ns),
            retried_after: row_time(self.retried_after_ms),
            connect: ConnectPhases {
                wait: row_time(self.connection_wait_ms),
                ahead: self.opened_ahead,
                dns: row_time(self.dns_ms),
                tcp: row_time(self.connect_ms),
                tls: row_time(self.tls_ms),
                resumed: self.tls_resumed,
                upgrade: row_time(self.upgrade_ms),
            },
            status: self.status,
            outcome: self.outcome()?,
            policy_decision: self.policy_decision,
            expected: self.expected,
            usage: self.usage(),
            repeated_tokens: self.repeated_tokens,
            events: self.events,
            gaps: self.gaps(),
            shape: StreamShape::ALL
                .into_iter()
                .find(|shape| self.stream_shape.as_deref() == Some(shape.name())),
            finish_reason: self.finish_reason.as_deref().map(FinishReason::from_name),
            content: AnswerContent::default(),
            usage_refused: self.usage_refused,
            affected: false,
            rpc: RpcReport {
                code: self.rpc_code,
                tool_error: self.tool_error,
                notifications: self.notifications,
            },
            bytes_out: self.bytes_out,
            bytes_in: self.bytes_in,
            flow: FlowControl {
                send_stall: row_time(self.send_stall_ms),
                receive_stall: self.receive_stall,
            },
            server: ServerReport {
                cache: self.cache,
                retries: self.upstream_retries,
                time: row_time(self.server_time_ms),
                retry_after: false,
            },
            read_lag: row_time(self.read_lag_ms),
            generator: self.generator(),
        })
    }

    /// A key of the stage's model: the row has the id that was made from the real one.
    fn conversation_key(&self, metadata: &RunMetadata) -> ConversationKey {
        let stage = metadata.stages.iter().find(|stage| stage.name == self.stage);
        match stage.map(|stage| stage.model) {
            Some(LoadModel::Closed) => ConversationKey::iteration(0, 0),
            _ => ConversationKey::arrival(0),
        }
    }

    fn generator(&self) -> GeneratorShare {
        let mut parts = [Nanos::ZERO; 7];
        for (part, millis) in parts.iter_mut().zip(&self.generator_parts_ms) {
            *part = Nanos::from_secs_f64(millis / 1e3);
        }
        GeneratorShare::from_parts(parts)
    }

    fn timeline(&self, epoch_unix_ns: u64) -> Timeline {
        let intended = Moment::from_nanos(self.intended_unix_ns.saturating_sub(epoch_unix_ns));
        let dispatched = row_time(self.dispatch_lag_ms).map(|lag| intended + lag);
        let after_dispatch = |millis| Some(dispatched? + row_time(millis)?);
        Timeline {
            intended,
            dispatched,
            first_byte: after_dispatch(self.ttfb_ms),
            first_token: after_dispatch(self.ttft_ms),
            first_output_token: after_dispatch(self.ttfot_ms),
            last_token: after_dispatch(self.last_token_ms),
            finished: row_time(self.response_time_ms).map(|time| intended + time),
            ..Timeline::default()
        }
    }

    const fn usage(&self) -> Usage {
        let (prompt, output) = (self.prompt_tokens_source, self.completion_tokens_source);
        Usage {
            prompt: TokenCount { count: self.prompt_tokens, source: prompt },
            completion: TokenCount { count: self.completion_tokens, source: output },
            cached: self.cached_tokens,
            reasoning: self.reasoning_tokens,
            after_first: self.tokens_after_first,
        }
    }

    fn gaps(&self) -> GapSummary {
        let mean = row_time(self.gap_mean_ms).unwrap_or_default().as_u64();
        GapSummary {
            count: self.gap_count,
            sum: Nanos::new(mean.saturating_mul(self.gap_count.into())),
            max: row_time(self.gap_max_ms).unwrap_or_default(),
            largest_burst: self.largest_burst,
            late_together: self.late_together,
            ..GapSummary::default()
        }
    }
}

fn position<'a>(
    kind: &'static str,
    mut names: impl Iterator<Item = &'a str>,
    name: &str,
) -> Result<u16, RunFileError> {
    let index = names.position(|known| known == name).and_then(|index| u16::try_from(index).ok());
    index.ok_or_else(|| RunFileError::UnknownName { kind, name: name.to_owned() })
}
