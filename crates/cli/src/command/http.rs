//! `plimsoll http`: load on any HTTP endpoint, without a profile.

mod body;
mod urls;

use std::path::PathBuf;

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use body::Body;
use clap::{Args, ValueHint};
use plimsoll_measure::Nanos;
use plimsoll_metrics::{DistributionSummary, Metric, QUANTILES};
use plimsoll_plan::{Plan, redacted_path};
use plimsoll_profile::{EnvVars, Purpose, load};
use plimsoll_report::levels::Levels;
use plimsoll_report::screen::{Rest, Rows, Screen, Tone, debug_build};
use plimsoll_report::table::Table;
use plimsoll_report::{format, run_findings, run_verdict};
use plimsoll_run_files::RowFormat;
use plimsoll_runner::folder::RunDirOptions;
use plimsoll_schedule::{Load, StageSpec, Stages};
use plimsoll_workload::StatusSet;
use serde_json::{Map, Value, json};
use urls::{ListedRequest, Requests};

use crate::console::{self, Show};
use crate::exit::{Exit, TargetError, UsageError};
use crate::flags::{
    HttpFlags, LoadFlags, Part, SessionFlags, command_line_profile, literal, with_scheme,
};
use crate::processes::run_plan;
use crate::run_result::levels_json;
use crate::session::{FinishedRun, NO_FILES};

const AFTER: &str = include_str!("http.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// URLs to load, one after another
    #[arg(required_unless_present = "urls_file", value_name = "URL", value_hint = ValueHint::Url)]
    urls: Vec<String>,
    /// Load the requests of a file, each as often as its weight says; all of one server. A line for
    /// each: `[METHOD] URL [WEIGHT]`, or an object with `url`, and perhaps `method`, `body`,
    /// `headers` and `weight`
    #[arg(long = "urls", value_name = "FILE", conflicts_with_all = ["urls", "body", "method"])]
    #[arg(value_hint = ValueHint::FilePath)]
    urls_file: Option<PathBuf>,
    #[command(flatten)]
    load: LoadFlags,
    /// Use HTTP/2 with this many concurrent streams per connection [default: HTTP/1.1; 10 streams
    /// if no number is given]
    #[arg(long, value_name = "STREAMS", num_args = 0..=1, default_missing_value = "10")]
    #[arg(help_heading = "Connections")]
    http2: Option<u32>,
    #[command(flatten)]
    keys: HttpFlags,
    #[command(flatten)]
    request: Request,
    /// Write the files of each run to a new folder in this one [default: no files]
    #[arg(long, value_name = "DIR", help_heading = "Output", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    session: SessionFlags,
}

/// The request.
#[derive(Args, Debug)]
#[command(next_help_heading = "Request")]
pub(crate) struct Request {
    /// HTTP method [default: GET, or POST with --body]
    #[arg(short = 'X', short_alias = 'm', long, value_name = "NAME")]
    method: Option<String>,
    /// Request body, or `@FILE` for the content of a file, `@-` for standard input [default: none].
    /// Non-UTF-8 content is sent as is
    #[arg(short, long, value_name = "TEXT")]
    body: Option<String>,
    /// User and password of basic authentication
    #[arg(short = 'a', long, value_name = "USER:PASSWORD")]
    basic_auth: Option<String>,
    /// Status codes counted as success, like `200,304,404`, `2xx` or `any`
    /// [default: 2xx and 304]
    #[arg(long, value_name = "STATUSES")]
    expect: Option<StatusSet>,
}

