//! `plimsoll llm`: load on an LLM endpoint, without a profile.

use std::env;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};
use plimsoll_engine::exchange_once;
use plimsoll_measure::Nanos;
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load, show};
use plimsoll_schedule::{StageSpec, Stages};
use serde_json::{Map, Value, json};

use crate::command::run;
use crate::console;
use crate::exit::{Exit, TargetError, UsageError};
use crate::flags::{
    LlmFlags, LoadFlags, OutputFlags, Part, SessionFlags, TrafficFlags, command_line_profile,
    literal, with_scheme,
};
use crate::processes::run_plan;

const AFTER: &str = include_str!("llm.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Base URL of the endpoint, without `/v1/chat/completions`
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    url: String,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    keys: LlmFlags,
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    traffic: TrafficFlags,
    /// Print the profile and send nothing
    #[arg(long, help_heading = "Output")]
    print_profile: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    session: SessionFlags,
}

/// The load.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
struct Load {
    #[command(flatten)]
    levels: LoadFlags,
    /// Double the users from one on, until the throughput grows by less than 5 %
    #[arg(long, conflicts_with_all = ["concurrency", "rate"])]
    sweep: bool,
}

/// The requests.
#[derive(Args, Debug)]
#[command(next_help_heading = "Request")]
struct Request {
    /// Model to request; several models get equal shares of the requests [default: the first
    /// that the endpoint lists at /v1/models]
    #[arg(short, long = "model", value_name = "NAME,...", value_delimiter = ',')]
    models: Vec<String>,
    /// Input tokens of each request [default: 550]
    #[arg(long, value_name = "TOKENS", conflicts_with = "prompts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    isl: Option<u32>,
    /// Standard deviation of the input tokens: --isl is their mean
    #[arg(long, value_name = "TOKENS", conflicts_with = "prompts")]
    isl_stddev: Option<u32>,
    /// Standard deviation of the output limit; --osl is its mean
    #[arg(long, value_name = "TOKENS")]
    osl_stddev: Option<u32>,
    /// Maximum output tokens per request, unless its record has a limit
    #[arg(long, alias = "max-tokens", value_name = "TOKENS", default_value_t = 150)]
    #[arg(alias = "max-completion-tokens")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    osl: u32,
    /// Recorded traffic or prompts, in a format that `plimsoll import` reads: a random session for
    /// each conversation, whole. Prompts get no marker unless --bust
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    prompts: Option<PathBuf>,
    /// Send each session of --prompts once, in the order of the file, and end after the last one
    #[arg(long, requires = "prompts")]
    in_order: bool,
    /// Reject a file of --prompts with unsupported members, instead of listing them
    #[arg(long, requires = "prompts")]
    strict: bool,
    /// Ask for whole answers instead of streams; without TTFT then
    #[arg(long)]
    no_stream: bool,
}

/// Runs the levels and prints their table.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let part = flags.session.start.part(flags.keys.get("shard"))?;
    if flags.load.sweep && (part.is_shard() || flags.session.start.processes.is_some()) {
        let why = "--sweep needs a single process: give levels with -c";
        return Err(UsageError(why.to_owned()).into());
    }
    let stages = stages(&flags.load, flags.keys.get("max-requests").is_some())?.to_string();
    let mut request = LlmProfile::new(flags, &part)?;
    if flags.print_profile {
        console::print(&request.text(&stages)?)?;
        return Ok(Exit::Pass);
    }
    // A mistake must show before the first load.
    let first = request.plan(&stages)?;
    if let Some(order) = &part.order {
        return order.carry_out(first, flags.session.run.options(None));
    }
    let mut session = flags.session.open();
    let mut options = flags.session.run.options(Some(flags.output.options()));
    options.launch = part.launch;
    options.until_saturated = flags.load.sweep;
    let run = run_plan(&mut session, first, &options)?;
    Ok(run.exit)
}

// The profile of `plimsoll llm`, made of its flags.

