//! Values that cannot mean anything: zeros, amounts below zero, bounds that exclude each other, and
//! names that two things have.

use std::collections::BTreeSet;

use super::Check;
use crate::assembly::spec::Spec;
use crate::config::route::RouteSpec;
use crate::config::units::{ByteSize, HumanDuration};
use crate::config::upstream::UpstreamSpec;

/// A value that must be greater than 0.
struct Positive(bool);

impl From<HumanDuration> for Positive {
    fn from(duration: HumanDuration) -> Self {
        Self(duration.nanos() > 0)
    }
}

impl From<ByteSize> for Positive {
    fn from(size: ByteSize) -> Self {
        Self(size.0 > 0)
    }
}

impl From<f64> for Positive {
    fn from(number: f64) -> Self {
        Self(number > 0.0 && number.is_finite())
    }
}

impl From<u64> for Positive {
    fn from(number: u64) -> Self {
        Self(number > 0)
    }
}

impl Check {
    /// Refuses single values that cannot mean anything.
    pub(super) fn single_values(&mut self, spec: &Spec) {
        let server = &spec.server;
        self.positive(
            "server",
            [
                ("headers", (server.headers as u64).into()),
                ("connections", (server.connections as u64).into()),
                ("body_bytes", server.body_bytes.into()),
                ("response_bytes", server.response_bytes.into()),
                ("memory", server.memory.into()),
                ("owner_memory", server.owner_memory.unwrap_or(ByteSize(1)).into()),
                ("header_timeout", server.header_timeout.into()),
                ("body_timeout", server.body_timeout.into()),
                ("write_timeout", server.write_timeout.into()),
                ("websocket_timeout", server.websocket_timeout.into()),
            ],
        );
        self.positive("workers", [("", u64::from(spec.workers).into())]);
        self.positive("store", [("timeout", spec.store.timeout.into())]);
        if let Some(cache) = &spec.cache {
            self.positive("cache", [("ttl", cache.ttl.into()), ("bytes", cache.bytes.into())]);
        }
        if let Some(budgets) = &spec.budgets {
            let values = [
                ("max_tokens", budgets.max_tokens.into()),
                ("window", budgets.window.into()),
                ("usd_per_1k_prompt", budgets.usd_per_1k_prompt.into()),
                ("usd_per_1k_completion", budgets.usd_per_1k_completion.into()),
            ];
            self.positive("budgets", values);
        }
        if let Some(tools) = &spec.tools {
            let values = [
                ("session_timeout", tools.session_timeout.into()),
                ("result_bytes", tools.result_bytes.into()),
                ("timeout", tools.timeout.into()),
                ("refresh", tools.refresh.into()),
                ("sessions", (tools.sessions as u64).into()),
                ("calls_per_session", u64::from(tools.calls_per_session).into()),
            ];
            self.positive("tools", values);
        }
        for limit in &spec.rate_limits {
            self.positive("rate_limits", [("window", limit.window.into())]);
        }
        for (name, upstream) in &spec.upstreams {
            self.upstream_values(&format!("upstream `{name}`"), upstream);
        }
        if let Some(agents) = &spec.agents {
            let values = [
                ("sessions.max", (agents.sessions.max as u64).into()),
                ("approvals.max", (agents.approvals.max as u64).into()),
            ];
            self.positive("agents", values);
        }
        self.require(spec.faults.has_valid_shares(), "faults: a share is between 0 and 1");
        self.names(spec);
    }

    fn upstream_values(&mut self, place: &str, upstream: &UpstreamSpec) {
        self.positive(
            place,
            [
                ("connect_timeout", upstream.connect_timeout.into()),
                ("timeout", upstream.timeout.into()),
                ("idle_timeout", upstream.idle_timeout.into()),
            ],
        );
        if let Some(retry) = &upstream.retry {
            self.positive(place, [("retry.attempts", u64::from(retry.attempts).into())]);
            self.require(
                retry.budget >= 0.0 && retry.budget.is_finite(),
                &format!("{place}: `retry.budget` is a share of the requests, such as 0.2"),
            );
        }
        if let Some(breaker) = &upstream.breaker {
            let failures = u64::from(breaker.failures).into();
            let values = [("breaker.failures", failures), ("breaker.open", breaker.open.into())];
            self.positive(place, values);
        }
        let distinct: BTreeSet<_> = upstream.addresses.iter().collect();
        self.require(
            distinct.len() == upstream.addresses.len(),
            &format!("{place}: an address is there twice"),
        );
    }

    /// Refuses values that are not greater than 0. An empty name stands for the place itself.
    fn positive<const N: usize>(&mut self, place: &str, values: [(&str, Positive); N]) {
        for (name, Positive(fine)) in values {
            let problem = match name {
                "" => format!("{place}: must be greater than 0"),
                _ => format!("{place}: `{name}` must be greater than 0"),
            };
            self.require(fine, &problem);
        }
    }

    /// Refuses names that several things have: rows and rules could not tell them apart.
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

    fn distinct<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a str>) {
        let mut known = BTreeSet::new();
        for name in names {
            let fine = !name.is_empty() && known.insert(name);
            self.require(fine, &format!("{what} `{name}`: is empty, or there twice"));
        }
    }

    /// Refuses settings of a route that do nothing.
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
            self.positive(&format!("route `{name}`"), [("timeout", timeout.into())]);
        }
        let prefix = path.trim_end_matches('*');
        self.require(
            strip.as_ref().is_none_or(|strip| !strip.is_empty() && prefix.starts_with(&**strip)),
            &format!("route `{name}`: `strip` is not the beginning of its path"),
        );
    }
}
