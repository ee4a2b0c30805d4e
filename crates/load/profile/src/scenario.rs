//! Scenarios of a profile as the workload takes them.

use plimsoll_workload::{Content, ScenarioSpec};

use crate::spec::{Behaviour, ScenarioFile};

/// The name of a scenario: the given one, or one by its position.
pub(crate) fn scenario_name((index, file): (usize, &ScenarioFile)) -> String {
    file.name.clone().unwrap_or_else(|| default_name(index))
}

/// The name of the scenario at a position, from 0, that has no other.
pub(crate) fn default_name(index: usize) -> String {
    format!("scenario-{}", index + 1)
}

/// A scenario with every default filled in.
pub(crate) fn scenario((index, file): (usize, ScenarioFile)) -> ScenarioSpec {
    let name = scenario_name((index, &file));
    let Behaviour { protocol, turns, stream, system, content, max_tokens, .. } = file.behaviour;
    let Behaviour { max_tokens_field, tool_result, think_time, cache_mode, .. } = file.behaviour;
    let Behaviour { prefix_pool, parameters, http, .. } = file.behaviour;
    let Behaviour { expect, category, policy_decision, .. } = file.behaviour;
    ScenarioSpec {
        name,
        weight: file.weight,
        protocol,
        turns,
        stream,
        system,
        // The `http` protocol needs no content; a placeholder for it gets the empty text.
        content: content.unwrap_or(Content::Sized { approx_input_tokens: 0 }),
        max_tokens,
        max_tokens_field,
        tool_result,
        think_time,
        headers: file.headers,
        cache_mode,
        prefix_pool,
        http,
        parameters,
        expect,
        category,
        policy_decision,
    }
}
