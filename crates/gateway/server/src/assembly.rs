//! The configuration as a whole: the file, its checks, and the routes and layers made from it.

pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod preset;
pub mod spec;

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use serde_json::{Map, Value};

use crate::assembly::spec::Spec;
use crate::config::error::GatewayError;
use crate::config::yaml_error;
use crate::layers::Access;
use crate::upstream::proxy::Proxy;

/// A route of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentRoute {
    /// `POST /v1/sessions`.
    Sessions,
    /// `GET` and `DELETE /v1/sessions/{id}`.
    Session,
    /// `POST /v1/hitl`.
    Approvals,
    /// `GET /v1/hitl/pending`, and `GET /v1/approvals`.
    Pending,
    /// `GET /v1/hitl/{id}`.
    Approval,
    /// `POST /v1/hitl/{id}/approve`.
    Approve,
    /// `POST /v1/hitl/{id}/reject`.
    Reject,
    /// `POST /v1/hitl/{id}/expire`.
    Expire,
    /// `GET /v1/a2a/agents`.
    Agents,
    /// `POST /v1/a2a/send`.
    Send,
    /// `POST /a2a` and `POST /a2a/{agent}`.
    A2a,
    /// The cards of agents.
    Card,
    /// `POST /api/chat`.
    Chat,
    /// `POST /v1/runs`.
    Runs,
    /// `GET /v1/runs/{id}`.
    Run,
}

impl AgentRoute {
    /// The routes that a configuration has, with their paths.
    pub(crate) fn of(spec: &Spec) -> Vec<(&'static str, Self)> {
        let Some(agents) = &spec.agents else { return Vec::new() };
        let chat = CHAT.into_iter().filter(|_| agents.chat.is_some());
        ALWAYS.into_iter().chain(chat).collect()
    }

    /// The scope that a key with scopes needs for it; `None` for what everybody may read.
    pub(crate) const fn scope(self) -> Option<&'static str> {
        match self {
            Self::Sessions | Self::Session => Some("sessions"),
            Self::Approvals | Self::Pending | Self::Approval => Some("approvals"),
            Self::Approve | Self::Reject | Self::Expire => Some("approve"),
            Self::Agents | Self::Send | Self::A2a => Some("agents"),
            Self::Chat | Self::Runs | Self::Run => Some("chat"),
            Self::Card => None,
        }
    }

    /// Whether a budget pays for it.
    pub(crate) const fn spends(self) -> bool {
        matches!(self, Self::Chat | Self::Runs)
    }

    /// Whether what is there belongs to somebody, so that it must be known who asks.
    pub(crate) const fn belongs_to_somebody(self) -> bool {
        !matches!(self, Self::Card)
    }
}

const ALWAYS: [(&str, AgentRoute); 17] = [
    ("/v1/sessions", AgentRoute::Sessions),
    ("/v1/sessions/{id}", AgentRoute::Session),
    ("/v1/hitl", AgentRoute::Approvals),
    ("/v1/hitl/pending", AgentRoute::Pending),
    ("/v1/approvals", AgentRoute::Pending),
    ("/v1/hitl/{id}", AgentRoute::Approval),
    ("/v1/hitl/{id}/approve", AgentRoute::Approve),
    ("/v1/hitl/{id}/reject", AgentRoute::Reject),
    ("/v1/hitl/{id}/expire", AgentRoute::Expire),
    ("/v1/a2a/agents", AgentRoute::Agents),
    ("/v1/a2a/send", AgentRoute::Send),
    ("/a2a", AgentRoute::A2a),
    ("/a2a/{agent}", AgentRoute::A2a),
    ("/.well-known/agent-card.json", AgentRoute::Card),
    ("/.well-known/agent.json", AgentRoute::Card),
    ("/a2a/{agent}/.well-known/agent-card.json", AgentRoute::Card),
    ("/a2a/{agent}/.well-known/agent.json", AgentRoute::Card),
];

const CHAT: [(&str, AgentRoute); 3] = [
    ("/api/chat", AgentRoute::Chat),
    ("/v1/runs", AgentRoute::Runs),
    ("/v1/runs/{id}", AgentRoute::Run),
];

impl Spec {
    /// Reads a configuration with single values replaced. Each override is `path=value`: the parts
    /// of the path are separated by dots, members of lists have their number, the value is YAML.
    /// `null` removes a key.
    ///
    /// # Errors
    /// [`GatewayError::Syntax`] for a text or an override that cannot be read, or an unknown path.
    pub fn with_overrides(text: &str, overrides: &[String]) -> Result<Self, GatewayError> {
        let spec = Self::from_yaml(text)?;
        if overrides.is_empty() {
            return Ok(spec);
        }
        let mut tree: Value =
            serde_saphyr::from_str(text).map_err(|error| syntax(yaml_error::describe(&error).0))?;
        let mut paths = Vec::new();
        for item in overrides {
            // Values may be keys: messages name paths only.
            let (path, value) = item.split_once('=').ok_or_else(|| {
                syntax("a setting has no `=`: write PATH=VALUE, like `server.body_bytes=1MiB`")
            })?;
            let refuse = |reason: &str| syntax(format!("setting `{path}`: {reason}"));
            let value = serde_saphyr::from_str(value)
                .map_err(|error| refuse(&yaml_error::describe(&error).0))?;
            put(&mut tree, path, value).map_err(|reason| refuse(&reason))?;
            paths.push(path);
        }
        serde_json::from_value(tree).map_err(|error| {
            let reason = yaml_error::without_values(&error.to_string());
            syntax(format!("after the settings of {}: {reason}", paths.join(", ")))
        })
    }
}

