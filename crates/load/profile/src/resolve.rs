//! Resolves a profile, the environment and the flags to a plan.

use std::collections::BTreeMap;

use plimsoll_measure::{RunId, Seed, Stripe};
use plimsoll_plan::{
    ADDED, HeaderValue, HttpPlan, Instrument, Limits, Plan, ReachPlan, RetryAfter, Secret, Target,
    TargetRole, TargetUrl, VersusPlan,
};
use plimsoll_workload::with_parts;
use serde::Deserialize as _;

use crate::check::{CheckedTargets, ProfileCheck, Purpose, reference};
use crate::env_vars::EnvVars;
use crate::error::{Fault, Problem, ProblemCollector, Problems, ValueSource};
use crate::layers::{LayeredValues, Overrides};
use crate::parser::parse_values;
use crate::path::ConfigPath;
use crate::source::Profile;
use crate::spec::{self, ProfileFile, RoleFile, TargetFile};
use crate::{foreign_words, judgeable, shown_profile};

/// Resolves a profile to a plan: file, then environment, then flags, with every default filled in.
///
/// # Errors
/// All problems at once.
pub fn load(
    profile: &Profile,
    environment: &EnvVars,
    overrides: &Overrides,
    purpose: Purpose,
) -> Result<Plan, Problems> {
    let mut layers = read(profile)?;
    let resolved = resolve(profile, &mut layers, environment, overrides, purpose);
    let resolved = resolved.map_err(|problems| layers.locate(problems))?;
    let unjudgeable = judgeable::faults(&resolved.file, &resolved.targets.main);
    let mut plan = plan(profile, &layers, resolved);
    let notes = unjudgeable.into_iter();
    plan.notes.extend(notes.map(|(path, fault)| format!("{path}: {}; {}", fault.cause, fault.fix)));
    shared_by_shards(plan)
}

/// Resolves a profile and formats it as a YAML profile again, with every default filled in and with
/// redacted credentials. `check` accepts the result if it accepts the profile.
///
/// # Errors
/// All problems at once.
pub fn show(
    profile: &Profile,
    environment: &EnvVars,
    overrides: &Overrides,
) -> Result<String, Problems> {
    let mut layers = read(profile)?;
    let resolved = resolve(profile, &mut layers, environment, overrides, Purpose::Show);
    let resolved = resolved.map_err(|problems| layers.locate(problems))?;
    let file = resolved.file.clone();
    Ok(shown_profile::yaml(file, &plan(profile, &layers, resolved)))
}

/// A checked profile.
struct Resolved {
    file: ProfileFile,
    targets: CheckedTargets,
    run: RunPart,
}

fn resolve(
    profile: &Profile,
    layers: &mut LayeredValues,
    environment: &EnvVars,
    overrides: &Overrides,
    purpose: Purpose,
) -> Result<Resolved, Problems> {
    layers.apply_environment(environment);
    layers.apply_flags(overrides);
    layers.expand(environment);
    let mut found = layers.check_schema();
    let run = RunPart {
        shard: shard(overrides.shard.as_deref(), &mut found),
        id: run_id(overrides, environment, &mut found),
    };
    let (mut file, found) = typed(layers, found)?;
    file.change_files(|scenario, key, named| {
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        let path = scenario.map_or_else(
            || ConfigPath::root().key(first),
            |index| layers.behaviour_path(index, first),
        );
        let path = if rest.is_empty() { path } else { path.key(rest) };
        // Paths in the profile are relative to it, all others to the current folder.
        if matches!(layers.source(&path), ValueSource::File(_)) {
            *named = profile.resolve(named);
        }
    });
    let check = ProfileCheck { layers, file: &file, purpose, found };
    let targets = check.targets_or_problems()?;
    Ok(Resolved { file, targets, run })
}

