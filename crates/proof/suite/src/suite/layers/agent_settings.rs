//! The settings of a gateway with the third layer.

use serde_json::json;

use super::TENANT;
use crate::target::Provider;

/// The name of the agent behind the gateway.
pub(super) const AGENT: &str = "helper";

/// The settings of the layer: one tool of the gateway's own, those of the mock, and its agent.
pub(super) fn layer(provider: &Provider) -> [String; 2] {
    let at = provider.address();
    let tools = json!({
        "local": ["add"],
        "servers": {"mock": {"url": format!("http://{at}/mcp")}},
        "allow": {TENANT.1: ["local/*", "mock/*"]},
    });
    let agents = json!({
        "agents": {
            "known": {AGENT: {"url": format!("http://{at}/a2a")}},
            "allow": {TENANT.1: [AGENT]},
        },
    });
    [format!("tools={tools}"), format!("agents={agents}")]
}
