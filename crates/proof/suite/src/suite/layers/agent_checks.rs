//! Functional checks of layer 3 before its load: sessions, tools, agents and approvals work, and
//! only for their tenant.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_runner::time;
use serde::Deserialize;
use serde_json::Value;

use super::functional::Checks;
use crate::error::SuiteError;
use crate::http_get::HttpResponse;
use crate::runner::SuiteRunner;
use crate::suite::RedisServer;
use crate::target::Provider;

/// The requests, in their order.
const REQUESTS: &str = include_str!("agent_checks.json");
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// A request, and the expected parts of its answer.
#[derive(Debug, Deserialize)]
struct Check {
    /// Layer, case and expected result; `None` if it only prepares later ones.
    case: Option<[String; 3]>,
    path: String,
    /// With a body it is a `POST`.
    body: Option<Value>,
    /// The name of the key, and the tenant.
    #[serde(default = "own")]
    by: [String; 2],
    status: Option<u16>,
    /// Values by their place in the answer.
    #[serde(default)]
    has: BTreeMap<String, Value>,
    /// A place in the answer, and a part of the text there.
    contains: Option<[String; 2]>,
    /// Place of an id in the answer, and the word that later requests use for it.
    keep: Option<[String; 2]>,
    /// Seconds in which the answer may become the expected one.
    #[serde(default)]
    within_s: u64,
}

fn own() -> [String; 2] {
    ["load", "retail"].map(str::to_owned)
}

impl Check {
    fn passes(&self, last: &HttpResponse) -> bool {
        let found: Value = serde_json::from_str(&last.body).unwrap_or_default();
        self.status.is_none_or(|status| last.status == status)
            && self.has.iter().all(|(place, value)| found.pointer(place) == Some(value))
            && self.contains.iter().all(|[place, part]| {
                found.pointer(place).is_some_and(|found| found.to_string().contains(part))
            })
            && self.keep.iter().all(|[place, _]| !id_at(last, place).is_empty())
    }
}

/// The id at a place of an answer; empty if the answer lacks it.
fn id_at(last: &HttpResponse, place: &str) -> String {
    let found: Value = serde_json::from_str(&last.body).unwrap_or_default();
    found.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Asks a gateway of its own, with its state in memory or in Redis.
pub(super) fn check(
    runner: &mut SuiteRunner<'_>,
    provider: &Provider,
    store: &str,
    redis: Option<&RedisServer>,
) -> Result<(), SuiteError> {
    let store_of = Vec::from_iter(redis.map(RedisServer::setting));
    let gateway = runner.gateway("layers", "layer 3, checked", &store_of, Some(provider))?;
    let Some(mut checks) = Checks::of(runner, &gateway, store) else { return Ok(()) };
    let all: Vec<Check> = serde_json::from_str(REQUESTS)?;
    let mut ids: Vec<(&str, String)> = Vec::new();
    for check in &all {
        let mut texts =
            [check.path.clone(), check.body.as_ref().map(Value::to_string).unwrap_or_default()];
        for (word, id) in &ids {
            texts = texts.map(|text| text.replace(word, id));
        }
        let [path, body] = &texts;
        let [key, tenant] = &check.by;
        let headers = [("apikey", &*format!("{key}-test-key")), ("x-tenant-id", &**tenant)];
        let mut last = HttpResponse::default();
        let passed = time::poll(Duration::from_secs(check.within_s), PAUSE, || {
            last = checks.send(path, &headers, check.body.as_ref().map(|_| &**body));
            check.passes(&last).then_some(())
        });
        if let Some([layer, case, expected]) = &check.case {
            checks.note([layer, case, expected], passed.is_some(), &last);
        }
        ids.extend(check.keep.iter().map(|[place, word]| (&**word, id_at(&last, place))));
    }
    checks.conclude(&format!(" of layer 3, {store}"), runner);
    Ok(())
}