const USERS: [u32; 4] = [1, 2, 4, 8];
const INPUT_TOKENS: u32 = 550;
const NAME: &str = "llm";
const DURATION: Nanos = Nanos::from_secs(30);
const WARM_UP: Nanos = Nanos::from_secs(5);
/// Longer than any number of requests should take.
const ENDLESS: Nanos = Nanos::from_secs(3_600);
/// Minimum number of equally long responses for a user's rate within 10 %.
const ANSWERS_PER_USER: u32 = 4;

/// The most users of a sweep, as a power of two.
const MOST_DOUBLINGS: u32 = 10;
/// A target without a list is probed in any case.
const MODELS_TIMEOUT: &str = "10s";
/// Keys that a request for the list of models needs, too.
const CONNECTION: &str =
    "tls.ca_file tls.cert_file tls.key_file tls.insecure connect_to unix_socket proxy";

/// A complete profile except for its stages.
struct LlmProfile {
    keys: Map<String, Value>,
    overrides: Overrides,
}

impl LlmProfile {
    /// The profile of the flags.
    fn new(flags: &Flags, part: &Part) -> Result<Self> {
        let mut overrides = flags.session.export.labels.add_to(part.of(flags.keys.overrides()));
        if let (None, Ok(key)) = (overrides.get("key"), env::var("PLIMSOLL_KEY")) {
            overrides = overrides.with("key", "key", key);
        }
        if let Some(most) = flags.load.levels.most_in_flight() {
            overrides = overrides.with("concurrency", "max_in_flight", most.to_string());
        }
        let mut models = flags.request.models.clone();
        if models.is_empty() && !flags.print_profile {
            models.push(first_model(&with_scheme(&flags.url), &overrides)?);
        }
        Ok(Self { keys: keys(flags, &models)?, overrides })
    }

    /// The plan with these stages.
    fn plan(&mut self, stages: &str) -> Result<Plan> {
        let profile = self.profile(stages);
        // The environment is meant for profiles: PLIMSOLL_TARGET must not override the URL.
        let mut plan = load(&profile, &EnvVars::default(), &self.overrides, Purpose::Run)?;
        // Shards are planned apart, and probe apart.
        plan.limits.answers_per_user = (plan.shard.count() == 1).then_some(ANSWERS_PER_USER);
        Ok(plan)
    }

    /// The profile with these stages, as `plimsoll profile show` prints one.
    fn text(&mut self, stages: &str) -> Result<String> {
        Ok(show(&self.profile(stages), &EnvVars::default(), &self.overrides)?)
    }

    fn profile(&mut self, stages: &str) -> Profile {
        self.keys.insert("stages".to_owned(), stages.into());
        command_line_profile(self.keys.clone())
    }
}

/// The stages of all levels; for a sweep, the stages that it may reach. With one level, a number of
/// requests ends it.
fn stages(load: &Load, counted: bool) -> Result<Stages, UsageError> {
    let Load { levels, sweep } = load;
    let alone = levels.concurrency.len().max(levels.rate.len()) == 1;
    let duration = if counted && alone { ENDLESS } else { DURATION };
    let doublings: Vec<u32> = (0..=MOST_DOUBLINGS).map(|n| 2_u32.pow(n)).collect();
    let users = if *sweep { &doublings[..] } else { &USERS };
    let warm_up = users.first().map(|users| stage(*users, WARM_UP, true));
    let measured = users.iter().map(|users| stage(*users, duration, false));
    levels.stages(&Stages(warm_up.into_iter().chain(measured).collect()))
}

fn stage(users: u32, duration: Nanos, warmup: bool) -> StageSpec {
    let load = plimsoll_schedule::Load::Closed { from: users, to: users };
    StageSpec { load, duration: Some(duration), warmup }
}

