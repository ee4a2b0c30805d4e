//! The plan of a comparison. The flags become a profile and its overrides first, so that all checks
//! are in one place.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum as _;
use plimsoll_measure::Nanos;
use plimsoll_plan::{Plan, TargetUrl};
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use plimsoll_runner::facts;
use plimsoll_schedule::{Load, StageSpec, Stages};
use plimsoll_versus::AddedThreshold;
use serde_json::Value;

use super::target::DIRECT;
use super::{Flags, Schedule, Switch};
use crate::exit::UsageError;
use crate::flags::Part;
use crate::run_result::parse_thresholds;

/// The load without a profile.
const LENGTH: Nanos = Nanos::from_secs(60);
const WARM_UP: Nanos = Nanos::from_secs(3);
/// The profile's default length of a window.
const WINDOW: Nanos = Nanos::from_secs(5);
/// Requests per second and target where requests are free of charge, and elsewhere.
const PRIVATE_RATE: f64 = 100.0;
const PUBLIC_RATE: f64 = 5.0;

/// Short streamed chats.
const CHATS: &str = include_str!("chats.yaml");

/// The target's own path.
const PLAIN: &str = include_str!("plain.yaml");

/// Builds the plan.
pub(super) fn build(flags: &Flags, part: &Part) -> Result<Plan> {
    let environment = EnvVars::from_process();
    let (profile, overrides) = (profile(flags)?, part.of(overrides(flags)?));
    let load_with =
        |overrides: &Overrides| load(&profile, &environment, overrides, Purpose::Versus);
    let given = flags.settings.get("stages");
    let mut overrides =
        flags.load.add_to(overrides, given, |overrides: &Overrides| match flags.profile {
            Some(_) => Ok(load_with(overrides)?.stages),
            None => Ok(usual_stages(flags)),
        })?;
    if flags.profile.is_none() && overrides.get("stages").is_none() {
        overrides = overrides.with("stages", "stages", usual_stages(flags).to_string());
    }
    Ok(load_with(&overrides)?)
}

/// The bounds on the overhead of targets.
pub(in crate::command) fn thresholds(plan: &Plan) -> Result<Vec<AddedThreshold>, UsageError> {
    plan.versus.as_ref().map_or(Ok(Vec::new()), |versus| parse_thresholds(&versus.thresholds))
}

fn profile(flags: &Flags) -> Result<Profile> {
    if let Some(name) = &flags.profile {
        return Ok(Profile::open(name)?);
    }
    let plain = flags.settings.get("protocol") == Some("http");
    let model = if plain || !is_private(flags) { "" } else { "model: mock\n" };
    let text = format!("name: versus\n{model}{}", if plain { PLAIN } else { CHATS });
    Ok(Profile::new(Path::new("command line"), text.into_bytes()))
}

fn overrides(flags: &Flags) -> Result<Overrides, UsageError> {
    let mut overrides = flags.keys.add_to(flags.settings.overrides());
    if let Some(schedule) = flags.comparison.schedule.and_then(|chosen| chosen.to_possible_value())
    {
        overrides = overrides.with("schedule", "versus.schedule", schedule.get_name());
    }
    if let Some(switch) = flags.comparison.control {
        let is_on = matches!(switch, Switch::On);
        overrides = overrides.with("control", "versus.control", is_on.to_string());
    }
    if let Some(targets) = targets(flags)? {
        overrides = overrides.with("target", "targets", targets);
    }
    Ok(flags.export.labels.add_to(overrides))
}

/// The targets of the flags, which replace the profile's targets.
fn targets(flags: &Flags) -> Result<Option<String>, UsageError> {
    let mut all = Vec::new();
    if let Some(direct) = &flags.direct {
        let mut target = direct.to_profile(variable)?;
        target["role"] = DIRECT.into();
        all.push(target);
    }
    for target in &flags.targets {
        all.push(target.to_profile(variable)?);
    }
    Ok((!all.is_empty()).then(|| Value::Array(all).to_string()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The stages without a profile.
fn usual_stages(flags: &Flags) -> Stages {
    let rate = if is_private(flags) { PRIVATE_RATE } else { PUBLIC_RATE };
    let load = Load::Open { from: rate, to: rate };
    let stages = [(WARM_UP, true), (usual_length(flags), false)]
        .map(|(duration, warmup)| StageSpec { load, duration: Some(duration), warmup });
    Stages(stages.to_vec())
}

/// A minute, or long enough for windows of five seconds where targets take turns.
fn usual_length(flags: &Flags) -> Nanos {
    if !matches!(flags.comparison.schedule, Some(Schedule::Turns)) {
        return LENGTH;
    }
    let targets = flags.direct.iter().count() + flags.targets.len() + 1;
    LENGTH.max(WINDOW.scale(f64::from(facts::ROUNDS) * targets as f64))
}

/// Whether all targets of the flags have private addresses.
fn is_private(flags: &Flags) -> bool {
    let mut urls = flags.direct.iter().chain(&flags.targets).map(|target| &target.url);
    urls.all(|url| url.parse::<TargetUrl>().is_ok_and(|url| url.is_private()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_without_a_profile_can_be_compared() {
        for text in [CHATS, PLAIN] {
            let text = format!("name: versus\nmodel: mock\n{text}");
            let profile = Profile::new(Path::new("command line"), text.into_bytes());
            let targets = r#"[{"name":"d","url":"http://127.0.0.1:1"},{"name":"a","url":"http://127.0.0.1:2"}]"#;
            let overrides = Overrides::default().with("target", "targets", targets);
            let overrides = overrides.with("stages", "stages", "@100:60s");
            let plan = load(&profile, &EnvVars::default(), &overrides, Purpose::Versus).unwrap();
            assert_eq!(plan.targets.len(), 2);
        }
    }
}