/// Loads the endpoints one after another and compares them.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    // All plans first: a mistake in the last URL must show before the first load.
    let part = flags.session.start.part(flags.keys.get("shard"))?;
    check_division(flags, &part)?;
    let body = Body::read(flags.request.body.as_deref(), &flags.keys.overrides().headers)?;
    let mut urls: Vec<_> = flags.urls.iter().map(|url| with_scheme(url)).collect();
    let mut plans = Vec::new();
    for url in &urls {
        plans.push(build_plan(flags, url, &body, &part)?);
    }
    if let Some(file) = &flags.urls_file {
        let requests = urls::read(file)?;
        urls.push(requests.origin.clone());
        plans.push(build_of(flags, &requests, &part)?);
    }
    if let (Some(order), Some(plan)) = (&part.order, plans.pop_if(|_| part.order.is_some())) {
        return order.carry_out(plan, flags.session.run.options(None));
    }
    let mut session = flags.session.open();
    if let Some(sentence) = body.guess() {
        session.status().info(&sentence);
    }
    let output = flags.out.clone().map(|out| RunDirOptions {
        out,
        rows: Some(RowFormat::default()),
        page: true,
    });
    let mut options = flags.session.run.options(output);
    options.launch = part.launch;
    let several = urls.len() > 1;
    let json = options.show == Show::Json;
    let junit = if several { options.junit.take() } else { None };
    if several && options.show != Show::Full {
        options.show = Show::Nothing;
    }
    let (mut exit, mut finished, mut failed) = (Exit::Pass, Vec::new(), None);
    for plan in plans {
        if exit == Exit::Interrupted || failed.is_some() {
            break;
        }
        match run_plan(&mut session, plan, &options) {
            Ok(run) => {
                exit = exit.max(run.exit);
                finished.push(run);
            }
            Err(error) => failed = Some(error),
        }
    }
    // Measured results are shown even if a later run failed.
    if several && !finished.is_empty() {
        let mut both = side_by_side(&urls, &finished);
        let failures = failed.iter().filter(|error| error.is::<TargetError>());
        failures.for_each(|error| both.verdict(Tone::Bad, &format!("FAIL: {error}")));
        console::write_junit(junit.as_deref(), &both)?;
        if json {
            let levels: Vec<_> = finished.iter().map(|run| Levels::new(&run.summary)).collect();
            console::print(&levels_json(&levels)?)?;
        } else {
            console::print_screen(&both)?;
        }
    }
    failed.map_or(Ok(exit), Err)
}

/// Only a single run can be divided, because its parts find each other.
fn check_division(flags: &Flags, part: &Part) -> Result<(), UsageError> {
    let divided = part.is_shard() || flags.session.start.processes.is_some();
    let why = if divided && flags.urls.len() > 1 {
        "--shard and --processes divide a single run: give one URL"
    } else if divided && flags.request.body.as_deref() == Some("@-") {
        "only one process can read the standard input: give the body as a file"
    } else if part.is_shard() && part.order.is_none() && flags.out.is_none() {
        "a shard writes its counts to a folder: name it with --out DIR"
    } else {
        return Ok(());
    };
    Err(UsageError(why.to_owned()))
}

// The comparison of several endpoints.

const HEAD: [&str; 7] = ["", "done/s", "ok", "p50", "p90", "p99", "max"];

/// The most endpoints that are shown.
const MOST: usize = 10;

/// One row for each endpoint, with the times of the reports' headlines.
fn side_by_side(urls: &[String], runs: &[FinishedRun]) -> Screen {
    let mut screen = Screen::new(Rest::Flag);
    // All have the same stages.
    let first = runs.first().map(|run| &run.summary);
    let metric = first.map_or(Metric::ServiceTime, |summary| summary.metadata.headline_time());
    let mut table = Table::new(HEAD);
    for (url, run) in urls.iter().zip(runs) {
        table.row(row(&redacted_path(url), run, metric));
    }
    let build = first.map_or("", |summary| debug_build(&summary.metadata.environment));
    screen.title(&format!("Side by side: {} of {} endpoints{build}", runs.len(), urls.len()));
    let times = format!("percentiles: {}", metric.title().to_lowercase());
    screen.rows(&times, Rows { table, unit: "endpoints", most: MOST, ..Rows::default() });
    let mut verdicts = Vec::new();
    for (url, run) in urls.iter().zip(runs) {
        let path = redacted_path(url);
        screen.stands_out(run_findings(&run.summary).into_iter().map(|item| item.named(&path)));
        let (tone, text) = run_verdict(&run.summary);
        verdicts.push((tone, text.replacen(": ", &format!(": {path}: "), 1)));
    }
    verdicts.sort_by_key(|(tone, _)| std::cmp::Reverse(*tone));
    let (tones, texts): (Vec<_>, Vec<_>) = verdicts.into_iter().unzip();
    screen.verdict(tones.first().copied().unwrap_or(Tone::Unsure), &texts.join("; "));
    for run in runs {
        if let Rest::Folder(path) = &run.rest {
            screen.folder(path);
        }
    }
    if runs.iter().all(|run| run.rest == Rest::Flag) {
        screen.file(NO_FILES);
    }
    screen
}