fn syntax(message: impl Into<String>) -> GatewayError {
    GatewayError::Syntax { message: message.into(), place: None }
}

fn no_member(part: &str) -> String {
    format!("`{part}` is not the number of a member of the list")
}

fn inside_plain(part: &str) -> String {
    format!("`{part}` is inside a plain value")
}

/// Sets, adds or removes the value at a path.
fn put(tree: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parents, last) =
        path.rsplit_once('.').map_or((None, path), |(parents, last)| (Some(parents), last));
    let mut node = tree;
    for part in parents.into_iter().flat_map(|parents| parents.split('.')) {
        node = step(node, part)?;
    }
    if node.is_null() {
        *node = Value::Object(Map::new());
    }
    match node {
        Value::Object(map) if value.is_null() => drop(map.remove(last)),
        Value::Object(map) => drop(map.insert(last.to_owned(), value)),
        Value::Array(list) => {
            let number: usize = last.parse().map_err(|_| no_member(last))?;
            let count = list.len();
            match list.get_mut(number) {
                Some(member) => *member = value,
                None if number == count => list.push(value),
                None => return Err(format!("the list has only {count} members")),
            }
        }
        _ => return Err(inside_plain(last)),
    }
    Ok(())
}

/// The member `part` of a node; a missing one is added to a map.
fn step<'a>(node: &'a mut Value, part: &str) -> Result<&'a mut Value, String> {
    if node.is_null() {
        *node = Value::Object(Map::new());
    }
    match node {
        Value::Object(map) => Ok(map.entry(part).or_insert(Value::Null)),
        Value::Array(list) => {
            let count = list.len();
            let number = part.parse().ok().filter(|number: &usize| *number < count);
            let number = number.ok_or_else(|| no_member(part))?;
            Ok(&mut list[number])
        }
        _ => Err(inside_plain(part)),
    }
}

/// Serves the requests of a route.
#[derive(Clone, Debug)]
pub(crate) enum Handler {
    Live,
    Health,
    Ready,
    Metrics,
    Build,
    Reload,
    Budget,
    /// `POST /api/request`.
    Policy,
    /// A route of the layer of agents.
    Agents(AgentRoute),
    /// Tools, over REST and MCP.
    Tools(ToolRoute),
    Fixed(FixedResponse),
    Proxy(Proxy),
    NotFound,
}

/// A configured response, the same for every request.
#[derive(Clone, Debug)]
pub(crate) struct FixedResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: HeaderValue,
    pub(crate) body: Bytes,
}

/// A route: its handler, and who may use it.
#[derive(Debug)]
pub(crate) struct Route {
    /// Name in audit rows and the access log.
    pub(crate) name: Arc<str>,
    /// The path as configured: the label in metrics, so that raw paths make no new series.
    pub(crate) template: Arc<str>,
    pub(crate) handler: Handler,
    pub(crate) access: Access,
    /// Neither keys nor limits apply.
    pub(crate) open: bool,
    /// Only those who may administrate are served.
    pub(crate) is_administration: bool,
}

impl Route {
    /// The route of all unknown paths: one series and one name, however many paths an attacker
    /// tries.
    pub(crate) fn not_found() -> Self {
        Self {
            name: Arc::from("none"),
            template: Arc::from("none"),
            handler: Handler::NotFound,
            access: Access::default(),
            open: true,
            is_administration: false,
        }
    }
}

/// All routes.
#[derive(Debug, Default)]
pub(crate) struct Router {
    routes: Vec<Arc<Route>>,
    paths: matchit::Router<usize>,
}

/// The value of the last parameter of a path, as in `/v1/budget/{tenant}`.
pub(crate) type Parameter = Option<String>;

impl Router {
    /// # Errors
    /// A message about a malformed path, or one that has a route already.
    pub(crate) fn add(&mut self, route: Route) -> Result<(), String> {
        let template = Arc::clone(&route.template);
        let number = self.routes.len();
        for path in patterns(&template) {
            self.paths
                .insert(path.clone(), number)
                .map_err(|error| format!("path `{template}`: {error}"))?;
        }
        self.routes.push(Arc::new(route));
        Ok(())
    }

