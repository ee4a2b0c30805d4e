//! Single requests of a run, as `exemplars.json` holds them.

use plimsoll_measure::{Moment, Nanos, Outcome, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exemplar_keeper::{Chosen, Exemplar, Exemplars};
use crate::run_metadata::RunMetadata;

/// Version of the layout of `exemplars.json`.
pub const SCHEMA: &str = "plimsoll.exemplars/1";

/// Single requests of a run with all their times: the slowest, and random ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunExemplars {
    /// Version of the layout: `plimsoll.exemplars/1`.
    pub schema: String,
    /// Name of the run.
    pub name: String,
    /// Id of the run.
    pub run_id: String,
    /// Wall-clock time of the start of the load, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// Requests from which they were chosen: those that were sent outside of warm-up.
    pub offered: u64,
    /// Names of the targets.
    pub targets: Vec<String>,
    /// The requests, by intended start.
    pub requests: Vec<ExemplarRequest>,
}

/// One request. Keys that `results.jsonl` has too mean the same there. A time that the request did
/// not reach is left out.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExemplarRequest {
    /// Why it was kept.
    pub chosen: Vec<Chosen>,
    /// The id that was sent with it, as `x-request-id`.
    pub request_id: String,
    /// Name of its scenario.
    pub scenario: String,
    /// Name of its target.
    pub target: String,
    /// Name of the stage in which it was due.
    pub stage: String,
    /// Position in its conversation, from 0.
    pub turn: u16,
    /// Whether a streamed response was asked for.
    pub stream: bool,
    /// Whether the connection had been used before.
    pub reused: bool,
    /// HTTP status; 0 without a response.
    pub status: u16,
    /// How it ended, in the words of `results.jsonl`.
    pub outcome: String,
    /// Error class, of a failed request.
    pub error: Option<String>,
    /// Intended start, in seconds from the start of the load.
    pub intended_s: f64,
    /// Dispatched minus intended start.
    pub dispatch_lag_ms: f64,
    /// How much of that a generator that is never late would not have needed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_by_generator_ms: f64,
    /// Wait for a connection, before the dispatch.
    pub connection_wait_ms: Option<f64>,
    /// Name resolution.
    pub dns_ms: Option<f64>,
    /// TCP handshake.
    pub connect_ms: Option<f64>,
    /// TLS handshake.
    pub tls_ms: Option<f64>,
    /// Handshake of a WebSocket.
    pub upgrade_ms: Option<f64>,
    /// Connection ready minus dispatched.
    pub connected_ms: Option<f64>,
    /// Last byte of the request in the kernel, minus dispatched.
    pub sent_ms: Option<f64>,
    /// First byte of the response minus dispatched.
    pub ttfb_ms: Option<f64>,
    /// First content event minus dispatched.
    pub ttft_ms: Option<f64>,
    /// Last content event minus dispatched.
    pub last_token_ms: Option<f64>,
    /// Finished minus dispatched.
    pub service_time_ms: Option<f64>,
    /// Finished minus intended start.
    pub response_time_ms: Option<f64>,
    /// The most that the generator itself may have added to it.
    pub generator_ms: Option<f64>,
    /// Requests in flight at the end of the run: time from dispatch until then.
    pub open_ms: Option<f64>,
    /// The target's own time, from a response header.
    pub server_time_ms: Option<f64>,
    /// The longest time by which a read lagged the kernel's time stamp.
    pub read_lag_ms: Option<f64>,
    /// Content events.
    pub events: u32,
    /// The longest gap between two reads that brought content.
    pub gap_max_ms: Option<f64>,
    /// Arrival of each read that brought content, minus dispatched, to the microsecond. Content
    /// events that shared a read share its time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_ms: Vec<f64>,
    /// Later reads that are left out of `read_ms`, because the stream is very long.
    #[serde(default, skip_serializing_if = "is_none_left_out")]
    pub reads_left_out: u32,
}

