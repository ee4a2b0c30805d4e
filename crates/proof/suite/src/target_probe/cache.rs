//! Whether a gateway answers equal chats from a cache: shown by a response header, or by repeats
//! that are much faster than any first request. Nothing else is taken for a hit.

use std::time::Duration;

use plimsoll_measure::{Nanos, Outcome, Sample};
use serde_json::json;

use super::{own_time, shown};
use crate::error::SuiteError;
use crate::http_get::{HttpResponse, request};
use crate::measurement::Measurement;
use crate::runner::SuiteRunner;
use crate::target::SuiteTarget;

/// Requests of each kind.
const TRIES: u64 = 4;
/// A repeat from a cache takes at most this share of the time of any first request ...
const FASTER: f64 = 0.5;
/// ... and is faster by at least this much.
const AT_LEAST: Nanos = Nanos::from_millis(1);
/// Time limit of a request whose response header is read.
const TIMEOUT: Duration = Duration::from_secs(10);

impl SuiteRunner<'_> {
    /// The proof that `target` answers equal chats from its cache, or why there is none. `identify`
    /// adds the headers of the later load.
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

/// What was looked at, and no more.
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

/// What the headers of the second of two equal chats say.
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
    let address = if address.contains(':') { address.to_owned() } else { format!("{address}:80") };
    let body = json!({
        "model": target.model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 16,
    });
    // A base URL may end with the version, as those of clients do.
    let prefix = target.prefix();
    let version = if prefix.ends_with("/v1") { "" } else { "/v1" };
    let path = format!("{prefix}{version}/chat/completions");
    let own = headers.iter().map(|(name, value)| format!("{name}: {value}"));
    let key = target.key.iter().map(|key| format!("authorization: Bearer {key}"));
    let all: Vec<_> = own.chain(target.headers.iter().cloned()).chain(key).collect();
    let body = body.to_string();
    request(&address, &path, &all, Some(&body), TIMEOUT).ok()?;
    request(&address, &path, &all, Some(&body), TIMEOUT).ok()
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
    use super::*;
    use crate::fixtures::sample;

    #[test]
    fn only_much_faster_repeats_show_a_cache() {
        for (first, equal, is_cache) in [
            (&[20_000, 21_000][..], &[20_000, 400, 500][..], true),
            // The first of the equal ones is no repeat.
            (&[20_000, 21_000], &[400], false),
            (&[20_000, 21_000], &[20_000, 400, 15_000], false),
            // A fast provider: nothing can be told.
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
