//! The kinds of requests of a mixed day.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::measurement::Measurement;
use crate::target::SuiteTarget;

/// A kind of request.
#[derive(Debug, Deserialize)]
pub(super) struct Kind {
    /// Its name, which is also the name of its scenario.
    pub(super) name: &'static str,
    /// Its share of all arrivals.
    pub(super) percent: u32,
    /// The request in words.
    pub(super) asks: &'static str,
    /// Whether the upstream answers it, too.
    pub(super) has_direct_way: bool,
    /// The place of the path of the request in the scenario.
    path_at: Option<&'static str>,
    /// The members of its scenario.
    scenario: Value,
}

pub(super) const CHATS: &str = "chats";
pub(super) const TOOLS: &str = "tools";
pub(super) const AGENTS: &str = "agents";

/// All kinds. The help of the command line and the guide have their shares. Without sessions a call
/// of a tool is one request, and so has one on the direct way.
pub(super) static KINDS: LazyLock<Vec<Kind>> =
    LazyLock::new(|| serde_json::from_str(include_str!("kinds.json")).unwrap_or_default());

impl Kind {
    /// The scenario of this kind: every path of a suite is relative to the target's URL.
    pub(super) fn scenario(&self, target: &SuiteTarget) -> Value {
        let mut scenario = self.scenario.clone();
        let path = self.path_at.and_then(|place| scenario.pointer_mut(place));
        if let Some(Value::String(path)) = path {
            path.insert_str(0, target.prefix());
        }
        scenario["name"] = self.name.into();
        scenario["weight"] = self.percent.into();
        scenario
    }

    /// Requests of this kind alone.
    pub(super) fn request(&self, label: &str, target: &SuiteTarget) -> Measurement {
        Measurement::scenarios(label, target, &[self.scenario(target)])
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Nanos;

    use super::*;
    use crate::fixtures::plan_path;
    use crate::measurement::Length;

    #[test]
    fn shares_add_up_and_the_plan_has_every_kind_at_its_path() {
        assert_eq!(KINDS.iter().map(|kind| kind.percent).sum::<u32>(), 100);
        let base = "http://127.0.0.1:1/team".to_owned();
        let target = SuiteTarget { base, model: "m".to_owned(), ..SuiteTarget::default() };
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(1));
        for kind in KINDS.iter() {
            let plan = kind.request("x", &target).rate(1.0, length).plan(0).unwrap();
            assert_eq!(plan.scenarios.len(), 1);
            assert_eq!(plan.scenarios[0].name, kind.name);
            let path = ["/mcp", "/a2a", "/v1/hitl"].iter().find(|path| kind.asks.contains(*path));
            let path = path.map(|path| format!("/team{path}"));
            assert_eq!(plan_path(&plan), path, "{}", kind.name);
        }
        let all: Vec<_> = KINDS.iter().map(|kind| kind.scenario(&target)).collect();
        let plan = Measurement::scenarios("x", &target, &all).rate(1.0, length).plan(0).unwrap();
        let weights: Vec<_> = plan.scenarios.iter().map(|scenario| scenario.weight).collect();
        assert_eq!(weights, [40.0, 30.0, 20.0, 10.0]);
    }
}
