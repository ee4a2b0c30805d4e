//! The configuration in force: checked, complete, immutable, and replaced as a whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::header::HeaderName;

use crate::assembly::check::Check;
use crate::assembly::router::{Route, Router};
use crate::assembly::spec::Spec;
use crate::config::error::GatewayError;
use crate::config::server::{EnvelopeSpec, ServerSpec};
use crate::config::{file, yaml_error};
use crate::http::error_response::ErrorFormat;
use crate::http::normal_form::OwnedHeaders;
use crate::layers::Layers;
use crate::layers::admin::AdminGate;
use crate::layers::auth::sha256;
use crate::layers::forwarded::TrustedProxies;
use crate::layers::policy::PolicyLayer;
use crate::layers::rate_limit::{self, RateLimit};
use crate::upstream::Upstream;

/// The configuration in force.
#[derive(Debug)]
pub(crate) struct Config {
    /// Digest of the values, shown by `/admin/build`.
    pub(crate) digest: String,
    /// Names of the enabled layers.
    pub(crate) layer_names: Vec<&'static str>,
    /// The layers in force.
    pub(crate) layers: Layers,
    pub(crate) server: ServerSpec,
    pub(crate) error_format: ErrorFormat,
    pub(crate) trusted_proxies: TrustedProxies,
    /// Access to the administration.
    pub(crate) admin: AdminGate,
    /// The headers that the gateway itself reads or sets.
    pub(crate) owned_headers: OwnedHeaders,
    pub(crate) limits: Vec<RateLimit>,
    /// Digest of the settings of policy and scrub. Answers cached under other settings are not
    /// served.
    pub(crate) text_rules: [u8; 32],
    pub(crate) router: Router,
    /// The routes of the address of the administration.
    pub(crate) admin_router: Router,
    /// The route of unknown paths.
    pub(crate) not_found_route: Arc<Route>,
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    /// Maximum bytes that wait for a client after the ones being written: three times the largest
    /// buffer of the upstreams.
    pub(crate) upstream_buffer: usize,
    /// The most bytes that wait for a client after the current write: three of the largest buffer
    /// of the upstreams.
    pub(crate) observes_requests: bool,
    pub(crate) spec: Spec,
}

/// Whether finished requests are measured or logged.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A value that the embedding program passed in.
    Given,
    /// A file.
    File(PathBuf),
}

