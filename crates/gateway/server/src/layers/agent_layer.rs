//! The layer of agents: its settings, checked and complete, and the agents that there are.

mod spec;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderName;
use plimsoll_gateway_store::{ApprovalRules, SessionRules};
pub use spec::{AgentDirectorySpec, AgentSpec, AgentsSpec, ApprovalsSpec, ChatSpec, SessionsSpec};

use crate::config::UpstreamSpec;
use crate::config::units::{ByteSize, HumanDuration};
use crate::http::error_response::ErrorResponse;
use crate::layers::LayerCounter;
use crate::layers::{Layer, Setup};
use crate::upstream::proxy::Proxy;
use crate::upstream::{Upstream, address_of};

/// The header with the agents that had the message, the first one first, separated by commas.
pub(crate) static PATH_HEADER: HeaderName = HeaderName::from_static("x-agent-path");

/// The header that names the version of A2A.
pub(crate) static VERSION_HEADER: HeaderName = HeaderName::from_static("a2a-version");

/// The most steps of a chat, whatever the configuration says.
const MAX_STEPS: u32 = 20;

/// The most agents that a message goes through.
pub(crate) const MAX_DEPTH: usize = 5;

/// Operations by what became of them.
pub(crate) static OPERATIONS: LayerCounter = LayerCounter {
    name: "agent_operations",
    help: "Operations of the layer of agents by outcome: ok or the kind of the error",
    labels: &["operation", "outcome"],
    known: &[],
};

/// The settings of the layer.
#[derive(Debug)]
pub(crate) struct AgentLayer {
    pub(crate) sessions: SessionRules,
    pub(crate) session_ttl: Ttl,
    pub(crate) approvals: ApprovalRules,
    pub(crate) approval_ttl: Ttl,
    pub(crate) directory: Directory,
    pub(crate) chat: Option<ChatLayer>,
}

/// A life time: the usual and the longest one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ttl {
    usual: Duration,
    longest: Duration,
}

/// The agent that the gateway itself runs.
#[derive(Debug)]
pub(crate) struct ChatLayer {
    pub(crate) proxy: Proxy,
    pub(crate) spec: ChatSpec,
}

impl AgentLayer {
    /// # Errors
    /// A message about an invalid value.
    pub(crate) fn new(spec: &AgentsSpec, upstreams: &[Arc<Upstream>]) -> Result<Self, String> {
        let (sessions, approvals) = (&spec.sessions, &spec.approvals);
        Ok(Self {
            sessions: SessionRules {
                sessions: sessions.max,
                metadata_bytes: size(sessions.metadata_bytes.0),
                calls: sessions.calls,
            },
            session_ttl: Ttl::new("sessions", sessions.ttl, sessions.max_ttl)?,
            approvals: ApprovalRules {
                approvals: approvals.max,
                bytes: size(approvals.bytes.0),
                keep: approvals.keep.0,
            },
            approval_ttl: Ttl::new("approvals", approvals.ttl, approvals.max_ttl)?,
            directory: Directory::new(&spec.agents, upstreams)?,
            chat: spec.chat.as_ref().map(|chat| ChatLayer::new(chat, upstreams)).transpose()?,
        })
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Ttl {
    fn new(section: &str, usual: HumanDuration, longest: HumanDuration) -> Result<Self, String> {
        let (usual, longest) = (usual.0, longest.0);
        if usual.is_zero() || usual > longest {
            return Err(format!("agents.{section}: `ttl` is between 0 and `max_ttl`"));
        }
        Ok(Self { usual, longest })
    }

    /// The life time that a request asks for, in seconds.
    ///
    /// # Errors
    /// It is 0 or too long.
    pub(crate) fn of(self, seconds: Option<u64>) -> Result<Duration, ErrorResponse> {
        let Some(seconds) = seconds else { return Ok(self.usual) };
        let asked = Duration::from_secs(seconds);
        if asked.is_zero() || asked > self.longest {
            let longest = self.longest.as_secs();
            return Err(ErrorResponse::bad_request(format!("`ttl_s` is between 1 and {longest}")));
        }
        Ok(asked)
    }
}

impl ChatLayer {
    fn new(spec: &ChatSpec, upstreams: &[Arc<Upstream>]) -> Result<Self, String> {
        if !(1..=MAX_STEPS).contains(&spec.steps) {
            return Err(format!("agents.chat: `steps` is between 1 and {MAX_STEPS}"));
        }
        let upstream = match &spec.upstream {
            None => upstreams.first().ok_or("agents.chat: there is no upstream")?,
            Some(name) => upstreams
                .iter()
                .find(|upstream| *upstream.name == **name)
                .ok_or_else(|| format!("agents.chat: there is no upstream `{name}`"))?,
        };
        Ok(Self { proxy: Proxy::to(upstream), spec: spec.clone() })
    }
}

impl Layer for Arc<AgentLayer> {
    type Section = AgentsSpec;
    const COUNTERS: &'static [&'static LayerCounter] = &[&OPERATIONS];

    fn new(section: &AgentsSpec, setup: &Setup<'_>) -> Result<Self, String> {
        AgentLayer::new(section, setup.upstreams).map(Self::new)
    }

    fn headers(&self) -> Vec<HeaderName> {
        vec![PATH_HEADER.clone(), VERSION_HEADER.clone()]
    }
}

/// The longest name of an agent.
const MAX_NAME: usize = 64;

/// An agent behind the gateway.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) name: Arc<str>,
    /// As it was named.
    pub(crate) url: String,
    /// Where it takes JSON-RPC.
    pub(crate) target: Uri,
    /// Where its card is.
    pub(crate) card: Uri,
    pub(crate) proxy: Proxy,
    /// Whether it answered to A2A 0.3 last and not to 1.0.
    speaks_old: AtomicBool,
}

