//! From a profile, the environment and the flags to a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_measure::{Seed, Stripe};
use plimsoll_workload::{Content, ScenarioSpec, TraceSpec};
use serde::Deserialize as _;

use crate::check::{Check, resolve_path};
use crate::document::Profile;
use crate::draft::{Draft, Found};
use crate::environment::Environment;
use crate::error::{Fault, Problem, Problems, Source};
use crate::overrides::Overrides;
use crate::place::ConfigPath;
use crate::plan::{HttpPlan, Instrument, Limits, Plan, Target, TlsPlan};
use crate::secret::{HeaderValue, Secret};
use crate::spec::{Behaviour, ProfileFile, ScenarioFile};
use crate::tree;
use crate::url::TargetUrl;

/// What a plan is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To look at it: a key that is still a placeholder is accepted.
    Check,
    /// To send its load.
    Run,
}

/// Resolves a profile to a plan: file, then environment, then flags; every default filled in.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn load(
    profile: &Profile,
    environment: &Environment,
    overrides: &Overrides,
    purpose: Purpose,
) -> Result<Plan, Problems> {
    let mut draft = read(profile)?;
    draft.apply_environment(environment);
    draft.apply_flags(overrides);
    draft.expand(environment);
    let mut found = draft.check_shape();
    let shard = shard(overrides.shard.as_deref(), &mut found);
    let (file, found) = typed(&draft, found)?;
    let check = Check { profile, draft: &draft, file: &file, purpose, found };
    let target = check.target_or_problems()?;
    Ok(plan(profile, &draft, file, target, shard))
}

/// Reads the text of a profile, without environment and flags: its keys and types are checked, the sense
/// of its values is not. Never panics, whatever the bytes.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn parse(bytes: &[u8]) -> Result<ProfileFile, Problems> {
    let mut draft = read(&Profile::new("profile".as_ref(), bytes.to_vec()))?;
    let found = draft.check_shape();
    let (file, found) = typed(&draft, found)?;
    found.into_problems().or(file)
}

fn read(profile: &Profile) -> Result<Draft, Problems> {
    let source_name = profile.source().clone();
    match tree::read(profile.text()) {
        Ok(root) => Ok(Draft::new(root, source_name)),
        Err(fault) => Err(Problem { source_name, place: ConfigPath::top(), fault }.into()),
    }
}

/// Types the values. What the schema lets pass can be typed; that it is so is a property test, and the
/// error here its safety net.
fn typed(draft: &Draft, mut found: Found) -> Result<(ProfileFile, Found), Problems> {
    match ProfileFile::deserialize(draft.inherit()) {
        Ok(file) => Ok((file, found)),
        Err(error) => {
            let place = ConfigPath::top();
            let fault = Fault::new(format!("cannot be typed ({error})"), "report this as a bug");
            found.add(Problem { source_name: draft.source(&place).clone(), place, fault });
            Err(found.into_problems())
        }
    }
}

/// Reads `K/N`; the whole where nothing is asked for, or nonsense, which is reported.
fn shard(text: Option<&str>, found: &mut Found) -> Stripe {
    let Some(text) = text else { return Stripe::WHOLE };
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts.and_then(|(index, count)| Stripe::new(index, count)).unwrap_or_else(|| {
        let mend = "write K/N with K from 0 to N-1, like `0/4`";
        found.add(Problem {
            source_name: Source::Flag("--shard".to_owned()),
            place: ConfigPath::top(),
            fault: Fault::new(format!("`{text}` is not a part of a run"), mend),
        });
        Stripe::WHOLE
    })
}

/// Builds the plan of a file that was checked.
fn plan(
    profile: &Profile,
    draft: &Draft,
    file: ProfileFile,
    target: TargetUrl,
    shard: Stripe,
) -> Plan {
    let path = |place: ConfigPath, path: PathBuf| resolve_path(profile, draft, &place, &path);
    let top = |key| ConfigPath::top().key(key);
    let limits = limits(&file);
    let http = HttpPlan {
        version: file.http_version,
        streams_per_connection: file.streams_per_connection,
        requests_per_connection: file.requests_per_connection,
    };
    let instrument = Instrument {
        kernel_timestamps: file.kernel_timestamps,
        spin: file.spin,
        pin_workers: file.pin_workers,
        event_times: file.event_times,
    };
    Plan {
        name: file.name.unwrap_or_else(|| profile.name().to_owned()),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: Seed(file.seed),
        shard,
        stages: file.stages.unwrap_or_default(),
        arrivals: file.arrivals,
        scenarios: file.scenarios.into_iter().enumerate().map(scenario).collect(),
        trace: file
            .trace
            .map(|trace| TraceSpec { file: path(top("trace").key("file"), trace.file), ..trace }),
        tokenizer: file.tokenizer.map(|file| path(top("tokenizer"), file)),
        targets: vec![Target {
            name: target.authority(),
            url: target,
            model: file.model.unwrap_or_default(),
            key: file.key.map(Secret::new),
            headers: header_values(file.headers),
            protocol: None,
        }],
        limits,
        instrument,
        http,
        bind: file.bind,
        tls: TlsPlan {
            ca_file: file.tls.ca_file.map(|file| path(top("tls").key("ca_file"), file)),
            ..file.tls
        },
        thresholds: file.thresholds,
        bands: file.bands,
        labels: file.labels,
    }
}

const fn limits(file: &ProfileFile) -> Limits {
    Limits {
        max_in_flight: file.max_in_flight,
        overflow: file.overflow,
        timeout: file.timeout,
        connect_timeout: file.connect_timeout,
        drain: file.drain,
        max_body: file.max_body.bytes(),
        workers: file.workers,
    }
}

fn header_values(headers: BTreeMap<String, String>) -> BTreeMap<String, HeaderValue> {
    headers
        .into_iter()
        .map(|(name, value)| {
            let value = HeaderValue::new(&name, value);
            (name, value)
        })
        .collect()
}

/// The name of a scenario, given or by its position.
pub(crate) fn scenario_name((index, file): (usize, &ScenarioFile)) -> String {
    file.name.clone().unwrap_or_else(|| format!("scenario-{}", index + 1))
}

/// A scenario with every default filled in.
pub(crate) fn scenario((index, file): (usize, ScenarioFile)) -> ScenarioSpec {
    let name = scenario_name((index, &file));
    let Behaviour { protocol, turns, stream, system, content, max_tokens, .. } = file.behaviour;
    let Behaviour { think_time, cache_mode, prefix_pool, parameters, http, .. } = file.behaviour;
    let Behaviour { expect, category, policy_decision, .. } = file.behaviour;
    ScenarioSpec {
        name,
        weight: file.weight,
        protocol,
        turns,
        stream,
        system,
        // Plain HTTP needs no prompt; a template that asks for one all the same gets the empty text.
        content: content.unwrap_or(Content::Sized { approx_input_tokens: 0 }),
        max_tokens,
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
