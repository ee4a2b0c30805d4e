//! Configuration keys of the agent that the gateway runs.

use serde::Deserialize;

use crate::config::units::HumanDuration;

/// The agent that the gateway itself runs.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ChatSpec {
    /// Name of the upstream with the model; without it the first one.
    pub upstream: Option<String>,
    /// The model.
    pub model: String,
    /// Most answers of the model until one without tool calls: 1 to 20.
    pub steps: u32,
    /// Most runs in progress at once; further ones are refused with 503.
    pub runs: usize,
    /// Most runs in progress of one tenant, without a tenant of one consumer or client address;
    /// further ones are refused with 429.
    pub owner_runs: usize,
    /// Time limit of a run.
    pub run_timeout: HumanDuration,
    /// Time that the result of a run can be read. In memory it may go earlier, when the 16 MiB for
    /// all results are taken.
    pub keep: HumanDuration,
}

impl Default for ChatSpec {
    fn default() -> Self {
        Self {
            upstream: None,
            model: "mock-fast".to_owned(),
            steps: 20,
            runs: 1_000,
            owner_runs: 100,
            run_timeout: HumanDuration::secs(600),
            keep: HumanDuration::secs(3_600),
        }
    }
}