impl Spec {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`GatewayError::Syntax`] with line, column and the known keys; [`GatewayError::Empty`].
    pub fn from_yaml(text: &str) -> Result<Self, GatewayError> {
        let has_content = text
            .lines()
            .map(str::trim_start)
            .any(|line| !(line.is_empty() || line.starts_with('#') || line.starts_with("---")));
        if !has_content {
            return Err(GatewayError::Empty);
        }
        serde_saphyr::from_str(text).map_err(|error| {
            let (message, place) = yaml_error::describe(&error);
            GatewayError::Syntax { message, place }
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`GatewayError::File`] for an unreadable file, or an error of [`Spec::from_yaml`].
    pub fn open(path: &Path) -> Result<Self, GatewayError> {
        let text = file::read_text(path)
            .map_err(|source| GatewayError::File { path: path.to_owned(), source })?;
        Self::from_yaml(&text).map_err(|error| match error {
            GatewayError::Syntax { message, place } => {
                GatewayError::Syntax { message: format!("{}: {message}", path.display()), place }
            }
            other => other,
        })
    }

    /// Checks the values without opening or starting anything.
    ///
    /// # Errors
    /// [`GatewayError::Config`] with all invalid values.
    pub fn check(&self) -> Result<(), GatewayError> {
        Config::new(self).map(drop)
    }
}

impl Config {
    /// # Errors
    /// [`GatewayError::Config`] with all invalid values.
    pub(crate) fn new(spec: &Spec) -> Result<Self, GatewayError> {
        let mut check = Check::default();
        let admin = check.keep(AdminGate::new(&spec.admin));
        let upstreams: Vec<_> = spec
            .upstreams
            .iter()
            .filter_map(|(name, spec)| check.keep(Upstream::new(name, spec)).map(Arc::new))
            .collect();
        let layers = check.layers(spec, &upstreams);
        let limits = check.keep(rate_limit::from_specs(&spec.rate_limits)).unwrap_or_default();
        let trusted_proxies = check.keep(TrustedProxies::parse(&spec.trusted_proxies));
        check.values(spec);
        check.headers(&layers.headers());
        let router = check.routes(spec, &upstreams);
        let admin_router = check.admin_routes(spec);
        check.finish()?;
        let Some(admin) = admin else { return Err(GatewayError::Config(Vec::new())) };
        Ok(Self {
            admin,
            owned_headers: OwnedHeaders::new(layers.headers()),
            digest: digest_of(spec),
            text_rules: text_rules(spec, layers.policy.as_ref()),
            layer_names: spec.layers(),
            server: spec.server,
            error_format: match spec.envelope {
                EnvelopeSpec::Typed => ErrorFormat::Typed,
                EnvelopeSpec::Plain => ErrorFormat::Plain,
            },
            trusted_proxies: trusted_proxies.unwrap_or_default(),
            limits,
            router,
            admin_router,
            not_found_route: Arc::new(Route::not_found()),
            upstreams,
            upstream_buffer: upstream_buffer(spec),
            observes_requests: layers.observe(),
            layers,
            spec: spec.clone(),
        })
    }

    /// The header with the id of a request, if configured.
    pub(crate) fn request_id(&self) -> Option<&HeaderName> {
        self.layers.request_id.as_ref().map(|layer| &layer.header)
    }
}

/// Three of the largest buffer of the upstreams: one waits, one is being filled, and one covers the
/// rounding of allocators.
fn upstream_buffer(spec: &Spec) -> usize {
    let buffers = spec.upstreams.values().map(|spec| spec.buffer.0.saturating_mul(3));
    usize::try_from(buffers.max().unwrap_or(0)).unwrap_or(usize::MAX)
}

/// SHA-256 of the configuration's debug form, cut to 16 digits. Secrets show as `[redacted]`.
fn digest_of(spec: &Spec) -> String {
    let hash = sha256(format!("{spec:?}").as_bytes());
    let start = hash.first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
    format!("{start:016x}")
}

/// SHA-256 of everything that determines how layers treat texts: their settings, and the rules of a
/// file.
fn text_rules(spec: &Spec, policy: Option<&PolicyLayer>) -> [u8; 32] {
    let rules = policy.and_then(PolicyLayer::rules_digest);
    let all = format!("{:?} {} {rules:?}", spec.text_sections(), spec.faults.policy_off);
    sha256(all.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error =
            Spec::from_yaml("name: x\nadmin: {}\nrate_limit: []\n").unwrap_err().to_string();
        assert!(error.contains("rate_limit") && error.contains("line 3"), "{error}");
    }

    #[test]
    fn all_invalid_values_are_reported_at_once() {
        let text = "
workers: 0
budgets: {}
rate_limits: [{per: tenant, requests: 5}]
upstreams: {a: {addresses: []}, b: {addresses: ['nowhere']}, c: {addresses: ['127.0.0.1:1']}}
routes:
  - {name: r1, path: /x, upstream: z}
  - {name: r2, path: /x}
  - {name: r3, path: /y, upstream: c, consumers: [acme]}
  - {name: r4, path: /health, upstream: c}
";
        let spec = Spec::from_yaml(text).unwrap();
        let GatewayError::Config(problems) = Config::new(&spec).unwrap_err() else { panic!() };
        for message in [
            "workers",
            "budgets",
            "per tenant",
            "`a` has no address",
            "`b`: its address 1 is not HOST:PORT",
            "unknown upstream `z`",
            "`r2` needs either",
            "`r3`: `consumers`",
            "`r4`",
        ] {
            let found = problems.iter().any(|problem| problem.contains(message));
            assert!(found, "{message}: {problems:#?}");
        }
    }

    #[test]
    fn a_rule_that_needs_an_identity_cannot_be_without_one() {
        let head = "upstreams: {u: {addresses: ['127.0.0.1:1']}}\n";
        for (text, message) in [
            (
                "cache: {}\nopen: [/x]\nroutes: [{name: r, path: /x, upstream: u, llm: true}]",
                "`r`: `open`",
            ),
            (
                "auth: {keys: []}\nopen: [/x/*]\nroutes: [{name: r, path: /x/y, upstream: u, consumers: [a]}]",
                "`r`: `open`",
            ),
            (
                "policy: {endpoint: true}\ntenant: {}\nbudgets: {}\nopen: [/api/request]",
                "open: it covers `/api/request`",
            ),
            ("routes: [{name: r, path: /x, upstream: u, scope: s}]", "`r`: `scope`"),
            (
                "routes: [{name: r, path: '/x//y', upstream: u}]",
                "`r`: `path` is not in normal form",
            ),
            ("tenant: {claim: t, secret: ''}", "secret is empty"),
            ("tenant: {required: true, anonymous: true}", "exclude each other"),
            ("admin: {key: ''}", "secret is empty"),
        ] {
            let spec = Spec::from_yaml(&format!("{head}{text}")).unwrap();
            let error = Config::new(&spec).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn a_rule_that_can_never_match_and_open_administration_are_refused() {
        let keys = "auth: {header: apikey, keys: [{name: a, key: k, tenant: t, scopes: [s]}]}";
        let route =
            |rest: &str| format!("{keys}\nroutes: [{{name: r, path: /x, respond: {{}}, {rest}}}]");
        for (text, message) in [
            (
                route("consumers: [a, b]"),
                Some("`consumers` has `b`, but the keys of `auth` are: a"),
            ),
            (route("consumers: [a]"), None),
            (route("scope: other"), Some("no key of `auth` has the scope `other`")),
            (route("scope: s"), None),
            ("open: [/nowhere]".to_owned(), Some("`/nowhere` covers no route")),
            ("open: [/health]".to_owned(), None),
            (
                format!("{keys}\ntenant: {{}}\nbudgets: {{tenants: {{u: 1}}}}"),
                Some("has `u`, but no key"),
            ),
            (format!("{keys}\ntenant: {{}}\nbudgets: {{tenants: {{t: 1}}}}"), None),
            ("tenant: {}\nbudgets: {tenants: {u: 1}}".to_owned(), None),
            (
                format!("{keys}\ntenant: {{}}\ntools: {{allow: {{'*': [], u: []}}}}"),
                Some("has `u`, but no key"),
            ),
            (
                "listen: '0.0.0.0:80'\nadmin: {local: true}".to_owned(),
                Some("every proxy on this machine"),
            ),
            ("listen: '0.0.0.0:80'\nadmin: {local: true, key: k}".to_owned(), None),
            ("listen: '127.0.0.1:80'\nadmin: {local: true}".to_owned(), None),
        ] {
            let found = Config::new(&Spec::from_yaml(&text).unwrap()).err();
            let found = found.map(|error| error.to_string());
            let fits = match (&found, message) {
                (Some(found), Some(message)) => found.contains(message),
                (found, message) => found.is_none() && message.is_none(),
            };
            assert!(fits, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_websocket_that_a_layer_must_read_and_cannot_is_refused() {
        let config = |layers: &str, route: &str| {
            let upstream = "upstreams: {u: {addresses: ['127.0.0.1:1']}}";
            let route = format!("{{name: ws, upstream: u, websocket: true, {route}}}");
            let text = format!("{layers}\n{upstream}\nroutes:\n  - {route}\n");
            let error = Config::new(&Spec::from_yaml(&text).unwrap()).err();
            error.map(|error| error.located(&text).to_string())
        };
        let passed = "path: /ws/*";
        for (layers, route, message) in [
            ("scrub: {}", passed, Some("line 4: route `ws`: `scrub` cannot read the messages")),
            ("scrub: {unreadable: refuse}", passed, Some("`scrub` cannot read")),
            ("scrub: {unreadable: pass}", passed, None),
            ("", "path: /ws/chat, llm: true", Some("`llm` and `websocket` exclude each other")),
            ("cache: {}", passed, None),
            ("policy: {}", passed, None),
            (
                "policy: {}",
                "path: '/*'",
                Some("`policy` cannot read the messages of a WebSocket to `/v1/"),
            ),
            ("policy: {}", "path: /v1/realtime", Some("a WebSocket to `/v1/realtime`:")),
            ("tenant: {}\nbudgets: {}", "path: /v1/*", Some("`budgets` cannot read")),
            ("policy: {}", "path: /o/*, strip: /o", Some("`policy` cannot read")),
        ] {
            let found = config(layers, route);
            let fits = match (&found, message) {
                (Some(found), Some(message)) => found.contains(message),
                (found, message) => found.is_none() && message.is_none(),
            };
            assert!(fits, "{layers}, {route}: {found:?}");
        }
    }

    #[test]
    fn values_that_cannot_mean_anything_are_refused_with_their_line() {
        let upstream =
            |rest: &str| format!("upstreams:\n  u: {{addresses: ['127.0.0.1:1'], {rest}}}");
        let route = |rest: &str| {
            format!(
                "upstreams: {{u: {{addresses: ['127.0.0.1:1']}}}}\nroutes:\n  - {{name: r, {rest}}}"
            )
        };
        for (text, message) in [
            ("workers: 0".to_owned(), "line 1: workers: must be greater than 0"),
            ("server: {header_timeout: 0s}".to_owned(), "server: `header_timeout` must"),
            ("server:\n  memory: 0".to_owned(), "line 2: server: `memory` must be greater"),
            ("server: {body_bytes: 0}".to_owned(), "`body_bytes` must"),
            ("server: {websocket_timeout: 0}".to_owned(), "`websocket_timeout` must"),
            ("server: {owner_memory: 0}".to_owned(), "`owner_memory` must"),
            ("store: {timeout: 0}".to_owned(), "store: `timeout` must"),
            ("cache: {ttl: 0}".to_owned(), "cache: `ttl` must"),
            ("cache: {bytes: 0}".to_owned(), "cache: `bytes` must"),
            ("tenant: {}\nbudgets: {max_tokens: 0}".to_owned(), "budgets: `max_tokens` must"),
            ("tenant: {}\nbudgets: {usd_per_1k_prompt: -1}".to_owned(), "`usd_per_1k_prompt` must"),
            ("tools: {session_timeout: 0}".to_owned(), "tools: `session_timeout` must"),
            ("tools: {result_bytes: 0}".to_owned(), "tools: `result_bytes` must"),
            ("rate_limits: [{per: global, requests: 1, window: 0s}]".to_owned(), "`window` must"),
            (upstream("timeout: 0"), "line 2: upstream `u`: `timeout` must"),
            (upstream("connect_timeout: 0"), "`connect_timeout` must"),
            (upstream("idle_timeout: 0"), "`idle_timeout` must"),
            (upstream("retry: {attempts: 0}"), "`retry.attempts` must"),
            (upstream("retry: {budget: -1}"), "`retry.budget` is a share"),
            (upstream("breaker: {failures: 0}"), "`breaker.failures` must"),
            (
                "upstreams: {u: {addresses: ['a:1', 'a:1']}}".to_owned(),
                "an address is listed twice",
            ),
            (route("path: /x, upstream: u, timeout: 0"), "route `r`: `timeout` must"),
            (route("path: /x/*, upstream: u, strip: /y"), "`strip` is not the beginning"),
            (route("path: /x, respond: {}, llm: true"), "`llm` does nothing beside `respond`"),
            (route("path: /x, respond: {}, strip: /x"), "`strip` does nothing beside `respond`"),
            (
                route("path: /x, respond: {}}\n  - {name: r, path: /y, respond: {}"),
                "route `r`: is empty, or",
            ),
            (
                "auth: {keys: [{name: a, key: x}, {name: a, key: y}]}".to_owned(),
                "the key `a`: is empty, or",
            ),
            ("open: [x]".to_owned(), "open: `x` does not begin with `/`"),
            ("audit: {path: a, queue: 0}".to_owned(), "audit: "),
            ("audit: {path: a, flush: 0}".to_owned(), "audit: "),
            ("audit: {path: a}\naccess_log: {path: a}".to_owned(), "access_log: is the same file"),
            (
                "listen: '127.0.0.1:9'\nadmin: {listen: '127.0.0.1:9'}".to_owned(),
                "admin.listen: is the same address",
            ),
            ("upstreams: {u: {addresses: ['127.0.0.1:0']}}".to_owned(), "is not HOST:PORT"),
            (upstream("key: ''"), "a key or secret is empty"),
            ("auth: {keys: [{name: a, key: ''}]}".to_owned(), "a key or secret is empty"),
            (route("path: /x, respond: {status: 101}"), "is not a final status"),
            (route("path: /x, respond: {status: 204, body: a}"), "has no `body`"),
            ("tenant: {header: host}".to_owned(), "is not a header name that a client may"),
            ("request_id: {header: te}".to_owned(), "is not a header name that a client may"),
            ("auth: {header: x-http-method, keys: []}".to_owned(), "is not a header name that"),
            (
                "tenant: {header: x-id}\nrequest_id: {header: x-id}".to_owned(),
                "the header `x-id`: is empty, or",
            ),
        ] {
            let error = Config::new(&Spec::from_yaml(&text).unwrap()).unwrap_err().located(&text);
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
        for text in ["server: {owner_memory: 1}", "workers: 1", "cache: {wait: 0}"] {
            Config::new(&Spec::from_yaml(text).unwrap()).unwrap();
        }
    }

    #[test]
    fn a_section_enables_its_layer() {
        let spec = Spec::from_yaml(
            "metrics: {}\nrequest_id: {}\nrate_limits: [{per: global, requests: 0}]",
        )
        .unwrap();
        assert_eq!(spec.layers(), ["request_id", "metrics"]);
    }
}
