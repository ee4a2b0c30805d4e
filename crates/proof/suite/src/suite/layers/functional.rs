//! Functional checks before the load: the cost of a layer is meaningful only if the layer works.

use std::time::Duration;

use plimsoll_measure::CacheState;
use plimsoll_report::table::Table;
use plimsoll_runner::time;
use serde_json::json;

use super::{KEY, TENANT};
use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::http_get::{HttpResponse, request};
use crate::report::Section;
use crate::runner::SuiteRunner;
use crate::target::Gateway;

/// The checks judge answers, not their times: a busy host may be slow.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The log is written in batches.
const LOG_TIMEOUT: Duration = Duration::from_secs(15);
const LOG_POLL: Duration = Duration::from_millis(50);

/// Requests of a tenant that the gateway of these checks allows.
const LIMIT: usize = 20;
/// The key of the tenant.
const OWN: [(&str, &str); 2] = [KEY, TENANT];
/// Private data that the scrubber must remove.
const PRIVATE: &str = "anna.keller@example.com";

/// Single requests to a gateway, and the expected effect of each layer.
pub(super) struct Checks {
    address: String,
    /// Requests so far.
    sent: usize,
    /// Layer, case, expected result and status, and whether it passed.
    rows: Vec<([String; 4], bool)>,
}

impl Checks {
    /// Checks of a gateway at this address; `None` if it does not answer, which the report notes
    /// for `what`.
    pub(super) fn of(runner: &mut SuiteRunner<'_>, gateway: &Gateway, what: &str) -> Option<Self> {
        let address = gateway.address()?.to_owned();
        if let Err(error) = request(&address, "/", &[], None, TIMEOUT) {
            runner.skip(what, &format!("no answer: {error}"));
            return None;
        }
        Some(Self { address, sent: 1, rows: Vec::new() })
    }

    fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        self.send(path, headers, None)
    }

    /// Returns the answer, or a response with status 0 and the reason in its body.
    pub(super) fn send(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> HttpResponse {
        self.sent += 1;
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        request(&self.address, path, &headers, body, TIMEOUT).unwrap_or_else(|error| HttpResponse {
            body: error.to_string(),
            ..HttpResponse::default()
        })
    }

    /// Notes whether a layer worked; if not, with the status of the last answer.
    pub(super) fn note(&mut self, case: [&str; 3], did: bool, last: &HttpResponse) {
        let instead = match last.status {
            0 => format!("no answer: {}", last.body),
            status => format!("status {status}"),
        };
        self.note_or(case, did, &instead);
    }

    fn note_or(&mut self, [layer, case, expected]: [&str; 3], did: bool, instead: &str) {
        let status = if did { "PASS".to_owned() } else { format!("FAIL: {instead}") };
        self.rows.push(([layer, case, expected, &status].map(str::to_owned), did));
    }

    /// Adds their table, and the bound that each is passed: a layer that does not do its work has
    /// no cost. `of` follows the title.
    pub(super) fn conclude(self, of: &str, runner: &mut SuiteRunner<'_>) {
        let (all, passed) = (self.rows.len(), self.rows.iter().filter(|(_, did)| *did).count());
        let mut table = Table::new(["Layer", "Case", "Expected", "Status"]);
        self.rows.into_iter().for_each(|(row, _)| table.row(row));
        let title = format!("{TITLE}{of}: {passed} of {all}");
        runner.report.sections.push(Section::new(title, table).before_load());
        let what = format!("failed checks{of}");
        let failed = Some((all - passed) as f64);
        runner.report.bounds.push(BoundResult::count(&what, failed, Requirement::NONE));
    }
}

/// The title of their tables.
const TITLE: &str = "Functional checks before the load";