/// Parses the text of a profile, without environment and flags. Checks keys and types, but not the
/// meaning of values. Never panics.
///
/// # Errors
/// All problems at once.
pub fn parse(bytes: &[u8]) -> Result<ProfileFile, Problems> {
    let mut layers = read(&Profile::new("profile".as_ref(), bytes.to_vec()))?;
    let found = layers.check_schema();
    let typed = typed(&layers, found).and_then(|(file, found)| found.into_problems().or(file));
    typed.map_err(|problems| layers.locate(problems))
}

fn read(profile: &Profile) -> Result<LayeredValues, Problems> {
    let source_name = profile.source().clone();
    match parse_values(profile.text()) {
        Ok((mut root, lines)) => {
            let notes = foreign_words::translate(&mut root);
            Ok(LayeredValues::new(root, lines, source_name).with_notes(notes))
        }
        Err(fault) => Err(Problem::new(source_name, ConfigPath::root(), fault).into()),
    }
}

/// Types the values. Values that match the schema can always be typed, which a property test
/// checks; the error here is a safeguard.
fn typed(
    layers: &LayeredValues,
    mut found: ProblemCollector,
) -> Result<(ProfileFile, ProblemCollector), Problems> {
    match ProfileFile::deserialize(layers.inherit()) {
        Ok(file) => Ok((file, found)),
        Err(error) => {
            let path = ConfigPath::root();
            let fault = Fault::new(format!("cannot be typed ({error})"), "report this as a bug");
            found.add(Problem::new(layers.source(&path).clone(), path, fault));
            Err(found.into_problems())
        }
    }
}

/// Parses `K/N`. Returns the whole run if it is missing, or invalid, which is reported.
fn shard(text: Option<&str>, found: &mut ProblemCollector) -> Stripe {
    let Some(text) = text else { return Stripe::WHOLE };
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts.and_then(|(index, count)| Stripe::new(index, count)).unwrap_or_else(|| {
        let fix = "write K/N with K from 0 to N-1, like `0/4`";
        found.add(Problem::new(
            ValueSource::Flag("--shard".to_owned()),
            ConfigPath::root(),
            Fault::new(format!("`{text}` is not a shard"), fix),
        ));
        Stripe::WHOLE
    })
}

/// Run id and part of the run, which are not in the profile.
#[derive(Debug)]
struct RunPart {
    shard: Stripe,
    id: Option<RunId>,
}

/// The run id from the flag or else from the environment; an invalid one is reported.
fn run_id(
    overrides: &Overrides,
    environment: &EnvVars,
    found: &mut ProblemCollector,
) -> Option<RunId> {
    let flag = overrides.run_id.as_deref();
    let source_name = match flag {
        Some(_) => ValueSource::Flag("--run-id".to_owned()),
        None => ValueSource::Environment("PLIMSOLL_RUN_ID".to_owned()),
    };
    let text = flag.or_else(|| environment.run_id())?;
    text.parse()
        .map_err(|_| {
            let cause = format!("`{text}` is not a run id");
            let fix = format!("write 1 to {} letters, digits, `-`, `_` or `.`", RunId::MAX_LEN);
            found.add(Problem::new(source_name, ConfigPath::root(), Fault::new(cause, fix)));
        })
        .ok()
}

/// Checks that a plan can be divided into shards. Shards must have the same run id if their
/// conversations share text; otherwise different ids are harmless and give a note. A comparison
/// with several rounds, or with early stopping, cannot be sharded, because its shards would not end
/// together.
fn shared_by_shards(mut plan: Plan) -> Result<Plan, Problems> {
    if plan.shard == Stripe::WHOLE {
        return Ok(plan);
    }
    if let Some(fault) = plan.versus.as_ref().and_then(indivisible) {
        let flag = ValueSource::Flag("--shard".to_owned());
        return Err(Problem::new(flag, ConfigPath::root(), fault).into());
    }
    if plan.run_id.is_some() {
        return Ok(plan);
    }
    let fix = "give every shard the same one, like `--run-id nightly-42` or PLIMSOLL_RUN_ID";
    if plan.shares_text_of_the_run() {
        let cause = "is not enough: the prompts of all shards begin with text from the run id";
        let flag = ValueSource::Flag("--shard".to_owned());
        return Err(Problem::new(flag, ConfigPath::root(), Fault::new(cause, fix)).into());
    }
    plan.notes.push(format!("this shard drew its own run id; {fix}"));
    Ok(plan)
}

