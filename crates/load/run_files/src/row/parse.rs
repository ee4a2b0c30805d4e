//! Parses rows.

use std::collections::BTreeMap;

use plimsoll_measure::{
    AnswerContent, CacheState, ConnectPhases, ConversationKey, ErrorClass, FinishReason,
    FlowControl, GapSummary, GeneratorShare, Moment, Nanos, Operation, Outcome, PolicyDecision,
    RpcReport, Sample, ScenarioId, ServerReport, StageId, StreamShape, TargetId, Timeline,
    TokenCount, TokenSource, Usage,
};
use plimsoll_metrics::{LoadModel, RunMetadata};
use serde::{Deserialize, Deserializer};

use crate::error::RunFileError;

/// One line of `results.jsonl`, as [`crate::write_row`] wrote it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "`COLUMNS` defines every key")]
#[expect(clippy::struct_excessive_bools, reason = "it mirrors the file")]
pub struct ParsedRow {
    pub conversation: String,
    pub request_id: String,
    pub scenario: String,
    pub target: String,
    pub stage: String,
    pub pair: Option<u64>,
    #[serde(default)]
    pub position: u8,
    pub turn: u16,
    #[serde(default, deserialize_with = "operation")]
    pub operation: Option<Operation>,
    pub stream: bool,
    pub warmup: bool,
    pub reused: bool,
    pub intended_unix_ns: u64,
    #[serde(default, deserialize_with = "millis")]
    pub dispatch_lag_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub response_time_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub service_time_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub ttfb_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub ttft_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub ttfot_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub last_token_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub transfer_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub connection_wait_ms: Option<Nanos>,
    #[serde(default)]
    pub opened_ahead: bool,
    #[serde(default, deserialize_with = "millis")]
    pub retried_after_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub dns_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub connect_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub tls_ms: Option<Nanos>,
    #[serde(default)]
    pub tls_resumed: bool,
    #[serde(default, deserialize_with = "millis")]
    pub upgrade_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub read_lag_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub send_stall_ms: Option<Nanos>,
    #[serde(default)]
    pub receive_stall: bool,
    #[serde(default, deserialize_with = "millis")]
    pub tpot_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub generator_ms: Option<Nanos>,
    #[serde(default)]
    pub generator_parts_ms: Vec<f64>,
    pub events: u32,
    #[serde(default)]
    pub gap_count: u32,
    #[serde(default, deserialize_with = "millis")]
    pub gap_mean_ms: Option<Nanos>,
    #[serde(default, deserialize_with = "millis")]
    pub gap_max_ms: Option<Nanos>,
    #[serde(default)]
    pub largest_burst: u32,
    #[serde(default)]
    pub late_together: u32,
    #[serde(default, deserialize_with = "shape")]
    pub stream_shape: Option<StreamShape>,
    pub event_ms: Option<Vec<f64>>,
    #[serde(default)]
    pub status: u16,
    pub outcome: String,
    pub error: Option<String>,
    pub error_detail: Option<String>,
    pub rpc_code: Option<i32>,
    #[serde(default)]
    pub tool_error: bool,
    #[serde(default)]
    pub notifications: u32,
    #[serde(default, deserialize_with = "finish_reason")]
    pub finish_reason: Option<FinishReason>,
    pub policy_decision: Option<PolicyDecision>,
    pub expected: Option<PolicyDecision>,
    pub category: Option<String>,
    #[serde(default)]
    pub prompt_tokens: u32,
    #[serde(default)]
    pub prompt_tokens_source: TokenSource,
    #[serde(default)]
    pub completion_tokens: u32,
    #[serde(default)]
    pub completion_tokens_source: TokenSource,
    #[serde(default)]
    pub cached_tokens: u32,
    #[serde(default)]
    pub reasoning_tokens: u32,
    #[serde(default)]
    pub usage_refused: bool,
    pub tokens_after_first: Option<u32>,
    pub cache: Option<CacheState>,
    #[serde(default)]
    pub upstream_retries: u32,
    #[serde(default, deserialize_with = "millis")]
    pub server_time_ms: Option<Nanos>,
    #[serde(default)]
    pub server_parts_ms: BTreeMap<String, f64>,
    #[serde(default)]
    pub response_headers: BTreeMap<String, String>,
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub decoded_bytes: Option<u64>,
    #[serde(default = "one")]
    pub weight: u32,
}

const fn one() -> u32 {
    1
}

/// Exact for lengths below ten days: a double keeps 15 decimal digits.
fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
    let millis: Option<f64> = Option::deserialize(deserializer)?;
    Ok(millis.map(|millis| Nanos::from_secs_f64(millis / 1e3)))
}

/// An operation of a later version is not known.
fn operation<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Operation>, D::Error> {
    let name: Option<String> = Option::deserialize(from)?;
    Ok(name.and_then(|name| Operation::named(&name)))
}

/// A shape of a later version is not known.
fn shape<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StreamShape>, D::Error> {
    let name: Option<String> = Option::deserialize(deserializer)?;
    Ok(StreamShape::ALL.into_iter().find(|shape| Some(shape.name()) == name.as_deref()))
}

fn finish_reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FinishReason>, D::Error> {
    let name: Option<String> = Option::deserialize(from)?;
    Ok(name.map(|name| FinishReason::from_name(&name)))
}

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
    /// [`RunFileError::UnknownName`] if the metadata is that of another run.
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
            operation: self.operation,
            position: self.position,
            stream: self.stream,
            warmup: self.warmup,
            reused: self.reused,
            timeline: self.timeline(metadata.run.started_unix_ns),
            retried_after: self.retried_after_ms,
            connect: ConnectPhases {
                wait: self.connection_wait_ms,
                ahead: self.opened_ahead,
                dns: self.dns_ms,
                tcp: self.connect_ms,
                tls: self.tls_ms,
                resumed: self.tls_resumed,
                upgrade: self.upgrade_ms,
            },
            status: self.status,
            outcome: self.outcome()?,
            policy_decision: self.policy_decision,
            expected: self.expected,
            usage: self.usage(),
            events: self.events,
            gaps: self.gaps(),
            shape: self.stream_shape,
            finish_reason: self.finish_reason,
            content: AnswerContent::default(),
            usage_refused: self.usage_refused,
            rpc: RpcReport {
                code: self.rpc_code,
                tool_error: self.tool_error,
                notifications: self.notifications,
            },
            bytes_out: self.bytes_out,
            bytes_in: self.bytes_in,
            flow: FlowControl { send_stall: self.send_stall_ms, receive_stall: self.receive_stall },
            server: ServerReport {
                cache: self.cache,
                retries: self.upstream_retries,
                time: self.server_time_ms,
            },
            read_lag: self.read_lag_ms,
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
        let dispatched = self.dispatch_lag_ms.map(|lag| intended + lag);
        let after_dispatch = |length: Option<Nanos>| Some(dispatched? + length?);
        Timeline {
            intended,
            dispatched,
            first_byte: after_dispatch(self.ttfb_ms),
            first_token: after_dispatch(self.ttft_ms),
            first_output_token: after_dispatch(self.ttfot_ms),
            last_token: after_dispatch(self.last_token_ms),
            finished: self.response_time_ms.map(|length| intended + length),
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
        let mean = self.gap_mean_ms.unwrap_or_default().as_u64();
        GapSummary {
            count: self.gap_count,
            sum: Nanos::new(mean.saturating_mul(self.gap_count.into())),
            max: self.gap_max_ms.unwrap_or_default(),
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
