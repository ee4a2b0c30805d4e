//! Meaningless values: zeros, negative amounts, bounds that exclude each other, and duplicate
//! names.

use std::collections::BTreeSet;

use hyper::header::HeaderName;

use super::Check;
use crate::assembly::spec::Spec;
use crate::config::route::RouteSpec;
use crate::config::units::ByteSize;
use crate::config::upstream::UpstreamSpec;

impl Check {
    /// Rejects meaningless single values.
    pub(super) fn single_values(&mut self, spec: &Spec) {
        let server = &spec.server;
        self.positive(
            "server",
            [
                ("headers", server.headers > 0),
                ("connections", server.connections > 0),
                ("body_bytes", server.body_bytes.0 > 0),
                ("response_bytes", server.response_bytes.0 > 0),
                ("memory", server.memory.0 > 0),
                ("owner_memory", server.owner_memory != Some(ByteSize(0))),
                ("header_timeout", server.header_timeout.nanos() > 0),
                ("body_timeout", server.body_timeout.nanos() > 0),
                ("write_timeout", server.write_timeout.nanos() > 0),
                ("websocket_timeout", server.websocket_timeout.nanos() > 0),
            ],
        );
        self.positive("workers", [("", spec.workers > 0)]);
        self.positive("store", [("timeout", spec.store.timeout.nanos() > 0)]);
        if let Some(cache) = &spec.cache {
            self.positive("cache", [("ttl", cache.ttl.nanos() > 0), ("bytes", cache.bytes.0 > 0)]);
        }
        if let Some(budgets) = &spec.budgets {
            let values = [
                ("max_tokens", budgets.max_tokens > 0),
                ("window", budgets.window.nanos() > 0),
                ("usd_per_1k_prompt", budgets.usd_per_1k_prompt > 0.0),
                ("usd_per_1k_completion", budgets.usd_per_1k_completion > 0.0),
            ];
            self.positive("budgets", values);
        }
        if let Some(tools) = &spec.tools {
            let values = [
                ("session_timeout", tools.session_timeout.nanos() > 0),
                ("result_bytes", tools.result_bytes.0 > 0),
                ("timeout", tools.timeout.nanos() > 0),
                ("refresh", tools.refresh.nanos() > 0),
                ("sessions", tools.sessions > 0),
                ("calls_per_session", tools.calls_per_session > 0),
            ];
            self.positive("tools", values);
        }
        for limit in &spec.rate_limits {
            self.positive("rate_limits", [("window", limit.window.nanos() > 0)]);
        }
        for (name, upstream) in &spec.upstreams {
            self.upstream_values(&format!("upstream `{name}`"), upstream);
        }
        if let Some(agents) = &spec.agents {
            let values = [
                ("sessions.max", agents.sessions.max > 0),
                ("approvals.max", agents.approvals.max > 0),
            ];
            self.positive("agents", values);
        }
        self.require(spec.faults.has_valid_shares(), "faults: a share is between 0 and 1");
        self.names(spec);
        self.places(spec);
    }

    /// Rejects addresses and paths that are used twice.
    fn places(&mut self, spec: &Spec) {
        self.require(
            spec.listen.port() == 0 || spec.admin.listen != Some(spec.listen),
            "admin.listen: is the same address as `listen`",
        );
        let audit = spec.audit.as_ref().and_then(|audit| audit.path.as_ref());
        let access_log = spec.access_log.as_ref().map(|log| &log.path);
        self.require(
            audit.is_none() || audit != access_log,
            "access_log: is the same file as `audit`, which already has these rows",
        );
    }

    fn upstream_values(&mut self, place: &str, upstream: &UpstreamSpec) {
        self.positive(
            place,
            [
                ("connect_timeout", upstream.connect_timeout.nanos() > 0),
                ("timeout", upstream.timeout.nanos() > 0),
                ("idle_timeout", upstream.idle_timeout.nanos() > 0),
            ],
        );
        if let Some(retry) = &upstream.retry {
            self.positive(place, [("retry.attempts", retry.attempts > 0)]);
            self.require(
                retry.budget >= 0.0 && retry.budget.is_finite(),
                &format!("{place}: `retry.budget` is a share of the requests, such as 0.2"),
            );
        }
        if let Some(breaker) = &upstream.breaker {
            let values = [
                ("breaker.failures", breaker.failures > 0),
                ("breaker.open", breaker.open.nanos() > 0),
            ];
            self.positive(place, values);
        }
        let distinct: BTreeSet<_> = upstream.addresses.iter().collect();
        self.require(
            distinct.len() == upstream.addresses.len(),
            &format!("{place}: an address is there twice"),
        );
    }

    /// Rejects values that are not greater than 0, marked by `false`. An empty name refers to the
    /// place itself.
    fn positive<const N: usize>(&mut self, place: &str, values: [(&str, bool); N]) {
        for (name, fine) in values {
            let problem = match name {
                "" => format!("{place}: must be greater than 0"),
                _ => format!("{place}: `{name}` must be greater than 0"),
            };
            self.require(fine, &problem);
        }
    }

    /// Rejects duplicate names, because log rows and rules could not distinguish them.
    fn names(&mut self, spec: &Spec) {
        let keys = spec.auth.iter().flat_map(|auth| &auth.keys).map(|key| key.name.as_str());
        let routes = spec.routes.iter().map(|route| route.name.as_str());
        let open = spec.open.iter().map(String::as_str);
        self.distinct("auth: the key", keys);
        self.distinct("route", routes);
        self.distinct("open:", open);
        for path in &spec.open {
            self.require(path.starts_with('/'), &format!("open: `{path}` does not begin with `/`"));
        }
    }

    /// Rejects a header that two layers would read.
    pub(crate) fn headers(&mut self, headers: &[HeaderName]) {
        self.distinct("the header", headers.iter().map(HeaderName::as_str));
    }

    fn distinct<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a str>) {
        let mut known = BTreeSet::new();
        for name in names {
            let fine = !name.is_empty() && known.insert(name);
            self.require(fine, &format!("{what} `{name}`: is empty, or there twice"));
        }
    }

    /// Rejects settings of a route that have no effect.
    pub(super) fn idle_settings(&mut self, route: &RouteSpec) {
        let RouteSpec { name, path, strip, .. } = route;
        let for_upstreams = [
            ("llm", route.llm),
            ("websocket", route.websocket),
            ("strip", strip.is_some()),
            ("timeout", route.timeout.is_some()),
        ];
        for (setting, is_set) in for_upstreams {
            self.require(
                !is_set || route.respond.is_none(),
                &format!("route `{name}`: `{setting}` does nothing beside `respond`"),
            );
        }
        if let Some(timeout) = route.timeout {
            self.positive(&format!("route `{name}`"), [("timeout", timeout.nanos() > 0)]);
        }
        let prefix = path.trim_end_matches('*');
        self.require(
            strip.as_ref().is_none_or(|strip| !strip.is_empty() && prefix.starts_with(&**strip)),
            &format!("route `{name}`: `strip` is not the beginning of its path"),
        );
    }
}