/// A version of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 0.3: `message/send`.
    Old,
    /// 1.0: `SendMessage`.
    Current,
}

impl Agent {
    /// # Errors
    /// A message about an invalid value. It does not repeat the URL, which may hold a password.
    pub(crate) fn new(
        name: &str,
        spec: &AgentSpec,
        upstreams: &[Arc<Upstream>],
    ) -> Result<Self, String> {
        if !is_name(name) {
            let what = "its name is up to 64 lower-case letters, digits, `-` and `_`";
            return Err(format!("agent `{}`: {what}", name.escape_debug()));
        }
        let place = match (&spec.url, &spec.upstream) {
            (Some(url), None) => Place::at(name, url, spec),
            (None, Some(wanted)) => Place::behind(wanted, &spec.path, upstreams),
            _ => Err("it needs either `url` or `upstream`"),
        };
        let place = place.map_err(|problem| format!("agent `{name}`: {problem}"))?;
        let card = spec.card.starts_with('/').then(|| spec.card.parse().ok()).flatten();
        Ok(Self {
            name: Arc::from(name),
            url: place.url,
            target: place.target,
            card: card.ok_or_else(|| format!("agent `{name}`: `card` is no path"))?,
            proxy: Proxy::to(&place.upstream),
            speaks_old: AtomicBool::new(false),
        })
    }

    /// The version that it is asked in first.
    pub(crate) fn version(&self) -> Version {
        if self.speaks_old.load(Relaxed) { Version::Old } else { Version::Current }
    }

    /// Notes the version that it answered to.
    pub(crate) fn note_version(&self, version: Version) {
        self.speaks_old.store(version == Version::Old, Relaxed);
    }
}

/// Where an agent is.
struct Place {
    url: String,
    target: Uri,
    upstream: Arc<Upstream>,
}

impl Place {
    /// At a URL.
    fn at(name: &str, text: &str, spec: &AgentSpec) -> Result<Self, &'static str> {
        let url: Uri = text.parse().map_err(|_| "`url` is no URL")?;
        let address = address_of(&url).filter(|_| url.query().is_none());
        let address = address.ok_or("`url` is http://HOST:PORT/PATH, without user and query")?;
        let upstream = Upstream::new(name, &upstream_spec(address, spec));
        Ok(Self {
            url: text.to_owned(),
            target: url.path().parse().map_err(|_| "the path of `url` is malformed")?,
            upstream: Arc::new(upstream.map_err(|_| "`url` has no usable host")?),
        })
    }

    /// At a path of an upstream.
    fn behind(name: &str, path: &str, upstreams: &[Arc<Upstream>]) -> Result<Self, &'static str> {
        let upstream = upstreams.iter().find(|upstream| *upstream.name == *name);
        let upstream = upstream.ok_or("there is no such `upstream`")?;
        let target = path.starts_with('/').then(|| path.parse().ok()).flatten();
        let address = upstream.endpoints.first().map_or("", |endpoint| &*endpoint.address);
        Ok(Self {
            url: format!("http://{address}{path}"),
            target: target.ok_or("`path` is no path")?,
            upstream: Arc::clone(upstream),
        })
    }
}

impl Version {
    /// The other version.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Old => Self::Current,
            Self::Current => Self::Old,
        }
    }
}

/// Whether a text may be an agent's name. Names stand in a header, separated by commas.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len())
        && text.bytes().all(|byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        })
}

fn upstream_spec(address: String, spec: &AgentSpec) -> UpstreamSpec {
    UpstreamSpec {
        idle_timeout: spec.idle_timeout,
        buffer: ByteSize(64 << 10),
        ..UpstreamSpec::at(address, spec.timeout)
    }
}

/// Stands for every tenant, and for every agent.
const ALL: &str = "*";

/// The agents of the configuration, and who may ask which.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) known: BTreeMap<String, Arc<Agent>>,
    pub(crate) default: Option<String>,
    allow: BTreeMap<String, Vec<String>>,
    pub(crate) public_url: Option<String>,
}

