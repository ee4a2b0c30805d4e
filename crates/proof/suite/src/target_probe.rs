//! Capabilities of the user's gateway, found by a few requests before any load: its routes and
//! their cost, and whether it has a cache or limits the rate.
//!
//! Absent or costly capabilities are left out of the suite and named in the report.

use std::time::Duration;

use plimsoll_measure::{Nanos, Outcome, Sample};
use plimsoll_report::format::{or_dash, time};
use serde_json::json;

use crate::error::SuiteError;
use crate::http_get::{HttpResponse, request};
use crate::measurement::{LoadShape, Measurement};
use crate::runner::SuiteRunner;
use crate::target::SuiteTarget;

/// Time limit of a single request to a cheap route.
const ROUTE_TIMEOUT: &str = "2s";
/// A route that takes longer than this, and longer than [`ROUND_TRIPS`] to the target, does work
/// for each request that a suite must not ask for thousands of times: some gateways call every
/// model for `GET /health`.
const CHEAP: Nanos = Nanos::from_millis(100);
const ROUND_TRIPS: u64 = 4;
/// Seeds of probes begin far from the seeds of passes.
const FIRST_SEED: u32 = 1_000_000;
/// A path that no gateway serves.
const UNKNOWN: &str = "/plimsoll-no-such-route";
/// Requests at once that show whether the rate is limited.
const BURST: u64 = 20;

impl SuiteRunner<'_> {
    /// Whether `path` of a target can be loaded. Anything of the reference gateway can; a route of
    /// the user's is tried once, and left out and named if it is absent, refused or costly (which
    /// is tried twice: one slow answer may be a pause of this host).
    pub(crate) fn serves(&mut self, target: &SuiteTarget, path: &str) -> Result<bool, SuiteError> {
        let what = target.label(&format!("GET {path}"));
        let request = Measurement::get(&what, target, path).with("timeout", ROUTE_TIMEOUT);
        self.try_out(&what, request, true)
    }

    /// Whether the target answers 200 to anything: then its routes are not shown to exist.
    pub(crate) fn probe_unknown_route(&mut self, target: &SuiteTarget) -> Result<(), SuiteError> {
        let what = target.label(&format!("GET {UNKNOWN}"));
        let request = Measurement::get(&what, target, UNKNOWN).with("timeout", ROUTE_TIMEOUT);
        let samples = self.send(request, 1, 10.0)?;
        let answers = samples.first().is_some_and(|sample| sample.outcome == Outcome::Completed);
        if answers {
            self.found(&what, samples.first(), "answers any path");
            let why = "the target answers 200 to a path that nothing serves";
            self.skip(&target.label("routes"), why);
        }
        Ok(())
    }

    /// Whether a target answers chats. They may take as long as its model takes.
    pub(crate) fn answers_chats(
        &mut self,
        target: &SuiteTarget,
        stream: bool,
    ) -> Result<bool, SuiteError> {
        let how = if stream { ", streamed" } else { "" };
        let what = target.label(&format!("POST /v1/chat/completions{how}"));
        self.answers(&what, Measurement::chat(&what, target, stream, (8, 16)))
    }

    /// Whether a target gives the expected answer to a request. It may take its time.
    pub(crate) fn answers(&mut self, what: &str, request: Measurement) -> Result<bool, SuiteError> {
        self.try_out(what, request, false)
    }

    fn try_out(
        &mut self,
        what: &str,
        request: Measurement,
        must_be_cheap: bool,
    ) -> Result<bool, SuiteError> {
        if self.options.targets.is_empty() {
            return Ok(true);
        }
        let mut samples = self.send(request.clone(), 1, 10.0)?;
        if must_be_cheap && samples.first().and_then(too_long).is_some() {
            samples = self.send(request, 1, 10.0)?;
        }
        let refusal = samples
            .first()
            .map_or_else(|| Some("no answer".to_owned()), |sample| refusal(sample, must_be_cheap));
        let conclusion = refusal.clone().map_or("answers", |_| "left out");
        self.found(what, samples.first(), conclusion);
        if let Some(why) = &refusal {
            self.report.refused |= !samples.first().is_some_and(is_answered);
            self.miss(what, why);
        }
        Ok(refusal.is_none())
    }

    /// Sends `count` requests, at a rate.
    fn send(
        &mut self,
        request: Measurement,
        count: u64,
        per_s: f64,
    ) -> Result<Vec<Sample>, SuiteError> {
        let length = Nanos::from_secs_f64(count as f64 / per_s);
        let stages = format!("@{per_s}:{length}");
        // With the seed of another probe or of a pass, a cache would know these prompts.
        let seed = FIRST_SEED + u32::try_from(self.tried_routes.rows.len()).unwrap_or(0);
        let plan = request.stages(LoadShape::Rate(per_s), &stages).plan(seed)?;
        self.probe(plan)
    }

    /// Whether the user's gateway limits the rate, by requests that it has just answered.
    pub(crate) fn probe_limits(&mut self, request: &Measurement) -> Result<(), SuiteError> {
        if self.options.targets.is_empty() {
            return Ok(());
        }
        let samples = self.send(request.clone(), BURST, 1_000.0)?;
        let limited = samples.iter().filter(|sample| sample.status == 429).count();
        let conclusion = if limited > 0 {
            let why = format!(
                "{limited} of {BURST} requests at once got 429: raise the limit of this key"
            );
            self.miss(&request.target.label("rate limit"), &why);
            format!("{limited} got 429")
        } else {
            "no 429".to_owned()
        };
        let what = request.target.label(&format!("{BURST} requests at once"));
        self.found(&what, samples.first(), &conclusion);
        Ok(())
    }

    fn found(&mut self, what: &str, sample: Option<&Sample>, conclusion: &str) {
        self.log(&format!("probe: {what}: {conclusion}"));
        let (answer, time) = (or_dash(sample, answer), or_dash(sample.and_then(own_time), shown));
        self.tried_routes.row([what, &answer, &time, conclusion]);
    }
}

