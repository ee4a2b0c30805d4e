//! Allow lists of tools. Tools outside all lists are refused.

use std::collections::BTreeMap;

use crate::name::{LOCAL, is_server_name, is_tool_name};

/// Applies to every tenant, and to requests without one.
const EVERYBODY: &str = "*";

/// The tools that each tenant may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowLists(BTreeMap<String, AllowList>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct AllowList {
    /// Names of tools.
    tools: Vec<String>,
    /// Names of servers whose tools are all allowed.
    servers: Vec<String>,
}

impl AllowLists {
    /// Lists by tenant, whose entries are names of tools, or `NAME/*` for all tools of a server.
    ///
    /// # Errors
    /// The tenant, the invalid entry and the valid forms.
    pub fn new(lists: &BTreeMap<String, Vec<String>>) -> Result<Self, String> {
        lists
            .iter()
            .map(|(tenant, entries): (&String, &Vec<String>)| {
                let list = AllowList::new(entries).map_err(|entry| {
                format!(
                    "the list of `{tenant}` has `{entry}`, which is neither the name of a tool nor \
                     `SERVER/*`; for the gateway's own tools write `{LOCAL}/*`"
                )
            })?;
                Ok((tenant.clone(), list))
            })
            .collect::<Result<_, String>>()
            .map(Self)
    }

    /// Whether a tenant may call a tool: by its own list or by `*`, which also applies to callers
    /// without a tenant.
    pub fn allows(&self, tenant: Option<&str>, tool: &str, server: &str) -> bool {
        let lists = [tenant, Some(EVERYBODY)].into_iter().flatten();
        lists.filter_map(|tenant| self.0.get(tenant)).any(|list| {
            list.tools.iter().any(|name| name == tool)
                || list.servers.iter().any(|name| name == server)
        })
    }
}

impl AllowList {
    fn new(entries: &[String]) -> Result<Self, String> {
        let mut list = Self::default();
        for entry in entries {
            match entry.strip_suffix("/*") {
                Some(server) if server == LOCAL || is_server_name(server) => {
                    list.servers.push(server.to_owned());
                }
                None if is_tool_name(entry) => list.tools.push(entry.clone()),
                _ => return Err(entry.clone()),
            }
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(entries: &[(&str, &[&str])]) -> Result<AllowLists, String> {
        let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
        let lists = entries.iter().map(|(tenant, list)| ((*tenant).to_owned(), owned(list)));
        AllowLists::new(&lists.collect())
    }

    #[test]
    fn nothing_is_allowed_that_is_not_listed() {
        let lists =
            lists(&[("a", &["echo", "search/*"]), ("b", &["local/*"]), ("c", &[])]).unwrap();
        for (tenant, tool, server, allowed) in [
            (Some("a"), "echo", "local", true),
            (Some("a"), "echo", "elsewhere", true),
            (Some("a"), "add", "local", false),
            (Some("a"), "find", "search", true),
            (Some("a"), "find", "search2", false),
            (Some("a"), "search/*", "x", false),
            (Some("b"), "add", "local", true),
            (Some("b"), "find", "search", false),
            (Some("c"), "echo", "local", false),
            (Some("d"), "echo", "local", false),
            (Some(""), "echo", "local", false),
            (None, "echo", "local", false),
        ] {
            assert_eq!(lists.allows(tenant, tool, server), allowed, "{tenant:?} {tool} {server}");
        }
    }

    #[test]
    fn an_entry_that_is_neither_is_refused() {
        for entry in ["", "*", "/*", "a b", "a/b/*", "search/**", "é"] {
            let error = lists(&[("retail", &["echo", entry])]).unwrap_err();
            assert!(error.contains("`retail`") && error.contains("local/*"), "{entry}: {error}");
        }
    }
}
