//! Meaningless values: zeros, negative amounts, bounds that exclude each other, and duplicate
//! names.

use std::collections::BTreeSet;

use hyper::header::HeaderName;

use super::Check;
use crate::assembly::spec::Spec;
use crate::config::route::RouteSpec;
use crate::config::units::ByteSize;
use crate::config::upstream::UpstreamSpec;

/// Rejects settings of a section that are not greater than 0.
macro_rules! positive {
    ($check:ident, $place:expr, $section:expr, $($name:ident),+) => {
        $($check.positive($place, stringify!($name), is_positive(&$section.$name));)+
    };
}

fn is_positive<T: PartialOrd + Default>(value: &T) -> bool {
    *value > T::default()
}

impl Check {
    /// Rejects meaningless single values.
    pub(super) fn single_values(&mut self, spec: &Spec) {
        let server = &spec.server;
        positive!(self, "server", server, headers, connections, body_bytes, response_bytes, memory);
        positive!(self, "server", server, header_timeout, body_timeout, write_timeout);
        positive!(self, "server", server, websocket_timeout);
        self.positive("server", "owner_memory", server.owner_memory != Some(ByteSize(0)));
        self.require(spec.workers > 0, "workers: must be greater than 0");
        positive!(self, "store", spec.store, timeout);
        if let Some(cache) = &spec.cache {
            positive!(self, "cache", cache, ttl, bytes);
        }
        if let Some(budgets) = &spec.budgets {
            positive!(self, "budgets", budgets, max_tokens, window);
            positive!(self, "budgets", budgets, usd_per_1k_prompt, usd_per_1k_completion);
        }
        if let Some(tools) = &spec.tools {
            positive!(self, "tools", tools, session_timeout, result_bytes, timeout, refresh);
            positive!(self, "tools", tools, sessions, calls_per_session);
        }
        for limit in &spec.rate_limits {
            positive!(self, "rate_limits", limit, window);
        }
        for (name, upstream) in &spec.upstreams {
            self.upstream_values(&format!("upstream `{name}`"), upstream);
        }
        if let Some(agents) = &spec.agents {
            self.positive("agents", "sessions.max", agents.sessions.max > 0);
            self.positive("agents", "approvals.max", agents.approvals.max > 0);
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
        positive!(self, place, upstream, connect_timeout, timeout, idle_timeout);
        if let Some(retry) = &upstream.retry {
            self.positive(place, "retry.attempts", retry.attempts > 0);
            self.require(
                retry.budget >= 0.0 && retry.budget.is_finite(),
                &format!("{place}: `retry.budget` is a share of the requests, such as 0.2"),
            );
        }
        if let Some(breaker) = &upstream.breaker {
            self.positive(place, "breaker.failures", breaker.failures > 0);
            self.positive(place, "breaker.open", is_positive(&breaker.open));
        }
        let distinct: BTreeSet<_> = upstream.addresses.iter().collect();
        self.require(
            distinct.len() == upstream.addresses.len(),
            &format!("{place}: an address is listed twice"),
        );
    }

    /// Rejects a value that is not greater than 0.
    fn positive(&mut self, place: &str, name: &str, fine: bool) {
        self.require(fine, &format!("{place}: `{name}` must be greater than 0"));
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
            self.require(fine, &format!("{what} `{name}`: is empty, or listed twice"));
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
            self.positive(&format!("route `{name}`"), "timeout", is_positive(&timeout));
        }
        let prefix = path.trim_end_matches('*');
        self.require(
            strip.as_ref().is_none_or(|strip| !strip.is_empty() && prefix.starts_with(&**strip)),
            &format!("route `{name}`: `strip` is not the beginning of its path"),
        );
    }
}
