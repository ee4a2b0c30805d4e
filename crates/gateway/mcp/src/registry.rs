//! All servers and tools. A registry is immutable and replaced as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::local::LocalTool;
use crate::name::LOCAL;
use crate::tool::Tool;

/// All servers and tools. `L` is the link to a server.
#[derive(Clone, Debug)]
pub struct Registry<L> {
    servers: BTreeMap<Arc<str>, Arc<ToolServer<L>>>,
    tools: BTreeMap<Arc<str>, Arc<RegisteredTool<L>>>,
}

/// A server of tools.
#[derive(Clone, Debug)]
pub struct ToolServer<L> {
    /// Its name.
    pub name: Arc<str>,
    /// The link to it.
    pub link: L,
    /// Whether it is reachable.
    pub state: ServerState,
}

/// Whether a server is reachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It listed its tools at the last request.
    Up,
    /// It failed for this reason, or has not been asked yet.
    Down(String),
}

/// A tool and its provider.
#[derive(Clone, Debug)]
pub struct RegisteredTool<L> {
    /// The tool.
    pub tool: Tool,
    /// Its provider.
    pub provider: Provider<L>,
}

/// The provider of a tool.
#[derive(Clone, Debug)]
pub enum Provider<L> {
    /// The gateway.
    Local(LocalTool),
    /// A server.
    Server {
        /// Its name.
        name: Arc<str>,
        /// The link to it.
        link: L,
    },
}

impl<L> Provider<L> {
    /// The name under which it is listed and allowed.
    pub fn name(&self) -> &str {
        match self {
            Self::Local(_) => LOCAL,
            Self::Server { name, .. } => name,
        }
    }
}

/// A tool of a server has the name of another provider's tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{owner}` already has a tool `{tool}`")]
pub struct Collision {
    /// The tool.
    pub tool: String,
    /// The provider that has it already.
    pub owner: String,
}

impl<L: Clone> Registry<L> {
    /// A registry of the gateway's own tools.
    pub fn new(local: &[LocalTool]) -> Self {
        Self {
            servers: BTreeMap::new(),
            tools: local
                .iter()
                .filter_map(|local: &LocalTool| {
                    let tool = local.tool()?.clone();
                    let name = Arc::clone(&tool.name);
                    let provider = Provider::Local(*local);
                    Some((name, Arc::new(RegisteredTool { tool, provider })))
                })
                .collect(),
        }
    }

    /// A copy with a new server, whose tools are still unknown. A server with the same name is
    /// replaced.
    #[must_use]
    pub fn with_server(&self, name: &str, link: L) -> Self {
        let mut next = self.without_server(name);
        let state = ServerState::Down("it was not queried yet".to_owned());
        let server = ToolServer { name: Arc::from(name), link, state };
        next.servers.insert(Arc::from(name), Arc::new(server));
        next
    }

    /// A copy without a server and its tools.
    #[must_use]
    pub fn without_server(&self, name: &str) -> Self {
        let mut next = self.clone();
        next.servers.remove(name);
        next.tools.retain(|_, tool| tool.provider.name() != name);
        next
    }

    /// A copy with the current tools of a known server, which is up.
    ///
    /// # Errors
    /// Another provider has one of the tools; the registry stays unchanged.
    pub fn with_tools(&self, name: &str, tools: Vec<Tool>) -> Result<Self, Collision> {
        let Some(server) = self.servers.get(name) else { return Ok(self.clone()) };
        let mut next = self.without_server(name);
        for tool in tools {
            if let Some(other) = next.tools.get(&tool.name) {
                let (tool, owner) = (tool.name.to_string(), other.provider.name().to_owned());
                return Err(Collision { tool, owner });
            }
            let provider =
                Provider::Server { name: Arc::clone(&server.name), link: server.link.clone() };
            let name = Arc::clone(&tool.name);
            next.tools.insert(name, Arc::new(RegisteredTool { tool, provider }));
        }
        let up = ToolServer { state: ServerState::Up, ..ToolServer::clone(server) };
        next.servers.insert(Arc::clone(&server.name), Arc::new(up));
        Ok(next)
    }

    /// A copy in which a known server is down. Its tools stay: calls then fail because the server
    /// is unreachable, and not because the tool is unknown.
    #[must_use]
    pub fn with_failure(&self, name: &str, reason: &str) -> Self {
        let mut next = self.clone();
        if let Some(server) = next.servers.get_mut(name) {
            let state = ServerState::Down(reason.to_owned());
            *server = Arc::new(ToolServer { state, ..ToolServer::clone(server) });
        }
        next
    }

    /// A server by its name.
    pub fn server(&self, name: &str) -> Option<&Arc<ToolServer<L>>> {
        self.servers.get(name)
    }

    /// All servers, by name.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &Arc<ToolServer<L>>> {
        self.servers.values()
    }

    /// The number of tools of a server, or of [`LOCAL`].
    pub fn tools_of(&self, server: &str) -> usize {
        self.tools.values().filter(|tool| tool.provider.name() == server).count()
    }

    /// A tool by its name.
    pub fn tool(&self, name: &str) -> Option<&Arc<RegisteredTool<L>>> {
        self.tools.get(name)
    }

    /// All tools, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<RegisteredTool<L>>> {
        self.tools.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolTable;

    fn tools(names: &[&str]) -> Vec<Tool> {
        let list: Vec<_> = names
            .iter()
            .map(|name: &&str| serde_json::json!({"name": name, "inputSchema": {}}))
            .collect();
        let mut table = ToolTable::default();
        table.add(&serde_json::json!({"tools": list}).to_string()).unwrap();
        table.into_tools()
    }

    fn names(registry: &Registry<u8>) -> Vec<(&str, &str)> {
        registry.tools().map(|tool| (&*tool.tool.name, tool.provider.name())).collect()
    }

    #[test]
    fn tools_come_with_their_server_and_go_with_it() {
        let empty = Registry::new(&[LocalTool::Echo]);
        let known = empty.with_server("s", 7);
        assert_eq!(names(&known), [("echo", "local")]);
        assert!(matches!(known.server("s").unwrap().state, ServerState::Down(_)));
        let up = known.with_tools("s", tools(&["b", "a"])).unwrap();
        assert_eq!(names(&up), [("a", "s"), ("b", "s"), ("echo", "local")]);
        assert_eq!((up.tools_of("s"), up.tools_of("local"), up.servers().len()), (2, 1, 1));
        let down = up.with_failure("s", "gone");
        assert_eq!(names(&down), names(&up), "its tools stay");
        assert_eq!(down.server("s").unwrap().state, ServerState::Down("gone".to_owned()));
        let fewer = down.with_tools("s", tools(&["b"])).unwrap();
        assert_eq!(names(&fewer), [("b", "s"), ("echo", "local")]);
        assert_eq!(names(&fewer.without_server("s")), [("echo", "local")]);
        assert_eq!(names(&up), [("a", "s"), ("b", "s"), ("echo", "local")], "never changed");
        assert_eq!(names(&up.with_tools("other", tools(&["x"])).unwrap()), names(&up));
    }

    #[test]
    fn a_tool_that_is_taken_changes_nothing() {
        let registry = Registry::new(LocalTool::ALL).with_server("one", 1).with_server("two", 2);
        let registry = registry.with_tools("one", tools(&["find"])).unwrap();
        for (taken, owner) in [("find", "one"), ("echo", "local")] {
            let collision = registry.with_tools("two", tools(&["free", taken])).unwrap_err();
            let expected = Collision { tool: taken.to_owned(), owner: owner.to_owned() };
            assert_eq!(collision, expected);
        }
        assert!(registry.tool("free").is_none());
    }
}
