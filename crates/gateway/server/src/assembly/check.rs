//! Checks of a configuration's values, and the routes made from them. All problems are collected.

mod unmatched;
mod values;

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use plimsoll_gateway_dialect::Endpoint;
use plimsoll_gateway_inspect::Unread;

use crate::assembly::agent_route::AgentRoute;
use crate::assembly::router::{FixedResponse, Handler, Route, Router, covers};
use crate::assembly::spec::Spec;
use crate::assembly::tool_route::ToolRoute;
use crate::config::error::GatewayError;
use crate::config::route::{RespondSpec, RouteSpec};
use crate::http::normal_form::is_normal_template;
use crate::layers::rate_limit::Per;
use crate::layers::{Access, Layers, Setup};
use crate::upstream::Upstream;
use crate::upstream::proxy::{LlmUse, Proxy};

/// The problems found so far.
#[derive(Default)]
pub(crate) struct Check {
    problems: Vec<String>,
}

impl Check {
    /// Unwraps a result, and records a problem.
    pub(crate) fn keep<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Builds the enabled layers.
    pub(crate) fn layers(&mut self, spec: &Spec, upstreams: &[Arc<Upstream>]) -> Layers {
        let setup = Setup { faults: spec.faults, upstreams };
        Layers::new(spec, &setup, &mut self.problems)
    }

    fn require(&mut self, holds: bool, problem: &str) {
        if !holds {
            self.problems.push(problem.to_owned());
        }
    }

    /// # Errors
    /// [`GatewayError::Config`] if there were problems.
    pub(crate) fn finish(self) -> Result<(), GatewayError> {
        if self.problems.is_empty() { Ok(()) } else { Err(GatewayError::Config(self.problems)) }
    }

    /// Checks single values, and sections that depend on each other.
    pub(crate) fn values(&mut self, spec: &Spec) {
        self.unmatched(spec);
        let is_open = spec.admin.enabled && spec.admin.local && spec.admin.key.is_none();
        self.require(
            !is_open || spec.listen.ip().is_loopback(),
            "admin: `local` opens administration to every proxy on this machine, and `listen` is not \
             a loopback address: give it a `key`, or a `listen` of its own",
        );
        self.single_values(spec);
        self.require(
            spec.server.header_bytes.0 >= 8_192,
            "server.header_bytes: at least 8KiB, the smallest buffer for a head",
        );
        let by_tenant = spec.rate_limits.iter().any(|limit| limit.per == Per::Tenant);
        let (auth, tenant) = (spec.auth.is_some(), spec.tenant.is_some());
        self.needs(!by_tenant || tenant, "rate_limits: a limit per tenant", "tenant");
        let by_key = spec.rate_limits.iter().any(|limit| limit.per == Per::Key);
        self.needs(!by_key || auth, "rate_limits: a limit per key", "auth");
        self.needs(spec.budgets.is_none() || tenant, "budgets: the layer", "tenant");
        let lists =
            spec.tools.as_ref().is_some_and(|tools| tools.allow.keys().any(|name| name != "*"));
        self.needs(!lists || tenant, "tools: `allow`", "tenant");
    }

    fn needs(&mut self, holds: bool, what: &str, section: &str) {
        self.require(holds, &format!("{what} needs the section `{section}`"));
    }

    /// Builds the router of the built-in and the configured routes.
    pub(crate) fn routes(&mut self, spec: &Spec, upstreams: &[Arc<Upstream>]) -> Router {
        let mut router = Router::default();
        for (path, handler) in builtin_routes(spec) {
            let spends = matches!(handler, Handler::Policy) && spec.budgets.is_some();
            self.require(
                !(spends && covers(&spec.open, path)),
                &format!("open: it covers `{path}`, but its budget needs a known caller"),
            );
            let asks = spec.auth.is_some() || spec.tenant.is_some();
            let belongs = matches!(handler, Handler::Agents(route) if route.belongs_to_somebody());
            self.require(
                !(asks && belongs && covers(&spec.open, path)),
                &format!("open: `{path}` needs an authenticated caller"),
            );
            if spec.admin.listen.is_none() || !is_apart(&handler) {
                self.keep(router.add(builtin_route(spec, path, handler)));
            }
        }
        for route in &spec.routes {
            let built = self.route(spec, route, upstreams);
            let added = built.map(|built| router.add(built));
            let named = added
                .map(|added| added.map_err(|error| format!("route `{}`: {error}", route.name)));
            named.and_then(|added| self.keep(added));
        }
        router
    }

