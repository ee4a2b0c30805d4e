//! The agent layer: its checked settings, and the known agents.

mod agent;
mod directory;
mod spec;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderName;
use plimsoll_gateway_store::{ApprovalRules, SessionRules};

pub(crate) use agent::{Agent, Version, is_name};
pub(crate) use directory::Directory;
pub use spec::{AgentDirectorySpec, AgentSpec, AgentsSpec, ApprovalsSpec, ChatSpec, SessionsSpec};

use crate::config::units::HumanDuration;
use crate::http::error_response::ErrorResponse;
use crate::layers::counters::LayerCounter;
use crate::layers::{Layer, Setup};
use crate::upstream::Upstream;
use crate::upstream::proxy::Proxy;

/// The header with the agents that received the message, in order, separated by commas.
pub(crate) static PATH_HEADER: HeaderName = HeaderName::from_static("x-agent-path");

/// The header that names the version of A2A.
pub(crate) static VERSION_HEADER: HeaderName = HeaderName::from_static("a2a-version");

/// The upper limit of steps of a chat.
const MAX_STEPS: u32 = 20;

/// The maximum number of agents that a message passes.
pub(crate) const MAX_DEPTH: usize = 5;

/// Operations by outcome.
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

/// The default and the maximum time to live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ttl {
    usual: Duration,
    longest: Duration,
}

/// The gateway's own agent.
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

    /// Reads the requested time to live, in seconds.
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
            None => upstreams.first().ok_or("agents.chat: no upstream is configured")?,
            Some(name) => upstreams
                .iter()
                .find(|upstream| *upstream.name == **name)
                .ok_or_else(|| format!("agents.chat: unknown upstream `{name}`"))?,
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