fn shown(of: Nanos) -> String {
    time(of.as_millis_f64())
}

/// The time of a request without connection set-up.
fn own_time(sample: &Sample) -> Option<Nanos> {
    let timeline = &sample.timeline;
    Some(timeline.finished?.since(timeline.connected.or(timeline.dispatched)?))
}

/// The end of a request in a word or two.
fn answer(sample: &Sample) -> String {
    match sample.outcome {
        _ if sample.status > 0 => sample.status.to_string(),
        Outcome::Failed(class) => class.name().to_owned(),
        Outcome::TimedOut => "none in time".to_owned(),
        _ => "none".to_owned(),
    }
}

fn is_answered(sample: &Sample) -> bool {
    sample.as_expected() == Some(true) || sample.outcome == Outcome::Completed
}

/// Why a route must be left out; `None` if it can be loaded.
fn refusal(sample: &Sample, must_be_cheap: bool) -> Option<String> {
    let answer = answer(sample);
    if is_answered(sample) {
        let took = too_long(sample).filter(|_| must_be_cheap)?;
        return Some(format!("a single request took {}: too costly", shown(took)));
    }
    Some(match sample.outcome {
        Outcome::Rejected(401 | 403) => format!("it answers {answer}: check --key or -H"),
        Outcome::Rejected(404 | 405 | 410) => format!("no such route: {answer}"),
        Outcome::Rejected(429) => "it answers 429 (rate limited) to a single request".to_owned(),
        Outcome::Rejected(_) => format!("it answers {answer}"),
        Outcome::TimedOut => "a single request timed out".to_owned(),
        // The status alone does not show the error.
        Outcome::Failed(class) if (1..400).contains(&sample.status) => {
            format!("failed: {answer}, {}", class.name())
        }
        Outcome::Failed(_) => format!("failed: {answer}"),
        _ => "no answer".to_owned(),
    })
}

/// The time of a request that took too long to send thousands of them.
fn too_long(sample: &Sample) -> Option<Nanos> {
    let round_trip = sample.connect.tcp.unwrap_or_default();
    let cheap = CHEAP.max(Nanos::new(round_trip.as_u64().saturating_mul(ROUND_TRIPS)));
    own_time(sample).filter(|took| *took > cheap)
}

/// Requests of each kind.
const TRIES: u64 = 4;
/// A repeat from a cache takes at most this share of the time of any first request ...
const FASTER: f64 = 0.5;
/// ... and is faster by at least this much.
const AT_LEAST: Nanos = Nanos::from_millis(1);
/// Time limit of a request whose response header is read.
const TIMEOUT: Duration = Duration::from_secs(10);