    /// The routes of the address of the administration.
    pub(crate) fn admin_routes(&mut self, spec: &Spec) -> Router {
        let mut router = Router::default();
        for (path, handler) in builtin_routes(spec) {
            let is_health = matches!(handler, Handler::Health | Handler::Live | Handler::Ready);
            if is_health || is_apart(&handler) {
                self.keep(router.add(builtin_route(spec, path, handler)));
            }
        }
        router
    }

    fn route(
        &mut self,
        spec: &Spec,
        route: &RouteSpec,
        upstreams: &[Arc<Upstream>],
    ) -> Option<Route> {
        let rules = [("consumers", route.consumers.is_empty()), ("scope", route.scope.is_none())];
        for (rule, is_unset) in rules {
            let what = format!("route `{}`: `{rule}`", route.name);
            self.needs(is_unset || spec.auth.is_some(), &what, "auth");
        }
        // Open routes skip authentication.
        let counts = spec.cache.is_some() || spec.budgets.is_some();
        let needs_identity =
            !route.consumers.is_empty() || route.scope.is_some() || (route.llm && counts);
        self.require(
            !(needs_identity && covers(&spec.open, &route.path)),
            &format!("route `{}`: `open` covers it, but it needs a known caller", route.name),
        );
        self.require(
            is_normal_template(&route.path),
            &format!("route `{}`: `path` is not in normal form, see the guide", route.name),
        );
        self.require(
            !(route.llm && route.websocket),
            &format!("route `{}`: `llm` and `websocket` exclude each other", route.name),
        );
        self.idle_settings(route);
        self.unread(spec, route);
        let handler = self.keep(handler(route, upstreams, by_path(spec)))?;
        Some(Route {
            name: Arc::from(route.name.as_str()),
            template: Arc::from(route.path.as_str()),
            handler,
            access: Access {
                consumers: route.consumers.iter().map(|name| Arc::from(name.as_str())).collect(),
                scope: route.scope.clone(),
            },
            open: covers(&spec.open, &route.path),
            is_administration: false,
        })
    }
}

/// The built-in routes.
fn builtin_routes(spec: &Spec) -> Vec<(&'static str, Handler)> {
    let policy = spec.policy.as_ref().is_some_and(|policy| policy.endpoint);
    let routes = [
        ("/health", Handler::Health, true),
        ("/health/live", Handler::Live, true),
        ("/health/ready", Handler::Ready, true),
        ("/metrics", Handler::Metrics, spec.metrics.is_some()),
        ("/admin/build", Handler::Build, spec.admin.enabled),
        ("/admin/reload", Handler::Reload, spec.admin.enabled),
        ("/v1/budget/{tenant}", Handler::Budget, spec.budgets.is_some()),
        ("/api/request", Handler::Policy, policy),
    ];
    let routes = routes.into_iter().filter(|(_, _, on)| *on);
    let routes = routes.map(|(path, handler, _)| (path, handler));
    let agents = AgentRoute::of(spec).map(|(path, route)| (path, Handler::Agents(route)));
    let tools = ToolRoute::PATHS.into_iter().filter(|_| spec.tools.is_some());
    let tools = tools.map(|(path, route)| (path, Handler::Tools(route)));
    routes.chain(agents).chain(tools).collect()
}

/// Whether a route is served only at the address of the administration, if there is one.
const fn is_apart(handler: &Handler) -> bool {
    matches!(
        handler,
        Handler::Metrics | Handler::Build | Handler::Reload | Handler::Tools(ToolRoute::Servers)
    )
}

fn builtin_route(spec: &Spec, path: &str, handler: Handler) -> Route {
    let is_administration = match handler {
        Handler::Build | Handler::Reload | Handler::Tools(ToolRoute::Servers) => true,
        Handler::Metrics => spec.metrics.is_some_and(|metrics| !metrics.open),
        _ => false,
    };
    Route {
        name: Arc::from(path),
        template: Arc::from(path),
        access: Access { consumers: Vec::new(), scope: scope(&handler).map(str::to_owned) },
        handler,
        open: covers(&spec.open, path),
        is_administration,
    }
}

