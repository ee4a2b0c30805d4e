//! Builds a plan in a program, without a profile.

use plimsoll_measure::{IdSeed, Seed, Stripe};
use plimsoll_protocol::Dialect;
use plimsoll_schedule::{Arrivals, ScheduleError, Stages};
use plimsoll_workload::{ScenarioSpec, Workload, WorkloadError};

use crate::plan::{HttpPlan, Instrument, Limits, Plan, Target, TargetRole, TlsPlan};
use crate::response_headers::ResponseHeaders;
use crate::secret::Secret;
use crate::url::{ReachPlan, TargetUrl, UrlFault};

/// A reason why a plan cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The target's URL is invalid. Remedy: [`UrlFault::fix`].
    #[error("the URL of the target {fault}: {}", fault.fix())]
    Url {
        /// Problem of the URL.
        #[from]
        fault: UrlFault,
    },
    /// The stages are invalid. Remedy: write them as in a profile.
    #[error(transparent)]
    Stages(#[from] ScheduleError),
    /// A stage plays a trace. Remedy: resolve a profile that names it.
    #[error("a stage plays a trace, which only a profile can name")]
    Trace,
    /// The plan has no requests. Remedy: add a scenario.
    #[error("the plan has no scenario: add one, such as `ScenarioSpec::new(\"chat\", content)`")]
    NoScenario,
    /// A scenario needs a model, but none is named. Remedy: name it.
    #[error("no model is named: set one of the target's models")]
    NoModel,
    /// The scenarios are invalid. Remedy: as each problem says.
    #[error(transparent)]
    Scenarios(#[from] WorkloadError),
}

/// Builds a [`Plan`] for one target, with the defaults of a profile. Settings without a method are
/// fields of the plan.
///
/// ```
/// use plimsoll_plan::PlanBuilder;
/// use plimsoll_workload::{Content, ScenarioSpec};
///
/// let content = Content::Pool { prompts: vec!["Hello?".to_owned()] };
/// let mut plan = PlanBuilder::new("http://127.0.0.1:9000", "@50:10s")
///     .model("mock-fast")
///     .scenario(ScenarioSpec { stream: true, ..ScenarioSpec::new("chat", content) })
///     .build()?;
/// plan.limits.workers = Some(1);
/// # Ok::<(), plimsoll_plan::PlanError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlanBuilder {
    url: String,
    stages: String,
    name: String,
    model: String,
    key: Option<Secret>,
    seed: Seed,
    scenarios: Vec<ScenarioSpec>,
}

impl PlanBuilder {
    /// Starts a plan with these stages on a target, both written as in a profile.
    pub fn new(url: &str, stages: &str) -> Self {
        Self {
            url: url.to_owned(),
            stages: stages.to_owned(),
            name: "run".to_owned(),
            model: String::new(),
            key: None,
            seed: Seed(1),
            scenarios: Vec::new(),
        }
    }

    /// Sets the name of the run.
    pub fn name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Sets the requested model.
    pub fn model(self, model: &str) -> Self {
        Self { model: model.to_owned(), ..self }
    }

    /// Sets the target's API key.
    pub fn key(self, key: &str) -> Self {
        Self { key: Some(Secret::new(key.to_owned())), ..self }
    }

    /// Sets the seed of all random numbers.
    pub fn seed(self, seed: Seed) -> Self {
        Self { seed, ..self }
    }

    /// Adds a scenario.
    pub fn scenario(mut self, scenario: ScenarioSpec) -> Self {
        self.scenarios.push(scenario);
        self
    }

    /// Builds the plan.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn build(self) -> Result<Plan, PlanError> {
        let url: TargetUrl = self.url.parse()?;
        let stages: Stages = self.stages.parse()?;
        self.check(&stages)?;
        Ok(Plan {
            name: self.name,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: self.seed,
            run_id: None,
            shard: Stripe::WHOLE,
            stages,
            arrivals: Arrivals::default(),
            scenarios: self.scenarios,
            trace: None,
            tokenizer: None,
            targets: vec![Target {
                name: url.authority(),
                url,
                model: self.model,
                key: self.key,
                headers: std::collections::BTreeMap::new(),
                protocol: None,
                direct: false,
                role: TargetRole::default(),
                watch: None,
            }],
            versus: None,
            limits: Limits::DEFAULT,
            http: HttpPlan::DEFAULT,
            bind: Vec::new(),
            reach: ReachPlan::default(),
            tls: TlsPlan::default(),
            instrument: Instrument::DEFAULT,
            response_headers: ResponseHeaders::default(),
            goodput: None,
            thresholds: std::collections::BTreeMap::new(),
            gate: std::collections::BTreeMap::new(),
            labels: std::collections::BTreeMap::new(),
            unsent: Vec::new(),
            notes: Vec::new(),
        })
    }

    fn check(&self, stages: &Stages) -> Result<(), PlanError> {
        if stages.play_trace() {
            return Err(PlanError::Trace);
        }
        if self.scenarios.is_empty() {
            return Err(PlanError::NoScenario);
        }
        if self.model.is_empty()
            && self.scenarios.iter().any(|scenario: &ScenarioSpec| {
                scenario.protocol != Dialect::Http && !scenario.protocol.is_rpc()
            })
        {
            return Err(PlanError::NoModel);
        }
        Workload::new(&self.scenarios, None, None, self.seed, IdSeed::default())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workload::Content;

    fn builder(url: &str, stages: &str) -> PlanBuilder {
        let content = Content::Pool { prompts: vec!["Hello?".to_owned()] };
        PlanBuilder::new(url, stages).model("m").scenario(ScenarioSpec::new("chat", content))
    }

    #[test]
    fn a_plan_has_what_was_given_and_the_defaults_of_a_profile() {
        let plan = builder("http://127.0.0.1:9000", "w@5:1s,@10:2s").key("sk-1").build().unwrap();
        assert_eq!(plan.targets[0].url.port(), 9000);
        assert_eq!(plan.targets[0].name, "127.0.0.1:9000");
        assert_eq!(plan.stages.0.len(), 2);
        assert_eq!(plan.limits.max_in_flight, 10_000);
        assert!(!format!("{plan:?}").contains("sk-1"));
    }

    #[test]
    fn a_plan_that_cannot_run_is_refused_with_its_reason() {
        let refused = |builder: PlanBuilder| builder.build().unwrap_err().to_string();
        assert!(refused(builder("127.0.0.1", "1:1s")).contains("has no scheme"));
        assert!(refused(builder("http://h", "fast")).contains("`fast`"));
        assert!(refused(builder("http://h", "trace:1s")).contains("plays a trace"));
        assert!(refused(builder("http://h", "1:1s").model("")).contains("no model is named"));
        assert!(refused(PlanBuilder::new("http://h", "1:1s")).contains("no scenario"));
        let empty = ScenarioSpec::new("empty", Content::Pool { prompts: Vec::new() });
        assert!(refused(builder("http://h", "1:1s").scenario(empty)).contains("empty"));
    }
}
