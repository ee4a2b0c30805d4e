//! Prometheus metrics. Label values are from closed sets, so that clients cannot create series:
//! routes use their template instead of the raw path, and non-standard methods and statuses are
//! `other`. Series belong to names and continue after reloads.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, LazyLock};

use hashbrown::HashMap;
use hyper::{Method, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use serde::Deserialize;

use crate::layers::counters::{LayerCounter, LayerCounters};
use crate::layers::{Layer, Setup};

/// Prometheus metrics.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MetricsSpec {
    /// Whether everyone may read them, and not only administrators.
    pub open: bool,
}

/// Bounds of the buckets, in seconds: from the overhead of a gateway to the response of a provider.
const BUCKETS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
];

type Labels<const N: usize> = [(&'static str, String); N];

/// The metrics of all workers.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels<3>, Counter>,
    durations: Family<Labels<2>, Histogram>,
    errors: Family<Labels<1>, Counter>,
    pub(crate) connections: Gauge,
    pub(crate) memory: Gauge,
    layer_counters: LayerCounters,
    refusals: Family<Labels<1>, Counter>,
    pub(crate) rate_limited: Counter,
    pub(crate) retries: Counter,
    tool_servers: Family<Labels<1>, Gauge>,
    pub(crate) store_errors: Gauge,
    audit: Family<Labels<1>, Gauge>,
    pub(crate) audit_failing: Gauge,
    layers: Family<Labels<1>, Gauge>,
    pub(crate) upstreams: Family<Labels<2>, Gauge>,
    /// All requests, whether or not the layer `metrics` is enabled.
    pub(crate) served: Counter,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// One worker's cache of the series of requests, each looked up once.
#[derive(Debug, Default)]
pub(crate) struct SeriesCache(RefCell<HashMap<Arc<str>, RouteSeries>>);

/// The series of one route, by method and status.
type RouteSeries = HashMap<(&'static str, &'static str), (Counter, Histogram)>;

/// The methods of RFC 9110 and RFC 5789; all others are `other`.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::PATCH => "PATCH",
        Method::TRACE => "TRACE",
        _ => OTHER,
    }
}

/// The statuses that the registry of HTTP has a phrase for; all others are `other`.
fn status_label(status: StatusCode) -> &'static str {
    static NAMES: LazyLock<HashMap<u16, String>> = LazyLock::new(|| {
        let known = (100..600).filter_map(|code| StatusCode::from_u16(code).ok());
        let known = known.filter(|status| status.canonical_reason().is_some());
        known.map(|status| (status.as_u16(), status.as_str().to_owned())).collect()
    });
    if status == StatusCode::OK {
        return "200";
    }
    NAMES.get(&status.as_u16()).map_or(OTHER, String::as_str)
}

/// The label for values outside a closed set.
const OTHER: &str = "other";

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("gateway");
        let all = &mut registry;
        Self {
            requests: registered(all, "requests", "Requests by method, route and status"),
            durations: {
                let durations = Family::new_with_constructor(histogram as fn() -> Histogram);
                let help = "From a request's head to the end of its response";
                all.register("request_duration_seconds", help, durations.clone());
                durations
            },
            errors: registered(all, "errors", "Refused and failed requests by kind"),
            connections: registered(all, "active_connections", "Open client connections"),
            memory: registered(all, "memory_bytes", "Bytes of buffered messages"),
            layer_counters: LayerCounters::register(all),
            refusals: registered(all, "layer_refusals", "Requests that a layer refused"),
            rate_limited: registered(all, "rate_limited", "Requests refused by a rate limit"),
            retries: registered(all, "retries", "Retries of requests to upstreams"),
            tool_servers: registered(all, "tool_servers", "Tool servers by state"),
            store_errors: registered(all, "store_errors", "Failed operations of the store"),
            audit: registered(all, "audit_rows", "Audit rows by state"),
            audit_failing: registered(all, "audit_failing", "1 while a row cannot be written"),
            layers: registered(all, "layer_enabled", "1 for each layer that is enabled"),
            upstreams: registered(all, "upstream_healthy", "1 while an address receives requests"),
            served: Counter::default(),
            registry,
        }
    }

    /// The text exposition of all metrics.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(4_096);
        plimsoll_process_metrics::append(&mut text);
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Counts a finished request.
    pub(crate) fn count_request(
        &self,
        series: &SeriesCache,
        template: &Arc<str>,
        method: &Method,
        status: StatusCode,
        seconds: f64,
    ) {
        let key = (method_label(method), status_label(status));
        let mut known = series.0.borrow_mut();
        if let Some((count, time)) = known.get(template).and_then(|route| route.get(&key)) {
            count.inc();
            time.observe(seconds);
            return;
        }
        let (count, time) = self.series(template, key.0, key.1);
        count.inc();
        time.observe(seconds);
        known.entry(Arc::clone(template)).or_default().insert(key, (count, time));
    }

    fn series(
        &self,
        template: &str,
        method: &'static str,
        status: &'static str,
    ) -> (Counter, Histogram) {
        let (route, method) = (("route", template.to_owned()), ("method", method.to_owned()));
        let labels = [method.clone(), route.clone(), ("status", status.to_owned())];
        (
            self.requests.get_or_create(&labels).clone(),
            self.durations.get_or_create(&[method, route]).clone(),
        )
    }

    pub(crate) fn count_error(&self, kind: &str) {
        self.errors.get_or_create(&[("type", kind.to_owned())]).inc();
    }

    /// Counts a request that a layer refused.
    pub(crate) fn count_refusal(&self, layer: &str) {
        self.refusals.get_or_create(&[("layer", layer.to_owned())]).inc();
    }

    /// Counts one event of a layer. The values are the counter's labels, in order.
    pub(crate) fn count(&self, counter: &'static LayerCounter, values: &[&str]) {
        self.layer_counters.count(counter, values);
    }

    /// Sets the numbers of tool servers that are up and down; both 0 without any.
    pub(crate) fn set_tool_servers(&self, up: usize, down: usize) {
        self.tool_servers.clear();
        let states = [("up", up), ("down", down)].into_iter().filter(|_| up + down > 0);
        for (state, count) in states {
            let gauge = self.tool_servers.get_or_create(&[("state", state.to_owned())]);
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub(crate) fn set_audit_rows(&self, state: &str, rows: u64) {
        self.audit.get_or_create(&[("state", state.to_owned())]).set(rows.cast_signed());
    }

    /// Sets the enabled layers, and removes earlier ones.
    pub(crate) fn set_layers(&self, enabled: &[&str]) {
        self.layers.clear();
        for layer in enabled {
            self.layers.get_or_create(&[("layer", (*layer).to_owned())]).set(1);
        }
    }

    pub(crate) fn set_upstream(&self, upstream: &str, address: &str, healthy: bool) {
        let labels = [("upstream", upstream.to_owned()), ("address", address.to_owned())];
        self.upstreams.get_or_create(&labels).set(healthy.into());
    }
}

/// A new metric in a registry.
fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Layer for MetricsSpec {
    type Section = Self;
    const OBSERVES: bool = true;

    fn new(section: &Self, _setup: &Setup<'_>) -> Result<Self, String> {
        Ok(*section)
    }
}
