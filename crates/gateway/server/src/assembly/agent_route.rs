//! The routes of the layer of agents.

use std::sync::LazyLock;

use crate::assembly::spec::Spec;

/// Path, route and scope of all routes.
static ROUTES: LazyLock<Vec<(&str, AgentRoute, &str)>> = LazyLock::new(|| {
    let rows = include_str!("agent_routes.tsv").lines().filter_map(|row| {
        let [path, route, scope] = row.split('\t').collect::<Vec<_>>().try_into().ok()?;
        Some((path, route.parse().ok()?, scope))
    });
    rows.collect()
});

/// A route of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
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
    pub(crate) fn of(spec: &Spec) -> impl Iterator<Item = (&'static str, Self)> {
        let chat = spec.agents.as_ref().map(|agents| agents.chat.is_some());
        let routes =
            ROUTES.iter().filter(move |(.., scope)| chat.is_some_and(|on| on || *scope != "chat"));
        routes.map(|(path, route, _)| (*path, *route))
    }

    /// The scope that a key with scopes needs for it; `None` for public routes.
    pub(crate) fn scope(self) -> Option<&'static str> {
        let found = ROUTES.iter().find(|(_, route, _)| *route == self);
        found.map(|(.., scope)| *scope).filter(|scope| *scope != "-")
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
