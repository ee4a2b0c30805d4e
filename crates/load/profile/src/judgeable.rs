//! Finds limits that no run of a profile can ever keep.

use plimsoll_measure::{Nanos, Operation};
use plimsoll_metrics::{Figure, Limit, Metric, Scope, samples_that_agree};
use plimsoll_plan::{HttpVersion, Scheme, TargetUrl};
use plimsoll_protocol::Dialect;
use plimsoll_schedule::{Arrivals, Load, StageSpec};
use plimsoll_workload::{A2aAction, ToolProtocol};

use crate::error::Fault;
use crate::path::{self, ConfigPath};
use crate::spec::{Behaviour, ProfileFile, ScenarioFile, scenario_name};

/// The fix for a limit without an effect.
const LEAVE_OUT: &str = "leave it out";

/// The thresholds that no run of the profile can keep, with the path of each.
pub(crate) fn faults(file: &ProfileFile, target: &TargetUrl) -> Vec<(ConfigPath, Fault)> {
    let plan = PlannedLoad { file, target };
    let mut faults = Vec::new();
    for (key, limits) in [("thresholds", &file.thresholds), ("bands", &file.bands)] {
        for (metric, limits) in limits {
            for (index, limit) in limits.iter().enumerate() {
                let path = ConfigPath::root().key(key).key(metric).index(index);
                let parsed = Limit::parse(metric, limit).ok();
                faults.extend(parsed.and_then(|limit| Some((path, plan.fault(&limit)?))));
            }
        }
    }
    faults
}

/// The load of a profile, as far as it is known.
struct PlannedLoad<'p> {
    file: &'p ProfileFile,
    target: &'p TargetUrl,
}

