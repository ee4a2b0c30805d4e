//! The configuration in force: checked, complete and never changed, only replaced as a whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};

use crate::auth::Auth;
use crate::budget::Budgets;
use crate::error::GatewayError;
use crate::guard::{self, Guard};
use crate::limits;
use crate::refusal::Voice;
use crate::router::{Fixed, Handler, Proxy, Route, Router, covers};
use crate::spec::{FaultSpec, RespondSpec, RouteSpec, ServerSpec, Spec};
use crate::tenant::TenantRule;
use crate::upstream::Upstream;

/// The configuration in force.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) name: String,
    /// Digest of the text it was read from, or of its debug form.
    pub(crate) digest: String,
    pub(crate) layers: Vec<&'static str>,
    pub(crate) server: ServerSpec,
    pub(crate) voice: Voice,
    pub(crate) request_id: Option<HeaderName>,
    pub(crate) metrics: bool,
    pub(crate) auth: Option<Auth>,
    pub(crate) tenant: Option<TenantRule>,
    pub(crate) limits: Vec<limits::Shared>,
    pub(crate) budgets: Option<Budgets>,
    pub(crate) guard: Option<Guard>,
    /// The rules by which answers are scrubbed.
    pub(crate) scrub: Option<Arc<plimsoll_gateway_policy::Policy>>,
    pub(crate) router: Router,
    /// For paths that lead nowhere.
    pub(crate) stray: Arc<Route>,
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    pub(crate) faults: FaultSpec,
    /// Is a request looked at when it is over?
    pub(crate) records: bool,
    pub(crate) spec: Spec,
}

impl Spec {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`GatewayError::Syntax`] with line, column and what is known, for what cannot be read.
    pub fn from_yaml(text: &str) -> Result<Self, GatewayError> {
        serde_saphyr::from_str(text).map_err(|error| GatewayError::Syntax(error.to_string()))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`GatewayError::File`] where there is none, and those of [`Spec::from_yaml`].
    pub fn open(path: &Path) -> Result<Self, GatewayError> {
        let text = fs::read_to_string(path)
            .map_err(|source| GatewayError::File { path: path.to_owned(), source })?;
        Self::from_yaml(&text)
            .map_err(|error| GatewayError::Syntax(format!("{}: {error}", path.display())))
    }

    /// Checks the values; nothing is opened or started.
    ///
    /// # Errors
    /// [`GatewayError::Config`] with all that makes no sense.
    pub fn check(&self) -> Result<(), GatewayError> {
        Config::new(self).map(drop)
    }
}

impl Config {
    /// # Errors
    /// [`GatewayError::Config`] with all that makes no sense.
    pub(crate) fn new(spec: &Spec) -> Result<Self, GatewayError> {
        let mut check = Check { problems: Vec::new() };
        let auth = check.keep(spec.auth.as_ref().map(Auth::new).transpose()).flatten();
        let tenant = check.keep(spec.tenant.as_ref().map(TenantRule::new).transpose()).flatten();
        let upstreams: Vec<_> = spec
            .upstreams
            .iter()
            .filter_map(|(name, spec)| check.keep(Upstream::new(name, spec)).map(Arc::new))
            .collect();
        let request_id = spec.request_id.as_ref().and_then(|id| {
            let name = HeaderName::try_from(&id.header);
            check.keep(
                name.map_err(|_| format!("request_id: `{}` is no name of a header", id.header)),
            )
        });
        let limits = check.keep(limits::read(&spec.rate_limits)).unwrap_or_default();
        let budgets = check.keep(spec.budgets.as_ref().map(Budgets::new).transpose()).flatten();
        let guard = check.keep(spec.policy.as_ref().map(Guard::new).transpose()).flatten();
        let scrub = check.keep(spec.scrub.map(|_| guard::builtin()).transpose()).flatten();
        check.spec(spec);
        let router = check.routes(spec, &upstreams);
        if !check.problems.is_empty() {
            return Err(GatewayError::Config(check.problems));
        }
        Ok(Self {
            name: spec.name.clone(),
            digest: fingerprint(spec),
            layers: spec.layers(),
            server: spec.server,
            voice: spec.envelope.into(),
            request_id,
            metrics: spec.metrics.is_some(),
            auth,
            tenant,
            limits,
            budgets,
            guard,
            scrub,
            router,
            stray: Arc::new(Route::nowhere()),
            upstreams,
            faults: spec.faults,
            records: spec.metrics.is_some() || spec.audit.is_some() || spec.access_log.is_some(),
            spec: spec.clone(),
        })
    }
}