impl SuiteRunner<'_> {
    /// The proof that `target` answers equal chats from its cache, or the reason why it is missing.
    /// `identify` adds the headers of the later load.
    pub(crate) fn prove_cache(
        &mut self,
        target: &SuiteTarget,
        headers: &[(&str, &str)],
    ) -> Result<Result<String, String>, SuiteError> {
        let prompt = format!("Name three uses of a message queue. {}", self.options.started);
        let read = header_of_a_hit(target, headers, &prompt);
        if let Headers::Hit(header) = &read {
            let proof = format!("the second equal request has the header `{header}`");
            self.found("chat twice", None, &format!("cache: {proof}"));
            return Ok(Ok(proof));
        }
        let first = self.send(chat("first requests", target, headers), TRIES, 10.0)?;
        let content = json!({"mode": "pool", "prompts": [format!("{prompt} Again.")]});
        let equal = chat("equal requests", target, headers);
        let equal = equal.with("content", content).with("cache_mode", "allow");
        // One after the other, or a repeat would wait for the first.
        let slowest = first.iter().filter_map(own_time).max().unwrap_or_default();
        let per_s = (0.5 / slowest.as_secs_f64().max(0.05)).max(0.2);
        let equal = self.send(equal, TRIES, per_s)?;
        self.found("different chats", first.last(), "for comparison");
        let found = by_time(&first, &equal, &read);
        let conclusion = found.clone().map_or_else(|why| why, |proof| format!("cache: {proof}"));
        self.found("chat again", equal.last(), &conclusion);
        Ok(found)
    }
}

fn chat(what: &str, target: &SuiteTarget, headers: &[(&str, &str)]) -> Measurement {
    let chat = Measurement::chat(what, target, false, (8, 16));
    headers.iter().fold(chat, |chat, (name, value)| chat.header(name, value))
}

/// Whether the repeats of an equal request were so much faster that something kept the answer.
fn by_time(first: &[Sample], equal: &[Sample], read: &Headers) -> Result<String, String> {
    let all_completed = first.iter().chain(equal).all(|s| s.outcome == Outcome::Completed);
    let (misses, repeats) = (own_times(first), own_times(equal.get(1..).unwrap_or_default()));
    let (Some(fastest), Some(slowest)) = (misses.iter().min(), repeats.iter().max()) else {
        return Err(no_cache(read));
    };
    let much = slowest.as_secs_f64() <= fastest.as_secs_f64() * FASTER
        && slowest.as_u64() + AT_LEAST.as_u64() <= fastest.as_u64();
    if !(all_completed && much) {
        return Err(no_cache(read));
    }
    Ok(format!(
        "equal requests took at most {}, different ones at least {}",
        shown(*slowest),
        shown(*fastest)
    ))
}

/// Names the headers that were checked.
fn no_cache(read: &Headers) -> String {
    let headers = match read {
        Headers::Unread => "; headers unread",
        Headers::NoHit | Headers::Hit(_) => ", no header",
    };
    format!("the second equal request was not faster{headers}")
}

fn own_times(samples: &[Sample]) -> Vec<Nanos> {
    samples.iter().filter_map(own_time).collect::<Vec<_>>()
}

/// Meaning of the headers of the second of two equal chats.
///
/// A response header proves a hit, or repeats that are much faster than any first request. Nothing
/// else counts as a hit.
enum Headers {
    /// None was read: they are over plain HTTP/1.1 alone, if there was an answer.
    Unread,
    NoHit,
    /// The header that calls it a hit.
    Hit(String),
}

fn header_of_a_hit(target: &SuiteTarget, headers: &[(&str, &str)], prompt: &str) -> Headers {
    let Some(repeated) = repeated_answer(target, headers, prompt) else { return Headers::Unread };
    let header = hit(&repeated).filter(|_| repeated.status == 200);
    header.map_or(Headers::NoHit, Headers::Hit)
}

/// The answer to the second of two equal chats.
fn repeated_answer(
    target: &SuiteTarget,
    headers: &[(&str, &str)],
    prompt: &str,
) -> Option<HttpResponse> {
    let rest = target.base.strip_prefix("http://").filter(|_| !target.http2)?;
    let address = rest.split(['/', '?']).next()?;
    let body = json!({
        "model": target.model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 16,
    });
    // A base URL may end with the version, like the base URLs of clients.
    let prefix = target.prefix();
    let version = if prefix.ends_with("/v1") { "" } else { "/v1" };
    let path = format!("{prefix}{version}/chat/completions");
    let own = headers.iter().map(|(name, value)| format!("{name}: {value}"));
    let key = target.key.iter().map(|key| format!("authorization: Bearer {key}"));
    let all: Vec<_> = own.chain(target.headers.iter().cloned()).chain(key).collect();
    let body = body.to_string();
    request(address, &path, &all, Some(&body), TIMEOUT).ok()?;
    request(address, &path, &all, Some(&body), TIMEOUT).ok()
}