/// The reason why a comparison cannot be divided.
fn indivisible(versus: &VersusPlan) -> Option<Fault> {
    if versus.decide {
        let cause = "cannot divide a comparison that ends once it is decided: each shard would end \
                     when its own part is";
        return Some(Fault::new(cause, "leave `decide` out, and say how long with `--for`"));
    }
    (versus.rounds > 1).then(|| {
        let cause = "cannot divide a comparison of several rounds: the shards would not begin a \
                     round together";
        Fault::new(cause, "leave `rounds` out, and start the shards once for each round")
    })
}

/// Builds the plan from a checked file.
fn plan(profile: &Profile, layers: &LayeredValues, resolved: Resolved) -> Plan {
    let Resolved { mut file, targets, run } = resolved;
    let versus = versus(&mut file);
    let mut notes = layers.notes().to_vec();
    if targets.compared.is_empty() && !versus.thresholds.is_empty() {
        notes.push("thresholds on overhead are judged only by `plimsoll versus`".to_owned());
    }
    let versus = Some(versus).filter(|_| !targets.compared.is_empty());
    let targets = all(&mut file, targets);
    let limits = limits(&file);
    let http = http(&file);
    let reach = reach(&file);
    let trace = file.trace.as_ref().and_then(|trace| plimsoll_plan::read_trace(trace).ok());
    let scenarios = with_parts(spec::scenarios(file.scenarios), trace.as_deref());
    let instrument = Instrument {
        kernel_timestamps: file.kernel_timestamps,
        spin: file.spin,
        pin_workers: file.pin_workers,
        event_times: file.event_times,
    };
    let mut thresholds = file.thresholds;
    for (metric, bands) in file.bands {
        thresholds.entry(metric).or_default().extend(bands);
    }
    let mut plan = Plan {
        name: file.name.unwrap_or_else(|| profile.name().to_owned()),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: Seed(file.seed),
        run_id: run.id,
        shard: run.shard,
        stages: file.stages.unwrap_or_default(),
        arrivals: file.arrivals,
        unsent: Vec::new(),
        scenarios,
        trace: file.trace,
        tokenizer: file.tokenizer,
        targets,
        versus,
        limits,
        instrument,
        http,
        bind: file.bind,
        reach,
        tls: file.tls,
        response_headers: file.response_headers,
        goodput: file.goodput,
        thresholds,
        gate: file.gate,
        labels: file.labels,
        notes,
    };
    plan.unsent = unsent(&plan);
    plan
}

/// The members of recorded traffic that are not sent, by file.
fn unsent(plan: &Plan) -> Vec<String> {
    let files = plan.traffic_files().into_iter().filter_map(|(file, trace)| {
        let unused = Some(trace.summary().unused_members()).filter(|unused| !unused.is_empty())?;
        Some(format!("{unused} of {}", file.file_name()?.display()))
    });
    files.collect()
}

const fn http(file: &ProfileFile) -> HttpPlan {
    HttpPlan {
        version: file.http_version,
        streams_per_connection: file.streams_per_connection,
        requests_per_connection: file.requests_per_connection,
        max_connections: file.max_connections,
        idle_limit: file.idle_limit,
        retry_reused: file.retry_reused,
        redirects: file.redirects,
    }
}

/// Redirected connections and the proxy. The schema's check has ensured that all can be parsed.
fn reach(file: &ProfileFile) -> ReachPlan {
    ReachPlan {
        connect_to: file.connect_to.iter().filter_map(|rule| rule.parse().ok()).collect(),
        unix_socket: file.unix_socket.clone(),
        proxy: file.proxy.as_ref().and_then(|proxy| proxy.parse().ok()),
    }
}