impl Config {
    /// Does a layer read the text of answers?
    pub(crate) const fn looks_into_answers(&self) -> bool {
        self.records || self.budgets.is_some() || self.scrub.is_some() || self.guard.is_some()
    }
}

impl Spec {
    /// Names of the layers that are switched on.
    pub fn layers(&self) -> Vec<&'static str> {
        let layers = [
            ("request_id", self.request_id.is_some()),
            ("access_log", self.access_log.is_some()),
            ("metrics", self.metrics.is_some()),
            ("auth", self.auth.is_some()),
            ("consumer_restriction", self.routes.iter().any(|route| !route.consumers.is_empty())),
            ("tenant", self.tenant.is_some()),
            ("rate_limits", self.rate_limits.iter().any(|limit| limit.requests > 0)),
            ("scrub", self.scrub.is_some()),
            ("policy", self.policy.is_some()),
            ("cache", self.cache.is_some()),
            ("budgets", self.budgets.is_some()),
            ("audit", self.audit.is_some()),
            ("tls", self.tls.is_some()),
        ];
        layers.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
    }

    /// Names of the faults that are planted.
    pub fn faults(&self) -> Vec<&'static str> {
        let faults = &self.faults;
        let planted = [
            ("delay", faults.delay.nanos() > 0),
            ("error_share", faults.error_share > 0.0),
            ("reset_share", faults.reset_share > 0.0),
            ("stall_share", faults.stall_share > 0.0),
            ("pause", faults.pause.is_some()),
            ("leak", faults.leak_bytes.0 > 0),
            ("buffer_streams", faults.buffer_streams),
            ("policy_off", faults.policy_off),
            ("limiter_open", faults.limiter_open),
            ("audit_drop_share", faults.audit_drop_share > 0.0),
        ];
        planted.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
    }
}

/// SHA-256 of what the configuration says, cut to 16 digits. Secrets show as `[redacted]`.
fn fingerprint(spec: &Spec) -> String {
    let hash = digest(&SHA256, format!("{spec:?}").as_bytes());
    let start = hash.as_ref().first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
    format!("{start:016x}")
}

struct Check {
    problems: Vec<String>,
}

impl Check {
    fn keep<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn require(&mut self, holds: bool, problem: &str) {
        if !holds {
            self.problems.push(problem.to_owned());
        }
    }

    fn spec(&mut self, spec: &Spec) {
        let shares = &spec.faults;
        let shares =
            [shares.error_share, shares.reset_share, shares.stall_share, shares.audit_drop_share];
        self.require(
            shares.iter().all(|share| (0.0..=1.0).contains(share)),
            "faults: a share is between 0 and 1",
        );
        self.require(spec.workers > 0, "workers: at least 1");
        self.require(spec.server.connections > 0, "server.connections: at least 1");
        self.require(
            spec.server.header_bytes.0 >= 8_192,
            "server.header_bytes: at least 8KiB, the smallest buffer for a head",
        );
        self.require(
            spec.audit
                .as_ref()
                .is_none_or(|audit| audit.path.is_some() != audit.clickhouse.is_some()),
            "audit: needs either `path` or `clickhouse`",
        );
        self.require(
            spec.rate_limits.iter().all(|limit| limit.window.nanos() > 0),
            "rate_limits: a window is longer than 0",
        );
        let by_tenant = spec.rate_limits.iter().any(|limit| limit.per == crate::spec::Per::Tenant);
        self.require(
            !by_tenant || spec.tenant.is_some(),
            "rate_limits: a limit per tenant needs the section `tenant`",
        );
        let by_key = spec.rate_limits.iter().any(|limit| limit.per == crate::spec::Per::Key);
        self.require(
            !by_key || spec.auth.is_some(),
            "rate_limits: a limit per key needs the section `auth`",
        );
        self.require(
            spec.budgets.is_none() || spec.tenant.is_some(),
            "budgets: are the tenants', so they need the section `tenant`",
        );
    }

