//! The `tools` layer of a configuration, checked and complete.

use std::sync::Arc;

use plimsoll_gateway_mcp::{AllowLists, LocalTool};
use plimsoll_gateway_store::SessionRules;

use super::link::{ServerLink, ServerSettings};
use crate::config::units::HumanDuration;
use crate::layers::counters::LayerCounter;
use crate::layers::tool_server::ToolsSpec;
use crate::layers::{Layer, Setup};

/// The layer `tools`.
#[derive(Debug)]
pub(crate) struct ToolLayer {
    pub(crate) allow: AllowLists,
    pub(crate) local: Vec<LocalTool>,
    pub(crate) servers: Vec<Arc<ServerLink>>,
    /// Limits of the sessions of MCP clients.
    pub(crate) sessions: SessionRules,
    /// The lifetime of such a session.
    pub(crate) session_timeout: HumanDuration,
    pub(crate) refresh: HumanDuration,
}

/// Calls by outcome. Calls of unknown tools have the server `none`.
pub(crate) static CALLS: LayerCounter = LayerCounter {
    name: "tool_calls",
    help: "Calls of tools by server and outcome",
    labels: &["server", "outcome"],
    known: &[],
};

impl Layer for ToolLayer {
    type Section = ToolsSpec;
    const COUNTERS: &'static [&'static LayerCounter] = &[&CALLS];

    fn new(spec: &ToolsSpec, _setup: &Setup<'_>) -> Result<Self, String> {
        Self::read(spec).map_err(|problem| format!("tools: {problem}"))
    }
}

impl ToolLayer {
    fn read(spec: &ToolsSpec) -> Result<Self, String> {
        let (timeout, result_bytes) = (spec.timeout, spec.result_bytes);
        Ok(Self {
            allow: AllowLists::new(&spec.allow)?,
            local: spec.local.iter().map(|name| local_tool(name)).collect::<Result<_, _>>()?,
            servers: ServerLink::all(&spec.servers, ServerSettings { timeout, result_bytes })?,
            sessions: SessionRules {
                sessions: spec.sessions,
                // The version of the protocol.
                metadata_bytes: 32,
                calls: spec.calls_per_session,
            },
            session_timeout: spec.session_timeout,
            refresh: spec.refresh,
        })
    }
}

fn local_tool(name: &str) -> Result<LocalTool, String> {
    name.parse().map_err(|_| {
        let known: Vec<_> = LocalTool::ALL.iter().map(<&str>::from).collect();
        format!("`local` has `{name}`, but the gateway's own tools are: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use crate::assembly::spec::Spec;

    #[test]
    fn an_invalid_value_is_named_with_what_to_write_instead() {
        for (tools, message) in [
            ("{local: [echo, shell]}", "`shell`, but the gateway's own tools are: echo, time"),
            ("{servers: {local: {url: 'http://h/mcp'}}}", "not `local`"),
            ("{servers: {'a b': {url: 'http://h/mcp'}}}", "1 to 64 letters"),
            ("{servers: {s: {url: 'https://h/mcp'}}}", "http://HOST:PORT/PATH"),
            ("{servers: {s: {url: 'http://a:Secret@h/mcp'}}}", "http://HOST:PORT/PATH"),
            ("{servers: {s: {url: 'http://h:99999/mcp'}}}", "http://HOST:PORT/PATH"),
            ("{servers: {s: {url: 'http://h/', key: '${NO_SUCH_NAME}'}}}", "`NO_SUCH_NAME`"),
            ("{servers: {s: {url: 'http://h/', timeout: 0}}}", "longer than 0"),
            ("{allow: {retail: ['*']}}", "`SERVER/*`"),
            ("{calls_per_session: 0}", "greater than 0"),
            ("{refresh: 0}", "greater than 0"),
        ] {
            let spec = Spec::from_yaml(&format!("tenant: {{}}\ntools: {tools}")).unwrap();
            let error = spec.check().unwrap_err().to_string();
            assert!(error.contains("tools: ") && error.contains(message), "{tools}: {error}");
            assert!(!error.contains("Secret"), "{error}");
        }
        let spec = Spec::from_yaml("tools: {allow: {retail: [echo]}}").unwrap();
        assert!(spec.check().unwrap_err().to_string().contains("section `tenant`"));
        Spec::from_yaml("tools: {}").unwrap().check().unwrap();
    }
}
