//! Asks tool servers for their tools, before a run is prepared.

use std::time::Duration;

use plimsoll_measure::{MonotonicClock, ScenarioId, TargetId};
use plimsoll_plan::Plan;
use plimsoll_protocol::rpc::Request as Message;
use plimsoll_protocol::rpc::mcp::Revision;
use plimsoll_protocol::{Dialect, RequestContent, Turn};
use plimsoll_transport::{Request, SingleClient, SingleResponse};
use plimsoll_workload::{
    AgentRole, DiscoveryAnswer, ScenarioSpec, ToolDiscovery, ToolProtocol, offered_to_model,
};

use crate::error::EngineError;
use crate::prepared::PreparedRun;
use crate::probe::local_runtime;
use crate::route::Route;

/// How long each answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most bytes of a list of tools.
const MOST_BYTES: usize = 4 << 20;

/// Fills in the parts that a plan leaves to the tool servers: the steps of sessions whose scenario
/// names none, and for agents the revision of MCP and the tools that the model is offered. The
/// first target is asked. A plan that leaves nothing open sends nothing.
///
/// # Errors
/// A server does not answer, or lacks the tools that the plan names.
pub fn discover(mut plan: Plan) -> Result<Plan, EngineError> {
    let open: Vec<_> = (0..plan.scenarios.len()).filter(|index| is_open(&plan, *index)).collect();
    if open.is_empty() {
        return Ok(plan);
    }
    let run = PreparedRun::new(plan.clone())?;
    local_runtime()?.block_on(async {
        for index in open {
            if plan.scenarios[index].agent.is_some() {
                fill_agent(&run, &mut plan, index).await;
            } else {
                fill_steps(&run, &mut plan, index).await?;
            }
        }
        Ok(plan)
    })
}

/// Whether a scenario leaves something to the tool server.
fn is_open(plan: &Plan, index: usize) -> bool {
    let ScenarioSpec { agent, mcp, protocol, parameters, .. } = &plan.scenarios[index];
    match agent {
        Some(AgentRole::Agent(agent)) => {
            let unknown = agent.revision.is_none() || !parameters.contains_key("tools");
            agent.tools == ToolProtocol::Mcp && unknown
        }
        Some(_) => false,
        None => *protocol == Dialect::Mcp && mcp.as_ref().is_some_and(|mcp| mcp.steps.is_empty()),
    }
}

async fn fill_steps(run: &PreparedRun, plan: &mut Plan, index: usize) -> Result<(), EngineError> {
    let name = plan.scenarios[index].name.clone();
    let Some(mcp) = &mut plan.scenarios[index].mcp else { return Ok(()) };
    let target = run.plan.targets.first().map(|target| target.url.to_string()).unwrap_or_default();
    match ask(run, index, ToolDiscovery::new(mcp.revision, &mcp.path)).await {
        Ok(tools) => {
            mcp.delete &= tools.deletes();
            mcp.steps = tools.steps(mcp).map_err(|cause| EngineError::Tools {
                scenario: name,
                target,
                cause,
            })?;
            Ok(())
        }
        Err(cause) => Err(EngineError::Unasked { scenario: name, target, cause }),
    }
}

/// If the server does not answer, the agent stays as it is: the server may not list the tools that
/// the agent calls.
async fn fill_agent(run: &PreparedRun, plan: &mut Plan, index: usize) {
    let part = plan.scenarios.iter().position(|own| {
        own.agent.as_ref().is_some_and(
            |role: &AgentRole| matches!(role, AgentRole::Tools { of, .. } if *of == index),
        )
    });
    let Some(AgentRole::Agent(agent)) = &plan.scenarios[index].agent else { return };
    let Some(part) = part else { return };
    let tried = match agent.revision {
        Some(known) => vec![known],
        None => vec![Revision::V20260728, Revision::V20251125],
    };
    for revision in tried {
        let discovery = ToolDiscovery::new(revision, agent.tool_path());
        let Ok(tools) = ask(run, part, discovery).await else { continue };
        if let Some(mcp) = &mut plan.scenarios[part].mcp {
            mcp.revision = revision;
            mcp.delete = revision.has_sessions() && tools.deletes();
        }
        let scenario = &mut plan.scenarios[index];
        if let Some(AgentRole::Agent(agent)) = &mut scenario.agent {
            agent.revision = Some(revision);
        }
        if !scenario.parameters.contains_key("tools") && !tools.offered().is_empty() {
            let offered = offered_to_model(tools.offered(), scenario.protocol);
            scenario.parameters.insert("tools".to_owned(), offered);
        }
        return;
    }
}

/// Carries out a session that asks for the tools.
async fn ask(
    run: &PreparedRun,
    scenario: usize,
    mut discovery: ToolDiscovery,
) -> Result<ToolDiscovery, String> {
    let connectors = run.connectors().map_err(|error| error.to_string())?;
    let connector = connectors.into_iter().next().ok_or("the plan has no target")?;
    let client = SingleClient::over(connector, MonotonicClock::start());
    let route = run.route(ScenarioId(u16::try_from(scenario).unwrap_or(0)), TargetId(0));
    while let Some(message) = discovery.request() {
        let sent = tokio::time::timeout(PATIENCE, send(&client, route, &message)).await;
        let reply =
            sent.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))?;
        let session = reply.header("mcp-session-id");
        discovery.note(DiscoveryAnswer { status: reply.status, session, body: &reply.body })?;
    }
    Ok(discovery)
}

async fn send(
    client: &SingleClient,
    route: &Route,
    message: &Message,
) -> Result<SingleResponse, String> {
    let turn = Turn { content: RequestContent::Rpc(message), stream: false, max_tokens: None };
    let (head, encoded) = route.encode(&turn, None)?;
    let mut reply = SingleResponse::keeping(MOST_BYTES);
    let connection = client.connect().await.map_err(|failure| failure.to_string())?;
    let request = Request { head: &head, id: None, encoded, may_wait: false };
    match connection.exchange(request, &mut reply).await {
        // A stream that has brought its answer may go on.
        Err(failure) if reply.body.is_empty() => Err(failure.to_string()),
        _ => Ok(reply),
    }
}
