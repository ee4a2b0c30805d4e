//! The plan of `plimsoll http`. The flags become a profile first, so that all checks are in one
//! place.

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_measure::Nanos;
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Purpose, load};
use plimsoll_schedule::{Load, StageSpec, Stages};
use plimsoll_workload::StatusSet;
use serde_json::{Map, Value, json};

use super::body::Body;
use super::urls::{ListedRequest, Requests};
use super::{Flags, Request};
use crate::exit::UsageError;
use crate::flags::{LoadFlags, Part, command_line_profile, literal};

const CONNECTIONS: u32 = 64;
const DURATION: Nanos = Nanos::from_secs(10);
const WARM_UP: Nanos = Nanos::from_secs(2);
/// Longer than any number of requests should take.
const ENDLESS: Nanos = Nanos::from_secs(3_600);

/// Builds the plan for one URL.
pub(super) fn build(flags: &Flags, url: &str, body: &Body, part: &Part) -> Result<Plan> {
    let (base, path) = split(url);
    let mut keys = keys(flags, base)?;
    keys.insert("http".to_owned(), request(&flags.request, path, body));
    resolved(flags, keys, part)
}

/// Builds the plan for the requests of a file.
pub(super) fn build_of(flags: &Flags, requests: &Requests, part: &Part) -> Result<Plan> {
    let mut keys = keys(flags, &requests.origin)?;
    keys.insert("scenarios".to_owned(), scenarios(requests, flags.request.expect.as_ref()));
    resolved(flags, keys, part)
}

fn resolved(flags: &Flags, keys: Map<String, Value>, part: &Part) -> Result<Plan> {
    let profile = command_line_profile(keys);
    let mut overrides = flags.export.labels.add_to(part.of(flags.keys.overrides()));
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
pub(super) fn split(url: &str) -> (&str, &str) {
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
