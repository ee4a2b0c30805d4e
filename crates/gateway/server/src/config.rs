//! The configuration in force: checked, complete, never changed, only replaced as a whole.

pub(crate) mod check;
pub(crate) mod overrides;
pub(crate) mod preset;
pub mod spec;
pub(crate) mod units;
pub(crate) mod yaml_error;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::header::HeaderName;
use ring::digest::{SHA256, digest};

use crate::config::check::Check;
use crate::config::spec::{FaultSpec, ServerSpec, Spec};
use crate::error::GatewayError;
use crate::http::error_response::ErrorFormat;
use crate::http::normal_form::OwnedHeaders;
use crate::layers::admin::AdminGate;
use crate::layers::agent_layer::{AgentLayer, PATH_HEADER, VERSION_HEADER};
use crate::layers::auth::Auth;
use crate::layers::budget::Budgets;
use crate::layers::cors::Cors;
use crate::layers::forwarded::TrustedProxies;
use crate::layers::policy::PolicyLayer;
use crate::layers::rate_limit::{self, RateLimit};
use crate::layers::scrub::Scrub;
use crate::layers::tenant::TenantRule;
use crate::layers::tool_server::ToolLayer;
use crate::routes::router::{Route, Router};
use crate::upstream::Upstream;

/// The configuration in force.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) name: String,
    /// Digest of the values, shown by `/admin/build`.
    pub(crate) digest: String,
    pub(crate) layers: Vec<&'static str>,
    pub(crate) server: ServerSpec,
    pub(crate) error_format: ErrorFormat,
    pub(crate) request_id: Option<HeaderName>,
    pub(crate) metrics: bool,
    /// Who may administrate.
    pub(crate) admin: AdminGate,
    /// The headers that the gateway itself reads or sets.
    pub(crate) owned_headers: OwnedHeaders,
    /// Proxies whose word about the client counts.
    pub(crate) trusted_proxies: TrustedProxies,
    /// Which pages of other origins may ask.
    pub(crate) cors: Option<Cors>,
    pub(crate) auth: Option<Auth>,
    pub(crate) tenant: Option<TenantRule>,
    pub(crate) limits: Vec<RateLimit>,
    pub(crate) budgets: Option<Arc<Budgets>>,
    pub(crate) policy: Option<PolicyLayer>,
    pub(crate) scrub: Option<Scrub>,
    pub(crate) agents: Option<Arc<AgentLayer>>,
    pub(crate) tools: Option<ToolLayer>,
    /// Digest of what policy and scrub do with texts. Cached answers of other rules are not served.
    pub(crate) text_rules: [u8; 32],
    pub(crate) router: Router,
    /// The routes of the address of the administration.
    pub(crate) admin_router: Router,
    /// The route of unknown paths.
    pub(crate) not_found_route: Arc<Route>,
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    /// The most that waits for a client behind what is written: three of the largest buffer of
    /// the upstreams.
    pub(crate) upstream_buffer: usize,
    pub(crate) faults: FaultSpec,
    /// Whether finished requests are measured or logged.
    pub(crate) observes_requests: bool,
    pub(crate) spec: Spec,
}