/// The header of a response that says that it comes from a cache: one with `cache` in its name and
/// `hit` in its value, as `x-cache: HIT`; or a positive `age` (RFC 9111, 5.1).
fn hit(response: &HttpResponse) -> Option<String> {
    response
        .headers
        .iter()
        .find(|(name, value): &&(String, String)| {
            let value = value.to_ascii_lowercase();
            let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
            let is_cache = name.contains("cache") && name != "cache-control";
            let is_old = name == "age" && value.trim().parse().is_ok_and(|age: u64| age > 0);
            is_old || (is_cache && words.any(|word| word == "hit"))
        })
        .map(|(name, value)| format!("{name}: {value}"))
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::ErrorClass;

    use super::*;
    use crate::fixtures::sample;

    #[test]
    fn a_route_is_loaded_only_if_it_is_there_open_and_cheap() {
        for (outcome, status, millis, part) in [
            (Outcome::Completed, 200, 5, None),
            (Outcome::Completed, 200, 99, None),
            (Outcome::Completed, 200, 140, Some("took 140ms: too costly")),
            (Outcome::Rejected(404), 404, 1, Some("no such route: 404")),
            (Outcome::Rejected(429), 429, 1, Some("answers 429")),
            (Outcome::Rejected(401), 401, 1, Some("--key")),
            (Outcome::Rejected(418), 418, 1, Some("answers 418")),
            (Outcome::TimedOut, 0, 2_000, Some("timed out")),
            (Outcome::InFlight, 0, 2_000, Some("no answer")),
            (Outcome::Failed(ErrorClass::ServerError), 503, 1, Some("failed: 503")),
            (Outcome::Failed(ErrorClass::Reset), 0, 1, Some("failed: reset")),
            (Outcome::Failed(ErrorClass::RpcError), 200, 1, Some("failed: 200, rpc_error")),
        ] {
            let sample = sample(outcome, status, Nanos::from_millis(millis));
            let found = refusal(&sample, true);
            let fits = match part {
                None => found.is_none(),
                Some(part) => found.as_ref().is_some_and(|why| why.contains(part)),
            };
            assert!(fits, "{part:?}: {found:?}");
        }
    }

    #[test]
    fn a_model_may_take_its_time_and_so_may_a_long_path() {
        let mut slow = sample(Outcome::Completed, 200, Nanos::from_millis(140));
        assert_eq!(refusal(&slow, false), None);
        slow.connect.tcp = Some(Nanos::from_millis(40));
        assert_eq!(refusal(&slow, true), None);
    }

    #[test]
    fn only_much_faster_repeats_show_a_cache() {
        for (first, equal, is_cache) in [
            (&[20_000, 21_000][..], &[20_000, 400, 500][..], true),
            // The first of the equal chats is not a repeat.
            (&[20_000, 21_000], &[400], false),
            (&[20_000, 21_000], &[20_000, 400, 15_000], false),
            // A fast provider leaves the result unknown.
            (&[300, 400], &[300, 100, 100], false),
            (&[20_000], &[20_000, 20_000, 20_000], false),
        ] {
            let found = by_time(&samples_of(first), &samples_of(equal), &Headers::NoHit);
            assert_eq!(found.is_ok(), is_cache, "{first:?} {equal:?}: {found:?}");
        }
        let mut refused = samples_of(&[20_000, 400, 400]);
        refused[2].outcome = Outcome::Rejected(429);
        assert!(
            by_time(&samples_of(&[20_000]), &refused, &Headers::NoHit).is_err(),
            "a refusal is fast, and no hit"
        );
        let (first, equal) = (samples_of(&[300]), samples_of(&[300, 300]));
        let unread = by_time(&first, &equal, &Headers::Unread).unwrap_err();
        assert!(unread.ends_with("headers unread"));
    }

    fn samples_of(times: &[u64]) -> Vec<Sample> {
        times.iter().map(|us| sample(Outcome::Completed, 200, Nanos::from_micros(*us))).collect()
    }

    #[test]
    fn a_header_must_say_hit() {
        for (name, value, is_hit) in [
            ("x-cache", "hit", true),
            ("x-cache", "HIT from edge", true),
            ("cf-cache-status", "HIT", true),
            ("age", "12", true),
            ("age", "0", false),
            ("x-cache", "miss", false),
            ("x-cache", "white", false),
            ("cache-control", "hit", false),
            ("server", "hit", false),
        ] {
            assert_eq!(
                hit(&HttpResponse {
                    status: 200,
                    headers: vec![(name.to_owned(), value.to_owned())],
                    ..HttpResponse::default()
                })
                .is_some(),
                is_hit,
                "{name}: {value}"
            );
        }
    }
}
