//! Messages that a layer must read but cannot: they would bypass the layer.

use plimsoll_gateway_dialect::Endpoint;

use super::Check;
use crate::assembly::router::covers;
use crate::assembly::spec::Spec;
use crate::config::route::RouteSpec;
use plimsoll_gateway_inspect::Unread;

/// Paths of LLM APIs that are spoken over a `WebSocket`, beside the endpoints themselves.
const REALTIME: &str = "/v1/realtime";

impl Check {
    /// Rejects passing a `WebSocket` through if a layer must read its messages.
    pub(super) fn unread(&mut self, spec: &Spec, route: &RouteSpec) {
        if !route.websocket {
            return;
        }
        let name = &route.name;
        let scrub = spec.scrub.as_ref().map(|scrub| scrub.unreadable);
        self.require(
            scrub != Some(Unread::Refuse),
            &format!(
                "route `{name}`: `scrub` cannot read the messages of a WebSocket that is passed \
                 through: remove the route, or let what cannot be read pass with \
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
                "route `{name}`: `{reader}` cannot read what a WebSocket to `{}` carries: give the \
                 route a path that reaches no LLM API",
                reached.as_deref().unwrap_or_default()
            ),
        );
    }
}
