//! Sessions that begin within other sessions, in formats that name them there.

use std::collections::HashMap;

use serde_json::Value;

use crate::record::{After, Request};
use crate::value::{list, text};

/// A request with its session, start and end.
pub(crate) struct Timed {
    pub(crate) request: Request,
    pub(crate) session: Option<String>,
    /// Takes the place of a session, unless the request continues one of another trace.
    pub(crate) trace: Option<String>,
    pub(crate) start: Option<f64>,
    pub(crate) end: Option<f64>,
}

/// The sessions that requests start, in the order of the file.
#[derive(Default)]
pub(crate) struct Branches(Vec<Branch>);

struct Branch {
    /// The request that starts it.
    parent: String,
    child: String,
    /// Whether its first prompt continues that request.
    is_fork: bool,
    /// The request of the parent's conversation that waits for it.
    join: Option<String>,
}

impl Branches {
    /// Adds the sessions that a turn of a conversation starts: forks and spawns.
    pub(crate) fn add(
        &mut self,
        turns: &[Option<String>],
        turn: usize,
        children: [Option<Vec<Value>>; 2],
    ) {
        let children = [true, false].into_iter().zip(children);
        let children = children.flat_map(|(is_fork, all)| {
            all.into_iter().flatten().flat_map(move |mut child| {
                let join = child["join_at"]
                    .as_u64()
                    .map_or(turn + 1, |join| usize::try_from(join).unwrap_or(turn));
                let names = ["child", "children"];
                let name = names.into_iter().find(|name| child.get(name).is_some());
                let names = name.map(|name| child[name].take()).unwrap_or(child);
                list(names).into_iter().map(move |child| (is_fork, join, child))
            })
        });
        self.0.extend(children.filter_map(|(is_fork, join, child)| {
            let parent = turns.get(turn)?.clone()?;
            let join = turns.get(join).cloned().flatten();
            Some(Branch { parent, child: text(&child), is_fork, join })
        }));
    }

    /// Makes each branch wait for its parent, and the next request of the parent for the branch. A
    /// branch belongs to the session of its root.
    pub(crate) fn join(&self, requests: &mut [Timed]) {
        let mut outer = HashMap::new();
        for Branch { parent, child, is_fork, join } in &self.0 {
            let own = requests.iter().find(|timed| timed.request.id == *parent);
            let own_members = own.map(|own| own.request.body.clone()).unwrap_or_default();
            outer.extend(own.and_then(|own| Some((child.clone(), own.session.clone()?))));
            let last = requests.iter_mut().rfind(|timed| timed.session.as_ref() == Some(child));
            let last = last.map(|timed| timed.request.id.clone());
            if let Some(first) =
                requests.iter_mut().find(|timed| timed.session.as_ref() == Some(child))
            {
                // Like a later turn of the parent, a fork inherits only the tools.
                let others =
                    own_members.into_iter().filter(|(name, _)| *is_fork && name != "tools");
                let without = others.map(|(name, _)| (name, Value::Null)).collect();
                let body = std::mem::replace(&mut first.request.body, without);
                first.request.body.extend(body);
                match is_fork {
                    true => first.request.continues = Some(parent.clone()),
                    false => first.request.after = Some(vec![After::end_of(parent)]),
                }
            }
            let next = requests.iter_mut().find(|timed| Some(&timed.request.id) == join.as_ref());
            if let Some((next, last)) = next.zip(last).filter(|_| !is_fork) {
                let before = next.request.continues.as_ref().unwrap_or(parent);
                let before = vec![After::end_of(before)];
                let after = next.request.after.get_or_insert(before);
                after.push(After::end_of(&last));
            }
        }
        for timed in requests {
            // At most once for each branch, even if they form a cycle.
            let mut steps = self.0.len();
            while let Some(root) = timed.session.as_ref().and_then(|own| outer.get(own))
                && steps > 0
            {
                let child = timed.session.replace(root.clone());
                timed.request.agent = timed.request.agent.take().or(child);
                steps -= 1;
            }
        }
    }
}
