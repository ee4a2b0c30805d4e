//! A small valid profile, and shared helpers.

use std::path::Path;

use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Problems, Profile, Purpose, load};

/// A small valid profile.
const BASE: &str = "\
target: http://127.0.0.1:9000
model: m
stages: 1:1s
content: {mode: sized, approx_input_tokens: 8}
";

/// The small valid profile with `lines`, which replace its lines with the same keys.
pub(crate) fn base_with(lines: &str) -> String {
    let keys: Vec<_> = lines.lines().map(key_of).collect();
    let kept = BASE.lines().filter(|line| !keys.contains(&key_of(line)));
    kept.chain(lines.lines()).collect::<Vec<_>>().join("\n")
}

fn key_of(line: &str) -> String {
    line.split(':').next().unwrap_or_default().to_owned()
}

/// Resolves a text as if it were the file `p.yaml`.
pub(crate) fn resolve(
    text: &str,
    variables: &[(&str, &str)],
    overrides: &Overrides,
) -> Result<Plan, Problems> {
    let profile = Profile::new(Path::new("p.yaml"), text.as_bytes().to_vec());
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment: EnvVars = variables.collect();
    load(&profile, &environment, overrides, Purpose::Run)
}