/// The scope that a key with scopes needs for a built-in route.
fn scope(handler: &Handler) -> Option<&'static str> {
    match handler {
        Handler::Budget => Some("budget"),
        Handler::Policy => Some("policy"),
        Handler::Agents(route) => route.scope(),
        Handler::Tools(_) => Some("tools"),
        _ => None,
    }
}

/// The default treatment of routes without `llm: true`.
fn by_path(spec: &Spec) -> LlmUse {
    let policy = spec.policy.as_ref().map(|policy| policy.unjudged);
    if policy.is_none() && spec.budgets.is_none() {
        return LlmUse::Never;
    }
    LlmUse::ByPath { refuse_unread: policy != Some(Unread::Pass) }
}

/// The handler of a route. `by_path` is its treatment without `llm: true`.
fn handler(
    route: &RouteSpec,
    upstreams: &[Arc<Upstream>],
    by_path: LlmUse,
) -> Result<Handler, String> {
    let name = &route.name;
    match (&route.upstream, &route.respond) {
        (None, Some(respond)) => fixed_response(respond).map(Handler::Fixed),
        (Some(wanted), None) => {
            let upstream = upstreams.iter().find(|upstream| *upstream.name == **wanted);
            let upstream = upstream.ok_or_else(|| {
                let known: Vec<_> = upstreams.iter().map(|upstream| &*upstream.name).collect();
                format!("route `{name}`: unknown upstream `{wanted}`; known: {}", known.join(", "))
            })?;
            let llm = if route.llm { LlmUse::Always } else { by_path };
            let proxy = Proxy {
                upstream: Arc::clone(upstream),
                strip: route.strip.clone(),
                timeout: route.timeout.unwrap_or(upstream.timeout),
                llm,
                websocket: route.websocket,
            };
            Ok(Handler::Proxy(proxy))
        }
        _ => Err(format!("route `{name}` needs either `upstream` or `respond`")),
    }
}

fn fixed_response(respond: &RespondSpec) -> Result<FixedResponse, String> {
    let status = StatusCode::from_u16(respond.status).ok();
    let status = status.filter(|status| !status.is_informational());
    let status = status.ok_or_else(|| format!("{} is not a final status", respond.status))?;
    if matches!(respond.status, 204 | 205 | 304) && !respond.body.is_empty() {
        return Err(format!("a response with status {status} has no `body`"));
    }
    Ok(FixedResponse {
        status,
        content_type: HeaderValue::from_str(&respond.content_type)
            .map_err(|_| format!("`{}` is not a content type", respond.content_type))?,
        body: Bytes::from(respond.body.clone()),
    })
}

/// Paths of LLM APIs that are spoken over a `WebSocket`, beside the endpoints themselves.
const REALTIME: &str = "/v1/realtime";

impl Check {
    /// Rejects passing a `WebSocket` through if a layer must read its messages.
    fn unread(&mut self, spec: &Spec, route: &RouteSpec) {
        if !route.websocket {
            return;
        }
        let name = &route.name;
        let scrub = spec.scrub.as_ref().map(|scrub| scrub.unreadable);
        self.require(
            scrub != Some(Unread::Refuse),
            &format!(
                "route `{name}`: `scrub` cannot read the messages of a WebSocket that is passed through: remove the route, or pass unreadable content with \
                 `scrub: {{unreadable: pass}}`"
            ),
        );
        let reader = match (&spec.policy, &spec.budgets) {
            (Some(_), _) => "policy",
            (None, Some(_)) => "budgets",
            (None, None) => return,
        };
        let strip = route.strip.as_deref().unwrap_or_default();
        let paths = Endpoint::ALL.iter().map(|endpoint| endpoint.path()).chain([REALTIME]);
        let pattern = std::slice::from_ref(&route.path);
        let reached = paths.map(|path| format!("{strip}{path}")).find(|path| covers(pattern, path));
        self.require(
            reached.is_none(),
            &format!(
                "route `{name}`: `{reader}` cannot read the messages of a WebSocket to `{}`: give the route a path outside the LLM API",
                reached.as_deref().unwrap_or_default()
            ),
        );
    }
}
