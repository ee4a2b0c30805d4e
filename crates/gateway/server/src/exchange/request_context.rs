//! The context of one request, from its first byte to the last byte of its response.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Method, Request, StatusCode};
use plimsoll_gateway_audit::Row;
use plimsoll_gateway_dialect::StreamStatus;

use crate::assembly::config::Config;
use crate::assembly::router::Route;
use crate::base::clock;
use crate::exchange::worker::Worker;
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::{BodyBounds, no_memory};
use crate::http::whole_body::Bounds;
use crate::layers::forwarded::Peer;
use crate::layers::identity::Identity;
use crate::layers::{LlmInfo, ObservedUsage};

/// A request with its route and context. Both are large, so they are boxed to keep the futures that
/// pass them small (`docs/experiments.md`).
pub(crate) struct RoutedRequest {
    pub(crate) request: Box<Request<Incoming>>,
    pub(crate) context: Box<RequestContext>,
    /// The last parameter of the path.
    pub(crate) parameter: Option<String>,
}

/// The context of one request. It updates metrics and request log when it is finished or dropped.
pub(crate) struct RequestContext {
    pub(crate) worker: Rc<Worker>,
    pub(crate) config: Arc<Config>,
    pub(crate) route: Arc<Route>,
    pub(crate) method: Method,
    /// Set only if rows are written.
    pub(crate) path: Option<Box<str>>,
    /// Set only if rows are written.
    pub(crate) user_agent: Option<HeaderValue>,
    /// The address of the client, also behind trusted proxies.
    pub(crate) client: IpAddr,
    pub(crate) peer: Rc<Peer>,
    pub(crate) request_id: Option<HeaderValue>,
    /// The identity of the caller, once known.
    pub(crate) identity: Identity,
    pub(crate) status: StatusCode,
    /// Bytes of the request's body.
    pub(crate) bytes_received: u64,
    /// Bytes of the response's body.
    pub(crate) bytes_sent: u64,
    /// The token usage of the response, known when the response is over.
    pub(crate) usage: Option<Rc<ObservedUsage>>,
    pub(crate) llm_info: Option<Box<LlmInfo>>,
    /// 0 if requests are not observed.
    started: u64,
    /// Why the answer was cut short.
    pub(crate) ended_early: Cell<Option<&'static str>>,
    /// The time of the first attempt upstream, and of the last read of its answer; 0 for never.
    upstream: Cell<(u64, u64)>,
    finished: bool,
    /// The layer that refused the request.
    pub(crate) refused_by: Option<&'static str>,
}

impl RequestContext {
    pub(crate) fn new(
        worker: &Rc<Worker>,
        config: &Arc<Config>,
        route: &Arc<Route>,
        request: &Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Box<Self> {
        Box::new(Self {
            worker: Rc::clone(worker),
            config: Arc::clone(config),
            route: Arc::clone(route),
            method: request.method().clone(),
            path: None,
            user_agent: None,
            client: config.trusted_proxies.client(peer.address, request.headers()),
            peer,
            request_id: None,
            identity: Identity::default(),
            status: StatusCode::OK,
            bytes_received: 0,
            bytes_sent: 0,
            usage: None,
            llm_info: None,
            started: if config.observes_requests { clock::now() } else { 0 },
            ended_early: Cell::new(None),
            refused_by: None,
            upstream: Cell::default(),
            finished: false,
        })
    }

    /// The limits of the request's body.
    pub(crate) fn body_bounds(&self) -> BodyBounds<'_> {
        let server = &self.config.server;
        let bytes = usize::try_from(server.body_bytes.0).unwrap_or(usize::MAX);
        let limits = Bounds { bytes, time: server.body_timeout.0 };
        BodyBounds { limits, memory: &self.worker.state.memory }
    }

    /// A body made by the gateway, counted as memory in use until it is dropped.
    ///
    /// # Errors
    /// The memory budget is exhausted.
    pub(crate) fn made(&self, body: impl Into<Bytes>) -> Result<Bytes, ErrorResponse> {
        self.worker.state.memory.count(body.into()).ok_or_else(no_memory)
    }

    pub(crate) fn llm_info(&mut self) -> &mut LlmInfo {
        self.llm_info.get_or_insert_default()
    }