    fn routes(&mut self, spec: &Spec, upstreams: &[Arc<Upstream>]) -> Router {
        let mut router = Router::default();
        for (path, handler) in own_routes(spec) {
            let route = Route {
                name: Arc::from(path),
                template: Arc::from(path),
                handler,
                consumers: Vec::new(),
                scope: None,
                open: covers(&spec.open, path),
            };
            self.keep(router.add(route));
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

    fn route(
        &mut self,
        spec: &Spec,
        route: &RouteSpec,
        upstreams: &[Arc<Upstream>],
    ) -> Option<Route> {
        self.require(
            route.consumers.is_empty() || spec.auth.is_some(),
            &format!("route `{}`: `consumers` needs the section `auth`", route.name),
        );
        let handler = self.keep(handler(route, upstreams))?;
        Some(Route {
            name: Arc::from(route.name.as_str()),
            template: Arc::from(route.path.as_str()),
            handler,
            consumers: route.consumers.iter().map(|name| Arc::from(name.as_str())).collect(),
            scope: route.scope.clone(),
            open: covers(&spec.open, &route.path),
        })
    }
}

/// What the gateway itself serves.
fn own_routes(spec: &Spec) -> Vec<(&'static str, Handler)> {
    let policy = spec.policy.as_ref().is_some_and(|policy| policy.endpoint);
    let routes = [
        ("/health", Handler::Health, true),
        ("/health/live", Handler::Live, true),
        ("/health/ready", Handler::Ready, true),
        ("/metrics", Handler::Metrics, spec.metrics.is_some()),
        ("/admin/build", Handler::Build, spec.admin),
        ("/admin/reload", Handler::Reload, spec.admin),
        ("/v1/budget/{tenant}", Handler::Budget, spec.budgets.is_some()),
        ("/api/request", Handler::Request, policy),
    ];
    routes.into_iter().filter(|(_, _, on)| *on).map(|(path, handler, _)| (path, handler)).collect()
}

fn handler(route: &RouteSpec, upstreams: &[Arc<Upstream>]) -> Result<Handler, String> {
    let name = &route.name;
    match (&route.upstream, &route.respond) {
        (None, Some(respond)) => fixed(respond).map(Handler::Fixed),
        (Some(wanted), None) => {
            let upstream = upstreams.iter().find(|upstream| *upstream.name == **wanted);
            let upstream = upstream.ok_or_else(|| {
                let known: Vec<_> = upstreams.iter().map(|upstream| &*upstream.name).collect();
                format!(
                    "route `{name}`: there is no upstream `{wanted}`, only: {}",
                    known.join(", ")
                )
            })?;
            Ok(Handler::Proxy(Proxy {
                upstream: Arc::clone(upstream),
                strip: route.strip.clone(),
                timeout: route.timeout.unwrap_or(upstream.timeout),
                llm: route.llm,
                websocket: route.websocket,
            }))
        }
        _ => Err(format!("route `{name}` needs either `upstream` or `respond`")),
    }
}

fn fixed(respond: &RespondSpec) -> Result<Fixed, String> {
    Ok(Fixed {
        status: StatusCode::from_u16(respond.status)
            .map_err(|_| format!("{} is no HTTP status", respond.status))?,
        kind: HeaderValue::from_str(&respond.content_type)
            .map_err(|_| format!("`{}` is no content type", respond.content_type))?,
        body: Bytes::from(respond.body.clone()),
    })
}

/// Where a configuration came from, so that it can be read again.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Nowhere: it was handed over.
    Given,
    /// A file.
    File(PathBuf),
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
    fn all_that_makes_no_sense_is_told_at_once() {
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
        for said in [
            "workers",
            "budgets",
            "per tenant",
            "`a` has no address",
            "`nowhere`",
            "no upstream `z`",
            "`r2` needs either",
            "`r3`: `consumers`",
            "`r4`",
        ] {
            assert!(problems.iter().any(|problem| problem.contains(said)), "{said}: {problems:#?}");
        }
    }

    #[test]
    fn a_section_that_is_present_is_a_layer_that_is_on() {
        let spec = Spec::from_yaml(
            "metrics: {}\nrequest_id: {}\nrate_limits: [{per: global, requests: 0}]",
        )
        .unwrap();
        assert_eq!(spec.layers(), ["request_id", "metrics"]);
    }
}