impl PlannedLoad<'_> {
    /// The reason why a threshold can never be kept.
    fn fault(&self, bound: &Limit) -> Option<Fault> {
        self.scope_fault(bound.scope())
            .or_else(|| self.metric_fault(bound))
            .or_else(|| self.sample_fault(bound))
    }

    fn stages(&self) -> &[StageSpec] {
        self.file.stages.as_ref().map_or(&[], |stages| &stages.0)
    }

    fn scope_fault(&self, scope: &Scope) -> Option<Fault> {
        let file = self.file;
        match scope {
            Scope::Stage(name) => {
                let number = name.parse::<usize>().ok();
                let exists = number.is_some_and(|n| (1..=self.stages().len()).contains(&n));
                let known = self.stages().iter().map(ToString::to_string);
                if exists { None } else { unknown("stage", name, known) }
            }
            Scope::Target(name) => {
                let listed = file.targets.iter().map(|target| target.name.clone());
                unknown("target", name, listed.chain([self.target.authority()]))
            }
            Scope::Category(name) => {
                let categories = file.scenarios.iter().filter_map(|s| s.behaviour.category.clone());
                unknown("category", name, categories)
            }
            Scope::Operation(name) => {
                let known = Operation::ALL.iter().map(|operation| operation.name().to_owned());
                unknown("operation", name, known)
            }
            // The name of a scenario is checked in every profile, not only here.
            Scope::Scenario(_) | Scope::Run => None,
        }
        .or_else(|| self.warm_up_fault(scope))
    }

    fn warm_up_fault(&self, scope: &Scope) -> Option<Fault> {
        let only_warm_up = !self.stages().is_empty() && self.stages().iter().all(|s| s.warmup);
        (only_warm_up && !matches!(scope, Scope::Stage(_))).then(|| {
            Fault::new(
                "applies to measured stages, but every stage is a warm-up",
                "add a stage without `w`, or name the stage in braces, like `ttft{stage:1}`",
            )
        })
    }

    /// The scenarios of a scope, with their position.
    fn scenarios(&self, scope: &Scope) -> impl Iterator<Item = &ScenarioFile> {
        let all = self.file.scenarios.iter().enumerate();
        let in_scope = all.filter(move |(index, scenario)| match scope {
            Scope::Scenario(name) => scenario_name(*index, scenario) == *name,
            Scope::Category(name) => scenario.behaviour.category.as_deref() == Some(name),
            Scope::Operation(_) => has_operations(&scenario.behaviour),
            Scope::Run | Scope::Stage(_) | Scope::Target(_) => true,
        });
        in_scope.map(|(_, scenario)| scenario)
    }

    fn metric_fault(&self, bound: &Limit) -> Option<Fault> {
        let any = |has: &dyn Fn(&Behaviour) -> bool| {
            self.scenarios(bound.scope()).any(|scenario| has(&scenario.behaviour))
        };
        let (metric, rate) = match bound.figure() {
            Figure::Distribution(metric) => (Some(metric), ""),
            Figure::Rate(rate) => (None, rate.name),
            Figure::Counter(_) => return None,
        };
        let faults = [
            (
                metric.is_some_and(Metric::is_of_streams) && !any(&streams),
                "applies to streaming, but no scenario streams",
                "ask for streams with --set stream=true (`stream: true`; an LLM protocol), or bound `response_time` or `ttfb`",
            ),
            (
                metric == Some(Metric::Tls) && self.target.scheme() == Scheme::Http,
                "applies to TLS, but the target is `http`",
                LEAVE_OUT,
            ),
            (
                metric == Some(Metric::Upgrade) && !any(&|one| one.protocol == Dialect::Websocket),
                "applies to WebSockets, but no scenario uses them",
                "write `protocol: websocket`, or leave it out",
            ),
            (
                metric == Some(Metric::Dns) && is_address(self.target),
                "applies to DNS, but the target is an IP address",
                LEAVE_OUT,
            ),
            (
                metric == Some(Metric::SendStall) && self.file.http_version == HttpVersion::Http1,
                "is about HTTP/2",
                "write `http_version: http2`, or leave it out",
            ),
            (
                rate == "policy_correctness" && !any(&|one| one.expect.is_some()),
                "compares policy decisions, but no scenario expects one",
                "write `expect:` in the scenarios, or leave it out",
            ),
            (
                ["goodput", "good_share"].contains(&rate) && self.file.goodput.is_none(),
                "counts good requests, but the profile does not define them",
                "write `goodput:`, like `goodput: ttft<500ms`, or leave it out",
            ),
        ];
        let found = faults.into_iter().find(|(applies, ..)| *applies);
        found.map(|(_, cause, fix)| Fault::new(cause, fix))
    }

    /// Rejects a percentile that needs more samples than the planned requests.
    fn sample_fault(&self, bound: &Limit) -> Option<Fault> {
        // A stream has many gaps.
        if matches!(bound.figure(), Figure::Distribution(Metric::Itl)) {
            return None;
        }
        let needed = samples_that_agree(bound.quantile()?);
        let most = self.most_requests(bound.scope())?;
        (most < needed as f64).then(|| {
            let most = most.floor();
            Fault::new(
                format!(
                    "needs at least {needed} samples to pass, but its part of the load has at most {most} requests"
                ),
                "bound a lower percentile, or send more requests",
            )
        })
    }

    /// The maximum number of requests in the measured stages of a scope; `None` if it depends on
    /// the target or on a trace.
    fn most_requests(&self, scope: &Scope) -> Option<f64> {
        if self.scenarios(scope).any(|scenario| scenario.behaviour.agent.is_some()) {
            return None;
        }
        let stages = self.stages().iter().enumerate().filter(|(index, stage)| match scope {
            Scope::Stage(name) => stage.to_string() == *name || name.parse() == Ok(index + 1),
            _ => !stage.warmup,
        });
        let arrivals: f64 = stages.map(|(_, stage)| arrivals(stage)).sum::<Option<f64>>()?;
        let weights: f64 = self.file.scenarios.iter().map(|s| s.weight).sum();
        let share: f64 = self.scenarios(scope).map(|s| s.weight).sum::<f64>() / weights;
        let turns = self.scenarios(scope).map(|s| s.behaviour.turns).max()?;
        let drawn = self.file.arrivals == Arrivals::Poisson || share < 1.0;
        let conversations = arrivals * share;
        // Four standard deviations of a Poisson number above its mean.
        let spread = if drawn { 4.0 * conversations.sqrt() } else { 1.0 };
        let most = (conversations + spread) * f64::from(turns);
        most.is_finite().then_some(most)
    }
}

fn unknown(kind: &str, name: &str, known: impl Iterator<Item = String>) -> Option<Fault> {
    let known: Vec<_> = known.collect();
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    let cause = format!("no {kind} is named `{name}`");
    (!known.contains(&name)).then(|| Fault::new(cause, path::instead(name, &known)))
}

/// Mean number of arrivals of an open stage.
fn arrivals(stage: &StageSpec) -> Option<f64> {
    match stage.load {
        Load::Open { from, to } => {
            Some(f64::midpoint(from, to) * stage.duration.map(Nanos::as_secs_f64)?)
        }
        Load::Closed { .. } | Load::Trace => None,
    }
}

fn is_address(target: &TargetUrl) -> bool {
    target.host().parse::<std::net::IpAddr>().is_ok()
}

/// Whether any of a scenario's requests are messages to a tool server or an agent.
fn has_operations(behaviour: &Behaviour) -> bool {
    behaviour.protocol.is_rpc()
        || behaviour.agent.as_ref().is_some_and(|agent| agent.tools == ToolProtocol::Mcp)
}

/// Whether any of a scenario's requests ask for streams.
fn streams(behaviour: &Behaviour) -> bool {
    match behaviour.protocol {
        Dialect::Websocket => true,
        Dialect::Http | Dialect::Mcp => false,
        Dialect::A2a => {
            let steps = behaviour.a2a.iter().flat_map(|agent| &agent.steps);
            steps.filter(|step| step.weight > 0.0).any(|step| step.action == A2aAction::Stream)
        }
        _ => behaviour.stream,
    }
}