    /// Records the start of the first attempt upstream.
    pub(crate) fn note_upstream_asked(&self) {
        if self.worker.state.request_log.is_enabled() && self.upstream.get().0 == 0 {
            let now = clock::now();
            self.upstream.set((now, now));
        }
    }

    /// Records a read of the upstream's answer.
    pub(crate) fn note_upstream_read(&self) {
        let (asked, _) = self.upstream.get();
        if asked > 0 {
            self.upstream.set((asked, clock::now()));
        }
    }

    /// Counts sent bytes of the response's body.
    pub(crate) const fn count_sent(&mut self, bytes: usize) {
        self.bytes_sent += bytes as u64;
    }

    /// Ends the response, complete or aborted. Later calls have no effect.
    pub(crate) fn finish(&mut self, complete: bool) {
        if std::mem::replace(&mut self.finished, true) || !self.config.observes_requests {
            return;
        }
        let nanos = clock::now().saturating_sub(self.started);
        let metrics = self.worker.metrics();
        if !complete {
            metrics.count_error("broken_off");
        }
        if self.config.layers.metrics.is_some() {
            metrics.count_request(
                &self.worker.series,
                &self.route.template,
                &self.method,
                self.status,
                nanos as f64 / 1e9,
            );
        }
        if let Some(usage) = &self.usage {
            let reason = match usage.ending.get() {
                Some(StreamStatus::Truncated) => Some("upstream_truncated"),
                Some(StreamStatus::Failed) => Some("upstream_failed"),
                Some(StreamStatus::Finished) | None => None,
            };
            if let Some(reason) = reason {
                metrics.count_error(reason);
                self.ended_early.set(self.ended_early.get().or(Some(reason)));
            }
        }
        if self.worker.state.request_log.is_enabled() {
            self.log(nanos / 1_000);
        }
    }

    /// Writes the request's row, without prompt and key.
    fn log(&self, latency_us: u64) {
        let info = self.llm_info.as_deref();
        let rules: Vec<&str> =
            info.map(|info| info.rules.iter().map(String::as_str).collect()).unwrap_or_default();
        let faults = &self.config.spec.faults;
        let to_audit = !self.worker.faults.should_inject(faults, faults.audit_drop_share);
        self.worker.state.request_log.write(&self.row(&rules, latency_us), to_audit);
    }

    fn row<'a>(&'a self, rules: &'a [&'a str], latency_us: u64) -> Row<'a> {
        let info = self.llm_info.as_deref();
        let usage = self.usage.as_ref().and_then(|usage| usage.usage.get());
        let (asked, read) = self.upstream.get();
        Row {
            timestamp: clock::unix_ms().saturating_sub(latency_us / 1_000),
            tenant: self.identity.tenant.as_deref().unwrap_or_default(),
            route: &self.route.name,
            method: self.method.as_str(),
            path: self.path.as_deref().unwrap_or_default(),
            status: self.status.as_u16(),
            latency_us,
            upstream_us: (asked > 0).then(|| read.saturating_sub(asked) / 1_000),
            request_bytes: self.bytes_received,
            response_bytes: self.bytes_sent,
            client: Some(self.client),
            user_agent: text_of(self.user_agent.as_ref()),
            request_id: text_of(self.request_id.as_ref()),
            policy_decision: info.and_then(|info| info.policy_decision).map_or("", <&str>::from),
            rules,
            model: info.and_then(|info| info.model.as_deref()).unwrap_or_default(),
            input_tokens: usage.map(|usage| usage.prompt),
            output_tokens: usage.map(|usage| usage.completion),
            cache: info.and_then(|info| info.cache).unwrap_or_default(),
            tool: info.and_then(|info| info.tool.as_deref()).unwrap_or_default(),
            left_out: info.and_then(|info| info.left_out.as_deref()).unwrap_or_default(),
            ended_early: self.ended_early.get().unwrap_or_default(),
            outcome: info.and_then(|info| info.outcome).unwrap_or_default(),
            refused_by: self.refused_by.unwrap_or_default(),
        }
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        if !self.finished && self.ended_early.get().is_none() {
            self.ended_early.set(Some("client_gone"));
        }
        self.finish(false);
    }
}

/// The text of a header; empty if it is absent or not text.
fn text_of(value: Option<&HeaderValue>) -> &str {
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}