impl Directory {
    /// # Errors
    /// A message about an invalid value.
    pub(crate) fn new(
        spec: &AgentDirectorySpec,
        upstreams: &[Arc<Upstream>],
    ) -> Result<Self, String> {
        let known = spec.known.iter().map(|(name, agent)| {
            Agent::new(name, agent, upstreams).map(|agent| (name.clone(), Arc::new(agent)))
        });
        let known = known.collect::<Result<BTreeMap<_, _>, _>>();
        let known = known.map_err(|problem| format!("agents.agents: {problem}"))?;
        if let Some(default) = spec.default.as_ref().filter(|name| !known.contains_key(*name)) {
            return Err(format!("agents.agents: `default` names no agent: `{default}`"));
        }
        let mut listed = spec.allow.values().flatten();
        if let Some(name) = listed.find(|name| *name != ALL && !is_name(name)) {
            let name = name.escape_debug();
            return Err(format!("agents.agents: `allow` contains an invalid name: `{name}`"));
        }
        if let Some(url) = &spec.public_url
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            return Err("agents.agents: `public_url` begins with http:// or https://".to_owned());
        }
        let public_url = spec.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned());
        let only = known.keys().next().filter(|_| known.len() == 1).cloned();
        let default = spec.default.clone().or(only);
        Ok(Self { known, default, allow: spec.allow.clone(), public_url })
    }

    /// All agents that a tenant may ask, by name.
    pub(crate) fn allowed(&self, tenant: Option<&str>) -> impl Iterator<Item = &Arc<Agent>> {
        self.known.values().filter(move |agent| self.allows(tenant, &agent.name))
    }

    /// Whether a tenant may ask an agent.
    pub(crate) fn allows(&self, tenant: Option<&str>, agent: &str) -> bool {
        let lists = [Some(ALL), tenant].into_iter().flatten();
        let mut lists = lists.filter_map(|name| self.allow.get(name));
        lists.any(|names| names.iter().any(|name| name == ALL || name == agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, url: &str) -> Result<Agent, String> {
        let spec = serde_saphyr::from_str(&format!("url: '{url}'")).unwrap();
        Agent::new(name, &spec, &[])
    }

    #[test]
    fn a_url_gives_address_and_target() {
        for (url, address, target) in [
            ("http://127.0.0.1:9000/a2a", "127.0.0.1:9000", "/a2a"),
            ("http://planner/", "planner:80", "/"),
            ("http://planner:81", "planner:81", "/"),
            ("http://[::1]:81/x/y", "[::1]:81", "/x/y"),
        ] {
            let agent = agent("planner", url).unwrap();
            assert_eq!(&*agent.proxy.upstream.endpoints[0].address, address, "{url}");
            assert_eq!(agent.target.path(), target, "{url}");
        }
    }

    #[test]
    fn nonsense_is_refused_and_not_repeated() {
        for url in [
            "",
            "planner",
            "/a2a",
            "https://planner/a2a",
            "ftp://planner/a2a",
            "http:///a2a",
            "http://user:secret@planner/a2a",
            "http://planner/a2a?key=secret",
            "http://planner:99999/a2a",
            "http://planner:/a2a",
            "http://planner:8o/a2a",
        ] {
            let error = agent("planner", url).unwrap_err();
            assert!(error.contains("planner") && !error.contains("secret"), "{url}: {error}");
        }
        for name in ["", "A", "a b", "a,b", "a/b", "\u{e4}", &"a".repeat(65)] {
            assert!(agent(name, "http://planner/a2a").is_err(), "{name}");
        }
    }

    fn directory(allow: &str) -> Directory {
        read(&format!("allow: {allow}"))
    }

    fn read(settings: &str) -> Directory {
        let text = format!("agents: {{agents: {{{settings}}}}}");
        let spec = crate::assembly::spec::Spec::from_yaml(&text).unwrap();
        Directory::new(&spec.agents.unwrap().agents, &[]).unwrap()
    }

    #[test]
    fn what_is_not_listed_is_denied() {
        let rules = directory("{retail: [planner], ops: ['*'], '*': [help]}");
        for (tenant, agent, allowed) in [
            (Some("retail"), "planner", true),
            (Some("retail"), "help", true),
            (Some("retail"), "writer", false),
            (Some("ops"), "writer", true),
            (Some("other"), "help", true),
            (Some("other"), "planner", false),
            (None, "help", true),
            (None, "planner", false),
            // A tenant of that name is everybody and no more.
            (Some("*"), "help", true),
            (Some("*"), "planner", false),
        ] {
            assert_eq!(rules.allows(tenant, agent), allowed, "{tenant:?} {agent}");
        }
        assert!(!directory("{}").allows(Some("retail"), "planner"), "nothing is allowed");
        assert!(!directory("{retail: []}").allows(Some("retail"), "planner"));
    }

    #[test]
    fn agents_are_listed_by_name() {
        let rules = read(
            "known: {d: {url: 'http://d/'}, b: {url: 'http://b/'}, \
                          e: {url: 'http://e/'}}, allow: {retail: [b, c, d]}",
        );
        let listed: Vec<&str> = rules.allowed(Some("retail")).map(|agent| &*agent.name).collect();
        assert_eq!(listed, ["b", "d"]);
    }
}
