//! Converts scenarios of a profile for the workload.

use plimsoll_protocol::Dialect;
use plimsoll_workload::{AgentRole, Content, LengthSpec, ScenarioSpec, part_names};

use crate::spec::{Behaviour, ScenarioFile};

/// Name of a scenario: as given, or by its position.
pub(crate) fn scenario_name(index: usize, file: &ScenarioFile) -> String {
    file.name.clone().unwrap_or_else(|| default_name(index))
}

/// Names under which a scenario's requests are counted: its own, and its parts' names.
pub(crate) fn scenario_names(index: usize, file: &ScenarioFile) -> Vec<String> {
    let name = scenario_name(index, file);
    let parts = file.behaviour.agent.iter().flat_map(|agent| {
        let count = 1 + usize::from(agent.approve.is_some());
        part_names(&name).into_iter().take(count)
    });
    let parts: Vec<_> = parts.collect();
    std::iter::once(name).chain(parts).collect()
}

/// Default name of the scenario at a position, from 0.
pub(crate) fn default_name(index: usize) -> String {
    format!("scenario-{}", index + 1)
}

/// The scenarios with every default filled in.
pub(crate) fn scenarios(files: Vec<ScenarioFile>) -> Vec<ScenarioSpec> {
    files.into_iter().enumerate().map(|(index, file)| scenario(index, file)).collect()
}

/// A scenario with every default filled in.
pub(crate) fn scenario(index: usize, file: ScenarioFile) -> ScenarioSpec {
    let name = scenario_name(index, &file);
    let Behaviour { protocol, turns, stream, system, content, max_tokens, .. } = file.behaviour;
    let Behaviour { max_tokens_field, tool_result, think_time, cache_mode, .. } = file.behaviour;
    let Behaviour { prefix_pool, parameters, http, mcp, a2a, websocket, .. } = file.behaviour;
    let Behaviour { output_tokens, expect, category, policy_decision, agent, .. } = file.behaviour;
    ScenarioSpec {
        name,
        weight: file.weight,
        model: file.model,
        protocol,
        turns,
        stream: stream || protocol == Dialect::Websocket,
        system,
        // The protocols `http` and `mcp` need no content, so they get an empty text.
        content: content.unwrap_or(Content::Sized { approx_input_tokens: LengthSpec::Fixed(0) }),
        max_tokens,
        output_tokens,
        max_tokens_field,
        tool_result,
        think_time,
        headers: file.headers,
        cache_mode,
        prefix_pool,
        http,
        mcp,
        a2a,
        websocket: websocket.unwrap_or_default(),
        parameters,
        expect,
        category,
        policy_decision,
        agent: agent.map(AgentRole::Agent),
    }
}
