//! How much a plan sends, as far as it tells before the load.

use plimsoll_measure::Nanos;
use plimsoll_plan::Plan;
use plimsoll_schedule::{Load, StageSpec};

/// How many requests the stages ask for, in words. A closed stage sends as many as the target
/// answers.
pub(crate) fn requests(plan: &Plan) -> String {
    let open: f64 = plan.stages.0.iter().map(arrivals_of).sum();
    let conversations = open * turns_per_conversation(plan);
    let users = most_users(plan);
    match (plan.limits.max_requests, users) {
        (Some(most), _) => format!("at most {most} requests"),
        (None, None) => format!("about {conversations:.0} requests"),
        (None, Some(users)) if open > 0.0 => {
            format!("about {conversations:.0} requests and those of up to {users} users")
        }
        (None, Some(1)) => "one user, with as many requests as there are answers".to_owned(),
        (None, Some(users)) => {
            format!("up to {users} users at once, each as many requests as it gets answers")
        }
    }
}

/// The length of all stages, in seconds.
pub(crate) fn seconds(plan: &Plan) -> f64 {
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
