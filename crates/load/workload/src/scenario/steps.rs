//! Checks the steps of conversations with tool servers and agents.

use std::sync::Arc;

use plimsoll_protocol::rpc::mcp::Revision;

use super::ScenarioCheck;
use crate::error::{MAX_ARGUMENT_BYTES, ScenarioFault};
use crate::session::{A2aPlan, McpPlan, SessionPlan};
use crate::spec::{AgentRole, ByteRange, McpMethod, McpSpec, McpStep};

impl ScenarioCheck<'_> {
    pub(super) fn tool_server(&mut self) -> Option<SessionPlan> {
        let spec: Option<&McpSpec> = self.spec.mcp.as_ref();
        let steps = spec.map_or(&[][..], |spec| &spec.steps);
        // Of an agent's part the model chooses the calls.
        // And a scenario without steps leaves them to the server.
        let is_part = self.spec.agent.as_ref().is_some_and(AgentRole::is_part);
        if !is_part && (spec.is_none() || !steps.is_empty()) {
            self.weights("mcp", steps.iter().map(|step| step.weight));
        }
        let spec = spec?;
        for (index, step) in spec.steps.iter().enumerate() {
            self.tool_step(index, step, spec.revision);
        }
        Some(SessionPlan::Mcp(Arc::new(McpPlan::new(spec))))
    }

    pub(super) fn a2a_session(&mut self) -> Option<SessionPlan> {
        let spec = self.spec.a2a.as_ref();
        let steps = spec.map_or(&[][..], |spec| &spec.steps);
        self.weights("a2a", steps.iter().map(|step| step.weight));
        spec.map(|spec| SessionPlan::A2a(Arc::new(A2aPlan::new(spec))))
    }

    fn weights(&mut self, protocol: &'static str, weights: impl Iterator<Item = f64>) {
        let mut any = false;
        for (index, weight) in weights.enumerate() {
            if !weight.is_finite() || weight < 0.0 {
                let field = format!("{protocol}.steps.{index}.weight");
                self.report(field, ScenarioFault::Weight(weight));
            }
            any |= weight > 0.0;
        }
        if !any {
            self.report(protocol, ScenarioFault::NoSteps(protocol));
        }
    }

    fn tool_step(&mut self, index: usize, step: &McpStep, revision: Revision) {
        let field = |key: &str| format!("mcp.steps.{index}.{key}");
        let name = step.name.as_deref().unwrap_or_default();
        if step.method.has_name() && name.is_empty() {
            self.report(field("name"), ScenarioFault::NoStepName);
        }
        let is_call = step.method == McpMethod::CallTool;
        let has_arguments = is_call || step.method == McpMethod::GetPrompt;
        for (key, is_wrong) in [
            ("name", step.name.is_some() && !step.method.has_name()),
            ("arguments", !step.arguments.is_empty() && !has_arguments),
            ("argument_bytes", step.argument_bytes.is_some() && !is_call),
            ("progress", step.progress && !is_call),
            ("cancel_after", step.cancel_after.is_some() && !is_call),
        ] {
            if is_wrong {
                self.report(field(key), ScenarioFault::StepKey(key));
            }
        }
        let other = match step.method {
            McpMethod::Ping => !revision.has_sessions(),
            McpMethod::Discover => revision.has_sessions(),
            _ => false,
        };
        if other {
            self.report(field("method"), ScenarioFault::StepOfOtherRevision(revision.name()));
        }
        if let Some(ByteRange { min, max }) = step.argument_bytes
            && (min > max || max > MAX_ARGUMENT_BYTES)
        {
            self.report(field("argument_bytes"), ScenarioFault::Bytes);
        }
    }
}