impl RunExemplars {
    /// Those of a run with this metadata; `request_id` gives the id of a request.
    pub fn build(
        exemplars: &Exemplars,
        metadata: &RunMetadata,
        request_id: impl Fn(&Sample) -> String,
    ) -> Self {
        let origin_s = metadata.stages.first().map_or(0.0, |stage| stage.start_s);
        Self {
            schema: SCHEMA.to_owned(),
            name: metadata.run.name.clone(),
            run_id: metadata.run.run_id.clone(),
            started_unix_ns: metadata
                .run
                .started_unix_ns
                .saturating_add(Nanos::from_secs_f64(origin_s).as_u64()),
            offered: exemplars.offered,
            targets: metadata.targets.iter().map(|target| target.name.clone()).collect(),
            requests: exemplars
                .requests
                .iter()
                .map(|of: &Exemplar| ExemplarRequest {
                    request_id: request_id(&of.sample),
                    intended_s: of.sample.timeline.intended.since(Moment::EPOCH).as_secs_f64()
                        - origin_s,
                    ..request(of, metadata)
                })
                .collect(),
        }
    }

    /// The requests that were kept for a reason.
    pub fn chosen(&self, why: Chosen) -> impl Iterator<Item = &ExemplarRequest> {
        self.requests.iter().filter(move |request| request.chosen.contains(&why))
    }
}

/// A request without its id and its place in the run.
fn request(of: &Exemplar, metadata: &RunMetadata) -> ExemplarRequest {
    let Exemplar { sample, chosen, recorded, .. } = of;
    let line = &sample.timeline;
    let from = line.dispatched.unwrap_or(line.intended);
    let since = |at: Option<Moment>| ms(at.map(|at| at.since(from)));
    let target = metadata.targets.get(sample.target.index());
    let stage = metadata.stages.get(sample.stage.index());
    let reads_ms = reads_ms(of, from);
    ExemplarRequest {
        chosen: chosen.clone(),
        scenario: metadata.scenarios.get(sample.scenario.index()).cloned().unwrap_or_default(),
        target: target.map(|target| target.name.clone()).unwrap_or_default(),
        stage: stage.map(|stage| stage.name.clone()).unwrap_or_default(),
        turn: sample.turn,
        stream: sample.stream,
        reused: sample.reused,
        status: sample.status,
        outcome: sample.outcome.name().to_owned(),
        error: match sample.outcome {
            Outcome::Failed(class) => Some(class.name().to_owned()),
            _ => None,
        },
        dispatch_lag_ms: from.since(line.intended).as_millis_f64(),
        late_by_generator_ms: sample.generator.dispatch.as_millis_f64(),
        connection_wait_ms: ms(sample.connect.wait),
        dns_ms: ms(sample.connect.dns),
        connect_ms: ms(sample.connect.tcp),
        tls_ms: ms(sample.connect.tls),
        upgrade_ms: ms(sample.connect.upgrade),
        connected_ms: since(line.connected),
        sent_ms: since(line.sent),
        ttfb_ms: since(line.first_byte),
        ttft_ms: since(line.first_token),
        last_token_ms: since(line.last_token),
        service_time_ms: since(line.finished),
        response_time_ms: ms(line.response_time()),
        generator_ms: ms(added(sample)),
        open_ms: since(Some(*recorded).filter(|_| line.finished.is_none())),
        server_time_ms: ms(sample.server.time),
        read_lag_ms: ms(sample.read_lag),
        events: sample.events,
        gap_max_ms: ms(Some(sample.gaps.max).filter(|_| sample.gaps.count > 0)),
        reads_left_out: of.reads().saturating_sub(u32::try_from(reads_ms.len()).unwrap_or(0)),
        read_ms: reads_ms,
        ..ExemplarRequest::default()
    }
}

/// The measurement error of the response time, if it is large enough to matter.
fn added(sample: &Sample) -> Option<Nanos> {
    let without = sample.timeline_without_generator().response_time()?;
    let with = sample.timeline.response_time().filter(|_| sample.generator_matters())?;
    Some(with.saturating_sub(without))
}

fn reads_ms(of: &Exemplar, dispatched: Moment) -> Vec<f64> {
    let Some(first) = of.sample.timeline.first_token else { return Vec::new() };
    let first_us = (first.since(dispatched).as_u64() + 500) / 1_000;
    of.reads_us.iter().map(|us| (first_us + u64::from(*us)) as f64 / 1e3).collect()
}

fn ms(length: Option<Nanos>) -> Option<f64> {
    length.map(Nanos::as_millis_f64)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(ms: &f64) -> bool {
    *ms <= 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_none_left_out(reads: &u32) -> bool {
    *reads == 0
}