fn row(url: &str, run: &FinishedRun, metric: Metric) -> [String; HEAD.len()] {
    let total = &run.summary.results.total;
    let times = total.distribution(metric);
    [
        url.to_owned(),
        format::limited_rate(total.named_rate("throughput")),
        format::share_of(total.counters.ok_share()),
        format::or_dash(times.and_then(DistributionSummary::middle), |middle| {
            format::middle(&middle)
        }),
        format::or_dash(times, |times| format::percentile(times, &QUANTILES[1])),
        format::or_dash(times, |times| format::percentile(times, &QUANTILES[3])),
        format::limited_time(times.map(DistributionSummary::max_figure)),
    ]
}

// The plan of `plimsoll http`. The flags become a profile first, so that all checks are in one
// place.

const CONNECTIONS: u32 = 64;
const DURATION: Nanos = Nanos::from_secs(10);
const WARM_UP: Nanos = Nanos::from_secs(2);
/// Longer than any number of requests should take.
const ENDLESS: Nanos = Nanos::from_secs(3_600);

/// Builds the plan for one URL.
fn build_plan(flags: &Flags, url: &str, body: &Body, part: &Part) -> Result<Plan> {
    let (base, path) = split(url);
    let mut keys = keys(flags, base)?;
    keys.insert("http".to_owned(), request(&flags.request, path, body));
    resolved(flags, keys, part)
}

/// Builds the plan for the requests of a file.
fn build_of(flags: &Flags, requests: &Requests, part: &Part) -> Result<Plan> {
    let mut keys = keys(flags, &requests.origin)?;
    keys.insert("scenarios".to_owned(), scenarios(requests, flags.request.expect.as_ref()));
    resolved(flags, keys, part)
}

fn resolved(flags: &Flags, keys: Map<String, Value>, part: &Part) -> Result<Plan> {
    let profile = command_line_profile(keys);
    let mut overrides = flags.session.export.labels.add_to(part.of(flags.keys.overrides()));
    if let Some(credentials) = &flags.request.basic_auth {
        let credentials = BASE64_STANDARD.encode(credentials);
        overrides.headers.push(format!("authorization: Basic {credentials}"));
    }
    // Environment variables are meant for profiles: PLIMSOLL_TARGET must not override the URL.
    Ok(load(&profile, &EnvVars::default(), &overrides, Purpose::Run)?)
}

/// The keys of the profile, without its requests.
fn keys(flags: &Flags, base: &str) -> Result<Map<String, Value>, UsageError> {
    let mut profile = Map::new();
    let mut set = |key: &str, value: Value| drop(profile.insert(key.to_owned(), value));
    set("name", name(base).into());
    set("target", literal(base));
    set("protocol", "http".into());
    let counted = flags.keys.get("max-requests").is_some();
    set("stages", stages(&flags.load, flags.http2, counted)?.to_string().into());
    if let Some(streams) = flags.http2 {
        set("http_version", "http2".into());
        set("streams_per_connection", streams.into());
    }
    if let Some(limit) = flags.load.most_in_flight() {
        set("max_in_flight", limit.into());
    }
    Ok(profile)
}

/// Splits a URL into the target (scheme, host and port) and the rest (path, query and fragment).
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |scheme| scheme + "://".len());
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |end| host + end);
    url.split_at(end)
}