    /// The route of a path. Parameters are only copied where there are some.
    pub(crate) fn find(&self, path: &str) -> Option<(&Arc<Route>, Parameter)> {
        let found = self.paths.at(path).ok()?;
        let parameter = found.params.iter().last().map(|(_, value)| value.to_owned());
        Some((self.routes.get(*found.value)?, parameter))
    }
}

/// Patterns for the router library: a prefix matches itself, with and without a slash, and all
/// paths below.
fn patterns(path: &str) -> Vec<String> {
    match path.strip_suffix("/*") {
        None => vec![path.to_owned()],
        Some("") => vec!["/".to_owned(), "/{*rest}".to_owned()],
        Some(prefix) => {
            vec![prefix.to_owned(), format!("{prefix}/"), format!("{prefix}/{{*rest}}")]
        }
    }
}

/// Whether a path matches one of the patterns: exactly, or as part of a prefix that ends in `/*`.
pub(crate) fn covers(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix("/*") {
        None => pattern == path,
        Some(prefix) => {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
    })
}

/// A route of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolRoute {
    /// The servers, for those who may administrate.
    Servers,
    /// The tools that the tenant may call.
    List,
    /// A call.
    Call,
    /// What a tenant may call.
    Policies,
    /// MCP over Streamable HTTP.
    Mcp,
    /// MCP without a handshake.
    Message,
}

impl ToolRoute {
    /// All routes with their paths.
    pub(crate) const PATHS: [(&'static str, Self); 6] = [
        ("/v1/mcp/servers", Self::Servers),
        ("/v1/mcp/tools", Self::List),
        ("/v1/mcp/tools/call", Self::Call),
        ("/v1/policies/{tenant}", Self::Policies),
        ("/mcp", Self::Mcp),
        ("/mcp/message", Self::Message),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: a\nrate_limits: [{per: global, requests: 600}]\nmetrics: {}\n";

    fn with(overrides: &[&str]) -> Result<Spec, String> {
        let overrides: Vec<_> = overrides.iter().map(|item| (*item).to_owned()).collect();
        Spec::with_overrides(TEXT, &overrides).map_err(|error| error.to_string())
    }

    #[test]
    fn overrides_replace_add_and_remove_values() {
        let spec = with(&[
            "name=b",
            "rate_limits.0.requests=0",
            "rate_limits.1={per: address, requests: 5}",
            "server.body_bytes=2MiB",
            "metrics=null",
            "auth={keys: [{name: x, key: abc}]}",
        ])
        .unwrap();
        assert_eq!((spec.name.as_str(), spec.server.body_bytes.0), ("b", 2 << 20));
        let requests: Vec<_> = spec.rate_limits.iter().map(|limit| limit.requests).collect();
        assert_eq!(requests, [0, 5]);
        assert!(spec.metrics.is_none() && spec.auth.is_some());
    }

    #[test]
    fn an_override_of_an_unknown_path_is_refused() {
        for (item, message) in [
            ("name", "PATH=VALUE"),
            ("nmae=b", "nmae"),
            ("rate_limits.7.requests=1", "`7`"),
            ("rate_limits.5={}", "only 1"),
            ("name.x=1", "plain value"),
            ("workers=many", "workers"),
        ] {
            let error = with(&[item]).unwrap_err();
            assert!(error.contains(message), "{item}: {error}");
        }
    }

    fn router(paths: &[&str]) -> Router {
        let mut router = Router::default();
        for path in paths {
            let route = Route {
                name: Arc::from(*path),
                template: Arc::from(*path),
                handler: Handler::Live,
                access: Access::default(),
                open: false,
                is_administration: false,
            };
            router.add(route).unwrap();
        }
        router
    }

    #[test]
    fn the_most_specific_route_is_found() {
        let router = router(&["/health", "/smoke/*", "/smoke/get", "/v1/budget/{tenant}", "/*"]);
        for (path, template, parameter) in [
            ("/health", "/health", None),
            ("/smoke", "/smoke/*", None),
            ("/smoke/", "/smoke/*", None),
            ("/smoke/a/b", "/smoke/*", Some("a/b")),
            ("/smoke/get", "/smoke/get", None),
            ("/v1/budget/retail", "/v1/budget/{tenant}", Some("retail")),
            ("/healthy", "/*", Some("healthy")),
            ("/", "/*", None),
        ] {
            let (route, found) = router.find(path).unwrap();
            assert_eq!((&*route.template, found.as_deref()), (template, parameter), "{path}");
        }
    }

    #[test]
    fn a_path_is_covered_exactly_or_by_its_prefix() {
        let open = ["/health".to_owned(), "/admin/*".to_owned()];
        for (path, covered) in [
            ("/health", true),
            ("/health/live", false),
            ("/admin", true),
            ("/admin/build", true),
            ("/administrator", false),
        ] {
            assert_eq!(covers(&open, path), covered, "{path}");
        }
    }
}
