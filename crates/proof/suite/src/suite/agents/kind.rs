//! The kinds of requests of a mixed day.

use serde_json::{Value, json};

use crate::measurement::Measurement;
use crate::suite::agent_gateway::TOOL;
use crate::target::SuiteTarget;

/// A kind of request.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its name, which is also that of its scenario.
    pub(super) name: &'static str,
    /// Its share of all arrivals.
    pub(super) percent: u32,
    /// The request in words.
    pub(super) asks: &'static str,
    /// Whether the upstream answers it, too.
    pub(super) has_direct_way: bool,
    path: &'static str,
    /// The members of its scenario, with the path of the request.
    behaviour: fn(path: String) -> Value,
}

pub(super) const CHATS: &str = "chats";
pub(super) const TOOLS: &str = "tools";
pub(super) const AGENTS: &str = "agents";

/// All kinds. The help of the command line and the guide have their shares.
pub(super) static KINDS: [Kind; 4] = [
    Kind {
        name: CHATS,
        percent: 40,
        asks: "POST /v1/chat/completions",
        has_direct_way: true,
        path: "",
        behaviour: |_| {
            json!({
                "protocol": "openai-chat",
                "content": {"mode": "sized", "approx_input_tokens": 128},
                "max_tokens": 64,
            })
        },
    },
    Kind {
        name: TOOLS,
        percent: 30,
        asks: "POST /mcp, a call of the tool `echo`",
        has_direct_way: true,
        path: "/mcp",
        behaviour: |path| {
            let bytes = json!({"min": 64, "max": 512});
            let call = json!({"method": "tools/call", "name": TOOL, "argument_bytes": bytes});
            // Without sessions a call is one request, and so has one on the direct way.
            let mcp = json!({"revision": "2026-07-28", "path": path, "steps": [call]});
            json!({"protocol": "mcp", "mcp": mcp})
        },
    },
    Kind {
        name: AGENTS,
        percent: 20,
        asks: "POST /a2a, a message to the agent",
        has_direct_way: true,
        path: "/a2a",
        behaviour: |path| {
            json!({
                "protocol": "a2a",
                "content": {"mode": "sized", "approx_input_tokens": 64},
                "a2a": {"version": "v1.0", "path": path, "steps": [{"action": "send"}]},
            })
        },
    },
    Kind {
        name: "approvals",
        percent: 10,
        asks: "POST /v1/hitl, a request for approval",
        has_direct_way: false,
        path: "/v1/hitl",
        behaviour: |path| {
            let body = json!({"action": "refund", "details": {"order": 4711}, "ttl_s": 60});
            let headers = json!({"content-type": "application/json"});
            let http = json!({
                "method": "POST", "path": path, "headers": headers, "body": body.to_string(),
            });
            json!({"protocol": "http", "http": http})
        },
    },
];

impl Kind {
    /// Its scenario: every path of a suite comes after that of the target's URL.
    pub(super) fn scenario(&self, target: &SuiteTarget) -> Value {
        let mut scenario = (self.behaviour)(format!("{}{}", target.prefix(), self.path));
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
        for kind in &KINDS {
            let plan = kind.request("x", &target).rate(1.0, length).plan(0).unwrap();
            assert_eq!(plan.scenarios.len(), 1);
            assert_eq!(plan.scenarios[0].name, kind.name);
            let path = (!kind.path.is_empty()).then(|| format!("/team{}", kind.path));
            assert_eq!(plan_path(&plan), path, "{}", kind.name);
        }
        let all: Vec<_> = KINDS.iter().map(|kind| kind.scenario(&target)).collect();
        let plan = Measurement::scenarios("x", &target, &all).rate(1.0, length).plan(0).unwrap();
        let weights: Vec<_> = plan.scenarios.iter().map(|scenario| scenario.weight).collect();
        assert_eq!(weights, [40.0, 30.0, 20.0, 10.0]);
    }
}