/// The name of the run: host and port, with only the characters that suit a folder name.
fn name(base: &str) -> String {
    let host = base.split_once("://").map_or(base, |(_, host)| host);
    // The name must not contain credentials. The profile's check refuses a target that has them.
    let host = host.rsplit('@').next().unwrap_or(host);
    format!(
        "http-{}",
        host.chars()
            .map(|c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect::<String>()
    )
}

/// The stages. With a number of requests these decide when the load ends, and all of them count.
fn stages(load: &LoadFlags, streams: Option<u32>, counted: bool) -> Result<Stages, UsageError> {
    let (warmup, duration) = if counted { (Nanos::ZERO, ENDLESS) } else { (WARM_UP, DURATION) };
    let users = |connections: u32| connections.saturating_mul(streams.unwrap_or(1));
    let usual = Load::Closed { from: users(CONNECTIONS), to: users(CONNECTIONS) };
    let mut load = load.clone();
    if load.rate.is_empty() {
        load.concurrency.iter_mut().for_each(|connections| *connections = users(*connections));
    }
    load.warmup = load.warmup.or(Some(warmup));
    load.stages(&Stages(vec![StageSpec { load: usual, duration: Some(duration), warmup: false }]))
}

fn request(request: &Request, path: &str, body: &Body) -> Value {
    let default = if request.body.is_some() { "POST" } else { "GET" };
    let method = request.method.as_deref().unwrap_or(default);
    let mut spec = body.spec();
    spec["method"] = literal(method);
    spec["path"] = literal(&sent_path(path));
    if let Some(statuses) = &request.expect {
        spec["expect"] = statuses.to_string().into();
    }
    spec
}

/// The path as sent: without a fragment, and with `/` before a bare query.
fn sent_path(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    if path.starts_with('?') { format!("/{path}") } else { path.to_owned() }
}

/// The scenarios of several requests.
fn scenarios(requests: &Requests, expect: Option<&StatusSet>) -> Value {
    let scenarios = requests.list.iter().map(|request: &ListedRequest| {
        let mut http = request.body.spec();
        http["method"] = literal(&request.method);
        http["path"] = literal(&sent_path(&request.path));
        if !request.headers.is_empty() {
            let own = request.headers.iter().map(|(name, value)| (name.clone(), literal(value)));
            let mut headers = http["headers"].as_object().cloned().unwrap_or_default();
            headers.extend(own);
            http["headers"] = headers.into();
        }
        if let Some(statuses) = expect {
            http["expect"] = statuses.to_string().into();
        }
        json!({"name": request.name, "weight": request.weight, "http": http})
    });
    Value::Array(scenarios.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_target_and_path() {
        for (url, parts) in [
            ("http://a", ("http://a", "")),
            ("https://a:1/b/c?d=e#f", ("https://a:1", "/b/c?d=e#f")),
            ("http://a?d", ("http://a", "?d")),
            ("http://[::1]:8/x", ("http://[::1]:8", "/x")),
            ("a/b", ("a", "/b")),
            ("", ("", "")),
        ] {
            assert_eq!(split(url), parts, "{url}");
        }
    }

    #[test]
    fn the_load_is_written_as_stages() {
        let of = |users: &[u32], rates: &[f64], warmup: Option<u64>| LoadFlags {
            concurrency: users.to_vec(),
            rate: rates.to_vec(),
            duration: None,
            warmup: warmup.map(Nanos::from_millis),
        };
        for (load, streams, counted, text) in [
            (of(&[], &[], Some(0)), None, false, "64:10s"),
            (of(&[8], &[], Some(1_500)), None, false, "w8:1.5s,8:10s"),
            (of(&[8], &[2.5], None), Some(10), false, "w@2.5:2s,@2.5:10s"),
            (of(&[8], &[], None), Some(10), false, "w80:2s,80:10s"),
            (of(&[8], &[], None), None, true, "8:1h"),
        ] {
            let stages = stages(&load, streams, counted).unwrap();
            assert_eq!(stages, text.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn run_names_suit_folder_names_and_contain_no_password() {
        assert_eq!(name("https://a.example:8443"), "http-a.example-8443");
        assert_eq!(name("http://me:secret@a"), "http-a");
    }

    #[test]
    fn the_default_method_depends_on_the_body() {
        let of = |method: Option<&str>, body: Option<&str>| {
            let owned = |text: &str| text.to_owned();
            let flags = Request {
                method: method.map(owned),
                body: body.map(owned),
                basic_auth: None,
                expect: None,
            };
            request(&flags, "?a=$b#c", &Body::read(flags.body.as_deref(), &[]).unwrap())
        };
        assert_eq!(of(None, None), json!({"method": "GET", "path": "/?a=$$b", "body": ""}));
        assert_eq!(of(None, Some("x"))["method"], "POST");
        assert_eq!(of(Some("PUT"), Some("x"))["method"], "PUT");
    }
}