/// The source of a configuration, for reading it again.
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
    /// [`GatewayError::File`] for an unreadable file, and those of [`Spec::from_yaml`].
    pub fn open(path: &Path) -> Result<Self, GatewayError> {
        let text = fs::read_to_string(path)
            .map_err(|source| GatewayError::File { path: path.to_owned(), source })?;
        Self::from_yaml(&text).map_err(|error| match error {
            GatewayError::Syntax { message, place } => {
                GatewayError::Syntax { message: format!("{}: {message}", path.display()), place }
            }
            other => other,
        })
    }

    /// Checks the values; nothing is opened or started.
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
        let auth = check.layer(spec.auth.as_ref(), Auth::new);
        let cors = check.layer(spec.cors.as_ref(), Cors::new);
        let tenant = check.layer(spec.tenant.as_ref(), TenantRule::new);
        let upstreams: Vec<_> = spec
            .upstreams
            .iter()
            .filter_map(|(name, spec)| check.keep(Upstream::new(name, spec)).map(Arc::new))
            .collect();
        let request_id = check.request_id(spec);
        let limits = check.keep(rate_limit::from_specs(&spec.rate_limits)).unwrap_or_default();
        let budgets = check.layer(spec.budgets.as_ref(), Budgets::new);
        let off = spec.faults.policy_off;
        let policy = check.layer(spec.policy.as_ref(), |policy| PolicyLayer::new(policy, off));
        let scrub = check.layer(spec.scrub.as_ref(), Scrub::new);
        let agents =
            check.layer(spec.agents.as_ref(), |agents| AgentLayer::new(agents, &upstreams));
        let tools = check.layer(spec.tools.as_ref(), ToolLayer::new);
        let trusted_proxies = check.keep(TrustedProxies::parse(&spec.trusted_proxies));
        check.values(spec);
        let router = check.routes(spec, &upstreams);
        let admin_router = check.admin_routes(spec);
        let bypass = check.bypass_header(spec);
        let own = [auth.as_ref().map(Auth::header), tenant.as_ref().map(TenantRule::header)];
        let own = own.into_iter().flatten().cloned();
        let own = own.chain(agents.iter().flat_map(|_| [&PATH_HEADER, &VERSION_HEADER]).cloned());
        let owned_headers = OwnedHeaders::new(own.chain(request_id.clone()).chain(bypass));
        check.finish()?;
        let Some(admin) = admin else { return Err(GatewayError::Config(Vec::new())) };
        Ok(Self {
            admin,
            owned_headers,
            trusted_proxies: trusted_proxies.unwrap_or_default(),
            name: spec.name.clone(),
            digest: digest_of(spec),
            text_rules: text_rules(spec, policy.as_ref()),
            layers: spec.layers(),
            server: spec.server,
            error_format: spec.envelope.into(),
            request_id,
            metrics: spec.metrics.is_some(),
            cors,
            auth,
            tenant,
            limits,
            budgets: budgets.map(Arc::new),
            policy,
            scrub,
            agents: agents.map(Arc::new),
            tools,
            router,
            admin_router,
            not_found_route: Arc::new(Route::not_found()),
            upstreams,
            upstream_buffer: upstream_buffer(spec),
            faults: spec.faults,
            observes_requests: observes_requests(spec),
            spec: spec.clone(),
        })
    }

    /// Whether a layer reads the text of responses.
    pub(crate) const fn reads_responses(&self) -> bool {
        self.observes_requests
            || self.budgets.is_some()
            || self.scrub.is_some()
            || self.policy.is_some()
    }
}

/// Whether finished requests are measured or logged.
const fn observes_requests(spec: &Spec) -> bool {
    spec.metrics.is_some() || spec.audit.is_some() || spec.access_log.is_some()
}

/// Three of the largest buffer of the upstreams: one waits, one is read into, and one is for what
/// allocators round up.
fn upstream_buffer(spec: &Spec) -> usize {
    let buffers = spec.upstreams.values().map(|spec| spec.buffer.0.saturating_mul(3));
    usize::try_from(buffers.max().unwrap_or(0)).unwrap_or(usize::MAX)
}

/// SHA-256 of the configuration's debug form, cut to 16 digits. Secrets show as `[redacted]`.
fn digest_of(spec: &Spec) -> String {
    let hash = digest(&SHA256, format!("{spec:?}").as_bytes());
    let start = hash.as_ref().first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
    format!("{start:016x}")
}

/// SHA-256 of all that decides what policy and scrub do: their settings, and the rules of a file.
fn text_rules(spec: &Spec, policy: Option<&PolicyLayer>) -> [u8; 32] {
    let rules = policy.and_then(PolicyLayer::rules_digest);
    let all = format!("{:?} {:?} {} {rules:?}", spec.scrub, spec.policy, spec.faults.policy_off);
    let mut text_rules = [0; 32];
    text_rules.copy_from_slice(digest(&SHA256, all.as_bytes()).as_ref());
    text_rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error =
            Spec::from_yaml("name: x\nadmin: true\nrate_limit: []\n").unwrap_err().to_string();
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
            "no upstream `z`",
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
            ("tenant: {claim: t, secret: ''}", "the secret is empty"),
            ("tenant: {required: true, anonymous: true}", "exclude each other"),
            ("admin: {key: ''}", "the key is empty"),
        ] {
            let spec = Spec::from_yaml(&format!("{head}{text}")).unwrap();
            let error = Config::new(&spec).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
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
