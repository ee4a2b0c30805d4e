//! The known agents, and the tenants that may use them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::agent::{Agent, is_name};
use crate::layers::agent_layer::AgentDirectorySpec;
use crate::upstream::Upstream;

/// Matches every tenant, and every agent.
const ALL: &str = "*";

/// The configured agents, and the tenants that may use them.
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

    /// All agents that a tenant may use, by name.
    pub(crate) fn allowed(&self, tenant: Option<&str>) -> impl Iterator<Item = &Arc<Agent>> {
        self.known.values().filter(move |agent| self.allows(tenant, &agent.name))
    }

    /// Whether a tenant may use an agent.
    pub(crate) fn allows(&self, tenant: Option<&str>, agent: &str) -> bool {
        let lists = [Some(ALL), tenant].into_iter().flatten();
        let mut lists = lists.filter_map(|name| self.allow.get(name));
        lists.any(|names| names.iter().any(|name| name == ALL || name == agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
