//! The routes of the layer of agents.

use crate::assembly::spec::Spec;

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

    /// The scope that a key with scopes needs for it; `None` for public routes.
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

    /// Whether the resource has an owner, so that the caller must be authenticated.
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