/// The first model that the endpoint lists. If the endpoint does not answer, any model will do: the
/// probe before the load reports the error.
fn first_model(url: &str, overrides: &Overrides) -> Result<String> {
    let base = url.trim_end_matches('/').trim_end_matches("/v1");
    let list = json!({"method": "GET", "path": "/v1/models"});
    let keys = json!({"name": NAME, "target": literal(base), "protocol": "http", "http": list, "stages": "1:1s"});
    let profile = command_line_profile(keys.as_object().cloned().unwrap_or_default());
    let mut own = Overrides { headers: overrides.headers.clone(), ..Overrides::default() };
    for key in CONNECTION.split(' ') {
        if let Some(text) = overrides.get(key) {
            own = own.with("model", key, text);
        }
    }
    own = own.with("model", "timeout", MODELS_TIMEOUT);
    own.headers.extend(overrides.get("key").map(|key| format!("authorization: Bearer {key}")));
    let answers = exchange_once(load(&profile, &EnvVars::default(), &own, Purpose::Run)?)?;
    let Some(answer) = answers.first().filter(|answer| answer.status > 0) else {
        return Ok(NAME.to_owned());
    };
    let list: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    list["data"][0]["id"].as_str().map(str::to_owned).ok_or_else(|| {
        let status = answer.status;
        if matches!(status, 401 | 403 | 429 | 500..) {
            let said = list["error"]["message"].as_str().map(|text| format!(": {text}"));
            let said = said.unwrap_or_default();
            return TargetError(format!(
                "GET {base}/v1/models returned {status}{said}; use --model NAME to skip this request"
            ))
            .into();
        }
        UsageError(format!(
            "no --model, and {base}/v1/models lists none (HTTP {status}): give --model NAME"
        ))
        .into()
    })
}

fn keys(flags: &Flags, models: &[String]) -> Result<Map<String, Value>> {
    let Request { osl, osl_stddev, no_stream, .. } = &flags.request;
    let mut keys = Map::new();
    let mut set = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
    set("name", NAME.into());
    set("target", literal(&with_scheme(&flags.url)));
    set("content", content(&flags.request, &flags.traffic));
    set("cache_mode", flags.traffic.cache_mode().into());
    let mut protocol = flags.keys.get("protocol").map(str::to_owned);
    if let Some(file) = &flags.request.prompts {
        let recorded = run::protocol(&run::read_traffic(file, &flags.traffic)?);
        if let Some(recorded) = recorded.filter(|_| protocol.is_none()) {
            set("protocol", recorded.into());
            protocol = Some(recorded.to_owned());
        }
    } else {
        flags.traffic.reject_without_file("give --prompts FILE")?;
    }
    if protocol.as_deref() != Some("openai-embeddings") {
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
    Ok(keys)
}

/// A length, or a normal distribution of lengths.
fn length(mean: u32, stddev: Option<u32>) -> Value {
    stddev.map_or_else(|| mean.into(), |stddev| json!({"mean": mean, "stddev": stddev}))
}

fn content(request: &Request, traffic: &TrafficFlags) -> Value {
    match &request.prompts {
        None => {
            let mean = request.isl.unwrap_or(INPUT_TOKENS);
            json!({"mode": "sized", "approx_input_tokens": length(mean, request.isl_stddev)})
        }
        Some(file) => {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            let order = if request.in_order { "file" } else { "random" };
            let mut keys = traffic.keys();
            keys.insert("mode".to_owned(), "file".into());
            keys.insert("file".to_owned(), literal(&file.to_string_lossy()));
            keys.insert("order".to_owned(), order.into());
            keys.insert("strict".to_owned(), request.strict.into());
            keys.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::LoadFlags;

    #[test]
    fn levels_are_stages() {
        let load = |users: &[u32], rates: &[f64], sweep, warmup: Option<u64>| Load {
            levels: LoadFlags {
                concurrency: users.to_vec(),
                rate: rates.to_vec(),
                duration: None,
                warmup: warmup.map(Nanos::from_secs),
            },
            sweep,
        };
        for (load, counted, text) in [
            (load(&[], &[], false, None), false, "w1:5s,1:30s,2:30s,4:30s,8:30s"),
            (load(&[3, 5], &[], false, Some(0)), true, "3:30s,5:30s"),
            (load(&[3], &[], false, Some(0)), true, "3:1h"),
            (load(&[], &[0.5, 2.0], false, None), false, "w@0.5:5s,@0.5:30s,@2:30s"),
        ] {
            assert_eq!(stages(&load, counted).unwrap(), text.parse().unwrap(), "{text}");
        }
        let sweep = stages(&load(&[], &[], true, None), false).unwrap().to_string();
        assert!(sweep.starts_with("w1:5s,1:30s,2:30s,4:30s,") && sweep.ends_with(",1024:30s"));
    }
}