const fn limits(file: &ProfileFile) -> Limits {
    Limits {
        answers_per_user: None,
        max_in_flight: file.max_in_flight,
        overflow: file.overflow,
        timeout: file.timeout,
        connect_timeout: file.connect_timeout,
        drain: file.drain,
        max_body: file.max_body.bytes(),
        max_requests: file.max_requests,
        budget: file.budget,
        abort_on_error_rate: file.abort_on_error_rate,
        allow_failures: file.allow_failures,
        honour_retry_after: matches!(file.retry_after, RetryAfter::Honour),
        workers: file.workers,
    }
}

// The targets of a plan: one for a run, several for a comparison.

/// The targets of a checked file; in a comparison the reference first, then its control.
fn all(file: &mut ProfileFile, urls: CheckedTargets) -> Vec<Target> {
    let key = file.key.take().map(Secret::new);
    let model = file.model.take().unwrap_or_default();
    let headers = header_values(std::mem::take(&mut file.headers));
    if urls.compared.is_empty() {
        return vec![Target {
            name: urls.main.authority(),
            url: urls.main,
            model,
            key,
            headers,
            protocol: None,
            direct: false,
            role: TargetRole::Candidate,
            watch: None,
        }];
    }
    let reference = reference(file);
    let own = file.targets.iter().position(|target| target.role == RoleFile::Control);
    let twin = own.is_none() && file.versus.control;
    let shared = Shared { key, model, headers };
    let listed = std::mem::take(&mut file.targets).into_iter().zip(urls.compared);
    let mut all: Vec<_> = listed.map(|(own, url)| shared.target(own, url)).collect();
    all[reference].role = TargetRole::Reference;
    // A control has the same upstream as its reference.
    let direct = all[reference].direct;
    for control in all.iter_mut().filter(|target| target.role == TargetRole::Control) {
        control.direct = direct;
    }
    let twin = twin.then(|| Target {
        name: format!("{}'", all[reference].name),
        role: TargetRole::Control,
        watch: None,
        ..all[reference].clone()
    });
    all.extend(twin);
    all.sort_by_key(|target| match target.role {
        TargetRole::Reference => 0,
        TargetRole::Control => 1,
        TargetRole::Candidate => 2,
    });
    all
}

/// Defaults shared by the targets.
struct Shared {
    key: Option<Secret>,
    model: String,
    headers: BTreeMap<String, HeaderValue>,
}

impl Shared {
    fn target(&self, own: TargetFile, url: TargetUrl) -> Target {
        let mut headers = self.headers.clone();
        for (name, value) in header_values(own.headers) {
            headers.retain(|shared, _| !shared.eq_ignore_ascii_case(&name));
            headers.insert(name, value);
        }
        Target {
            name: own.name,
            url,
            model: own.model.unwrap_or_else(|| self.model.clone()),
            key: own.key.map(Secret::new).or_else(|| self.key.clone()),
            headers,
            protocol: own.protocol,
            direct: own.role == RoleFile::Direct,
            role: match own.role {
                RoleFile::Control => TargetRole::Control,
                RoleFile::Gateway | RoleFile::Direct => TargetRole::Candidate,
            },
            watch: own.watch,
        }
    }
}

/// Takes the comparison's options out of a checked file, including its thresholds on overhead.
fn versus(file: &mut ProfileFile) -> VersusPlan {
    let versus = file.versus.clone();
    let thresholds = file.thresholds.extract_if(.., |key, _| key.starts_with(ADDED)).collect();
    VersusPlan {
        schedule: versus.schedule,
        order: versus.order,
        gap: versus.gap,
        window: versus.window,
        alone: versus.alone,
        replies: versus.replies,
        margin: versus.margin,
        decide: versus.decide,
        rounds: versus.rounds.max(1),
        every: versus.every,
        thresholds,
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