/// Sends single requests to a gateway with all layers on; sends none to the user's gateway.
pub(super) fn check(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    runner.section = TITLE;
    if !runner.measures_own() {
        return Ok(());
    }
    let provider = runner.provider(&[])?;
    // The scrubber works on answers of upstreams, so the upstream is another gateway whose own
    // answer contains an address.
    let backend = runner.gateway("layers", "checked backend", &[], None)?;
    let upstreams =
        [("backend", backend.address().unwrap_or_default()), ("provider", provider.address())];
    let upstreams = upstreams.map(|(name, at)| format!(r#"upstreams.{name}.addresses=["{at}"]"#));
    let limit = format!(
        "rate_limits=[{{per: tenant, requests: {LIMIT}, window: 60s, algorithm: sliding}}]"
    );
    let sets = [&[limit], &upstreams[..], &runner.settings("checked", None)].concat();
    let gateway = runner.gateway("layers", "", &sets, None)?;
    if let Some(mut checks) = Checks::of(runner, &gateway, TITLE) {
        let log = runner.options.folder.join("functional.jsonl");
        checks.of_every_layer(&log);
        // It has a row for each of a few requests.
        let _ = std::fs::remove_file(&log);
        checks.conclude("", runner);
    }
    Ok(())
}

impl Checks {
    fn of_every_layer(&mut self, log: &std::path::Path) {
        let without = self.get("/", &[]);
        self.note(["key auth", "no key", "401"], without.status == 401, &without);
        let other = self.get("/", &[("apikey", "other-test-key"), ("x-tenant-id", "wholesale")]);
        self.note(
            ["consumer restriction", "unlisted consumer", "403"],
            other.status == 403,
            &other,
        );
        let own = self.get("/", &OWN);
        self.note(["key auth", "own key", "200"], own.status == 200, &own);
        let has_id = own.headers.iter().any(|(name, id)| name == "x-request-id" && !id.is_empty());
        let case = ["request id", "answer header", "x-request-id"];
        self.note_or(case, has_id, "absent");
        let answer = self.get("/smoke/", &OWN);
        let hides = !answer.body.contains(PRIVATE) && answer.body.contains("contact");
        self.note(["response PII scrub", "mail address", "hidden"], hides, &answer);
        let counts = self.get("/metrics", &[]);
        let counted = counts.body.lines().any(is_counted);
        self.note(["Prometheus", "answered requests", "counted"], counted, &counts);
        let chat = json!({
            "model": "mock-fast",
            "temperature": 0,
            "messages": [{"role": "user", "content": "What is two and two?"}],
        })
        .to_string();
        let [first, second] =
            [(); 2].map(|()| self.send("/v1/chat/completions", &OWN, Some(&chat)));
        let hit = second.status == 200 && is_hit(&second) && !is_hit(&first);
        self.note(["cache", "second chat", "hit"], hit, &second);
        let rows = time::poll(LOG_TIMEOUT, LOG_POLL, || {
            Some(rows_of(log)).filter(|rows| *rows >= self.sent)
        });
        let (sent, rows) = (self.sent, rows.unwrap_or_else(|| rows_of(log)));
        let instead = format!("{rows} rows of {sent} requests");
        self.note_or(["request log", "each request", "a row"], rows >= sent, &instead);
        // More requests than the tenant may make.
        let mut last = HttpResponse::default();
        for _ in 0..=LIMIT {
            last = self.get("/", &OWN);
            if last.status == 429 {
                break;
            }
        }
        self.note(["tenant rate limit", "over limit", "429"], last.status == 429, &last);
    }
}

fn is_hit(response: &HttpResponse) -> bool {
    let states = response.headers.iter().filter(|(name, _)| name.contains("cache"));
    states
        .clone()
        .any(|(_, value)| CacheState::from_words(value.as_bytes()) == Some(CacheState::Hit))
}

/// Whether a line of the metrics counts requests with the status 200.
fn is_counted(line: &str) -> bool {
    let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
    line.contains("requests") && line.contains("200") && value.is_some_and(|value| value > 0.0)
}

fn rows_of(log: &std::path::Path) -> usize {
    let bytes = std::fs::read(log).unwrap_or_default();
    bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count()
}
