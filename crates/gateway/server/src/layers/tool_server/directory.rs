//! All servers and tools of a gateway. All workers share it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use plimsoll_gateway_mcp::{LocalTool, ServerState, Tool};

use super::ToolRegistry;
use super::layer::ToolLayer;
use super::link::ServerLink;
use super::running_calls::RunningCalls;

/// All servers and tools, replaced as a whole with each change.
#[derive(Debug)]
pub(crate) struct ToolDirectory {
    registry: ArcSwap<ToolRegistry>,
    /// Locked while a new registry is derived from the current one, so that no change is lost.
    changing: Mutex<()>,
    /// The calls of MCP clients.
    pub(crate) calls: RunningCalls,
}

impl ToolDirectory {
    pub(crate) fn new(layer: Option<&ToolLayer>) -> Self {
        let directory = Self {
            registry: ArcSwap::from_pointee(ToolRegistry::new(&[])),
            changing: Mutex::new(()),
            calls: RunningCalls::default(),
        };
        directory.configure(layer);
        directory
    }

    /// The registry in force.
    pub(crate) fn registry(&self) -> Arc<ToolRegistry> {
        self.registry.load_full()
    }

    /// The numbers of servers that are up and down.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let registry = self.registry();
        let up = registry.servers().filter(|server| server.state == ServerState::Up).count();
        (up, registry.servers().len() - up)
    }

    /// Applies the servers and local tools of a configuration. Unchanged servers keep their tools.
    pub(crate) fn configure(&self, layer: Option<&ToolLayer>) {
        self.change(|old| {
            let none: (&[LocalTool], &[Arc<ServerLink>]) = (&[], &[]);
            let (local, configured) =
                layer.map_or(none, |layer| (layer.local.as_slice(), layer.servers.as_slice()));
            let mut next = ToolRegistry::new(local);
            for link in configured {
                next = next.with_server(&link.name, Arc::clone(link));
            }
            let kept = old
                .servers()
                .filter(|server| configured.iter().any(|now| now.is_same(&server.link)));
            Some(kept.fold(next, |next, server| adopted(&next, old, &server.name)))
        });
    }

    /// Records the result of a refresh: the server's tools, or the failure.
    pub(crate) fn note(&self, link: &Arc<ServerLink>, found: Result<Vec<Tool>, String>) {
        self.change(|old| {
            let server = old.server(&link.name)?;
            // It was replaced during the refresh.
            if !Arc::ptr_eq(&server.link, link) {
                return None;
            }
            let found = found.and_then(|tools| {
                old.with_tools(&link.name, tools).map_err(|collision| collision.to_string())
            });
            Some(found.unwrap_or_else(|reason| old.with_failure(&link.name, &reason)))
        });
    }

    fn change(&self, make: impl FnOnce(&ToolRegistry) -> Option<ToolRegistry>) {
        let _changing = self.changing.lock();
        if let Some(next) = make(&self.registry()) {
            self.registry.store(Arc::new(next));
        }
    }
}

/// A registry with the previous tools of a server.
fn adopted(next: &ToolRegistry, old: &ToolRegistry, name: &str) -> ToolRegistry {
    let Some(server) = old.server(name) else { return next.clone() };
    let known = next.with_server(name, Arc::clone(&server.link));
    let tools = old.tools().filter(|tool| tool.provider.name() == name);
    let tools: Vec<Tool> = tools.map(|tool| tool.tool.clone()).collect();
    let with_tools = known.with_tools(name, tools);
    let with_tools =
        with_tools.unwrap_or_else(|collision| known.with_failure(name, &collision.to_string()));
    match &server.state {
        ServerState::Up => with_tools,
        ServerState::Down(reason) => with_tools.with_failure(name, reason),
    }
}
