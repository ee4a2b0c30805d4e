//! The announcement of the load on a remote target, and the question whether to continue. A first
//! run against one's own gateway should not surprise anybody.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use plimsoll_measure::Nanos;
use plimsoll_plan::{Plan, Target};
use plimsoll_schedule::{Load, StageSpec};

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// Send it.
    Given,
    /// Do not.
    Refused,
}

/// The load of the plan, if any target is remote.
pub(super) fn announcement(plan: &Plan) -> Option<String> {
    let mut beyond = plan.targets.iter().filter(|target| !target.url.is_loopback());
    beyond.next().map(|target| sentence(plan, target))
}

/// Asks on a terminal. Scripts have no terminal and continue without a question.
pub(super) fn consent() -> io::Result<Consent> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(Consent::Given);
    }
    ask("Send it? [y/N] (--yes: no question; --smoke: ten requests of each scenario) ")
}

fn ask(question: &str) -> io::Result<Consent> {
    let mut stderr = io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let given = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    Ok(if given { Consent::Given } else { Consent::Refused })
}

/// Requests, tokens and time, with "at most" and "about" where the numbers are limits or estimates.
fn sentence(plan: &Plan, target: &Target) -> String {
    let (seconds, requests) = (seconds(plan), requests(plan));
    let most_tokens = plan.scenarios.iter().map(|scenario| scenario.max_tokens).max().flatten();
    let tokens = most_tokens.map_or_else(
        || "answers as long as the model makes them".to_owned(),
        |most| format!("answers of at most {most} tokens"),
    );
    format!("to {}: {requests}, {tokens}, {seconds:.0} s of load", target.url)
}

/// How many requests the stages ask for, in words. A closed stage sends as many as the target
/// answers.
fn requests(plan: &Plan) -> String {
    let open: f64 = plan.stages.0.iter().map(arrivals_of).sum();
    let conversations = open * turns_per_conversation(plan);
    let users = most_users(plan);
    match (plan.limits.max_requests, users) {
        (Some(most), _) => format!("at most {most} requests"),
        (None, None) => format!("about {conversations:.0} requests"),
        (None, Some(users)) if open > 0.0 => {
            format!("about {conversations:.0} requests, plus the requests of up to {users} users")
        }
        (None, Some(1)) => "one user, with as many requests as there are answers".to_owned(),
        (None, Some(users)) => {
            format!("up to {users} users at once, each as many requests as it gets answers")
        }
    }
}

/// The length of all stages, in seconds.
fn seconds(plan: &Plan) -> f64 {
    plan.stages.0.iter().map(seconds_of).sum()
}

/// The most virtual users; `None` without a closed stage.
fn most_users(plan: &Plan) -> Option<u32> {
    plan.stages.0.iter().filter_map(users_of).max()
}

fn turns_per_conversation(plan: &Plan) -> f64 {
    let weights: f64 = plan.scenarios.iter().map(|scenario| scenario.weight).sum();
    let turns: f64 =
        plan.scenarios.iter().map(|scenario| scenario.weight * f64::from(scenario.turns)).sum();
    turns / weights
}

fn seconds_of(stage: &StageSpec) -> f64 {
    stage.duration.map_or(0.0, Nanos::as_secs_f64)
}

/// The mean rate times the length.
fn arrivals_of(stage: &StageSpec) -> f64 {
    match stage.load {
        Load::Open { from, to } => f64::midpoint(from, to) * seconds_of(stage),
        Load::Closed { .. } | Load::Trace => 0.0,
    }
}

fn users_of(stage: &StageSpec) -> Option<u32> {
    match stage.load {
        Load::Closed { from, to } => Some(from.max(to)),
        Load::Open { .. } | Load::Trace => None,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::PlanBuilder;
    use plimsoll_workload::{Content, ScenarioSpec};

    use super::*;

    fn plan(target: &str, stages: &str) -> Plan {
        let content = Content::Pool { prompts: vec!["hi".to_owned()] };
        let chat =
            ScenarioSpec { turns: 3, max_tokens: Some(200), ..ScenarioSpec::new("chat", content) };
        PlanBuilder::new(target, stages).model("m").scenario(chat).build().unwrap()
    }

    #[test]
    fn it_says_requests_tokens_and_time() {
        // 10 a second for 5 s, and 5 on average for 20 s: 150 conversations of 3 turns.
        let open = plan("http://192.0.2.1:80", "@10:5s,@0..10:20s");
        let said = sentence(&open, &open.targets[0]);
        assert!(said.contains("about 450 requests, answers of at most 200 tokens, 25 s"), "{said}");
        let closed = plan("http://192.0.2.1:80", "10..200:60s");
        let said = sentence(&closed, &closed.targets[0]);
        assert!(said.contains("up to 200 users at once"), "{said}");
    }

    #[test]
    fn nothing_is_said_of_this_machine() {
        assert_eq!(announcement(&plan("http://127.0.0.1:9", "200:60s")), None);
        assert!(announcement(&plan("http://192.0.2.1:9", "200:60s")).is_some());
    }
}
