//! The profile of `plimsoll llm`, made of its flags.

use std::env;

use anyhow::Result;
use plimsoll_measure::Nanos;
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load, show};
use serde_json::{Map, Value, json};

use super::{Flags, Load, Request};
use crate::flags::{Part, command_line_profile, literal, with_scheme};

const USERS: [u32; 4] = [1, 2, 4, 8];
const INPUT_TOKENS: u32 = 550;
const NAME: &str = "llm";
/// Answers of one length give the rate of their user to 10 % from so many on.
const ANSWERS_PER_USER: u32 = 4;

/// The most users of a sweep, as a power of two.
const MOST_DOUBLINGS: u32 = 10;

/// A profile that lacks nothing but its stages.
pub(super) struct LlmProfile {
    keys: Map<String, Value>,
    overrides: Overrides,
}

impl LlmProfile {
    /// That of the flags.
    pub(super) fn new(flags: &Flags, part: &Part) -> Self {
        let mut overrides = flags.export.labels.add_to(part.of(flags.keys.overrides()));
        if let (None, Ok(key)) = (overrides.get("key"), env::var("PLIMSOLL_KEY")) {
            overrides = overrides.with("key", "key", key);
        }
        Self { keys: keys(flags), overrides }
    }

    /// The plan with these stages.
    pub(super) fn plan(&mut self, stages: &str) -> Result<Plan> {
        let profile = self.profile(stages);
        // The environment is meant for profiles: PLIMSOLL_TARGET must not override the URL.
        let mut plan = load(&profile, &EnvVars::default(), &self.overrides, Purpose::Run)?;
        // Shards are planned apart, and probe apart.
        plan.limits.answers_per_user = (plan.shard.count() == 1).then_some(ANSWERS_PER_USER);
        Ok(plan)
    }

    /// The profile with these stages, as `plimsoll profile show` prints one.
    pub(super) fn text(&mut self, stages: &str) -> Result<String> {
        Ok(show(&self.profile(stages), &EnvVars::default(), &self.overrides)?)
    }

    fn profile(&mut self, stages: &str) -> Profile {
        self.keys.insert("stages".to_owned(), stages.into());
        command_line_profile(self.keys.clone())
    }
}

/// The stages of all levels; of a sweep those that it may come to.
pub(super) fn stages(load: &Load) -> String {
    let shapes: Vec<String> = match (load.sweep, &*load.rate, &*load.concurrency) {
        (true, ..) => (0..=MOST_DOUBLINGS).map(|n| 2_u32.pow(n).to_string()).collect(),
        (_, [], []) => USERS.iter().map(ToString::to_string).collect(),
        (_, [], users) => users.iter().map(ToString::to_string).collect(),
        (_, rates, _) => rates.iter().map(|rate| format!("@{rate}")).collect(),
    };
    let warm_up = shapes.first().filter(|_| load.warmup > Nanos::ZERO);
    let warm_up = warm_up.map(|shape| format!("w{shape}:{}", load.warmup));
    let measured = shapes.iter().map(|shape| format!("{shape}:{}", load.duration));
    warm_up.into_iter().chain(measured).collect::<Vec<_>>().join(",")
}

fn keys(flags: &Flags) -> Map<String, Value> {
    let Request { models, osl, osl_stddev, no_stream, .. } = &flags.request;
    let mut keys = Map::new();
    let mut set = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
    set("name", NAME.into());
    set("target", literal(&with_scheme(&flags.url)));
    set("content", content(&flags.request));
    if flags.keys.get("protocol") != Some("openai-embeddings") {
        set("stream", (!no_stream).into());
        set("max_tokens", (*osl).into());
        if osl_stddev.is_some() {
            set("output_tokens", length(*osl, *osl_stddev));
        }
    }
    set("model", models.first().map_or(Value::Null, |model| literal(model)));
    if models.len() > 1 {
        let scenarios =
            models.iter().map(|model| json!({"name": literal(model), "model": literal(model)}));
        set("scenarios", scenarios.collect());
    }
    keys
}

/// A length, or a normal distribution of lengths.
fn length(mean: u32, stddev: Option<u32>) -> Value {
    stddev.map_or_else(|| mean.into(), |stddev| json!({"mean": mean, "stddev": stddev}))
}

fn content(request: &Request) -> Value {
    match &request.prompts {
        None => {
            let mean = request.isl.unwrap_or(INPUT_TOKENS);
            json!({"mode": "sized", "approx_input_tokens": length(mean, request.isl_stddev)})
        }
        Some(file) => {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            let order = if request.in_order { "file" } else { "random" };
            json!({
                "mode": "file",
                "file": literal(&file.to_string_lossy()),
                "order": order,
                "skip_broken": request.skip_broken,
                "strict": request.strict,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_stages() {
        let load = |concurrency: &[u32], rate: &[f64], sweep, warmup| Load {
            concurrency: concurrency.to_vec(),
            rate: rate.to_vec(),
            sweep,
            duration: Nanos::from_secs(30),
            warmup: Nanos::from_secs(warmup),
        };
        for (load, text) in [
            (load(&[], &[], false, 5), "w1:5s,1:30s,2:30s,4:30s,8:30s"),
            (load(&[3, 5], &[], false, 0), "3:30s,5:30s"),
            (load(&[], &[0.5, 2.0], false, 5), "w@0.5:5s,@0.5:30s,@2:30s"),
        ] {
            assert_eq!(stages(&load), text);
        }
        let sweep = stages(&load(&[], &[], true, 5));
        assert!(sweep.starts_with("w1:5s,1:30s,2:30s,4:30s,") && sweep.ends_with(",1024:30s"));
    }
}
