//! Functional checks before the load: each layer does what it should, or its cost means nothing.

use std::io;
use std::time::Duration;

use plimsoll_measure::CacheState;
use plimsoll_report::format::digits;
use plimsoll_report::table::Table;
use plimsoll_runner::time;

use super::gateway_layers::{audit, bare_with};
use super::{KEY, TENANT};
use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::http_get::{HttpResponse, get_with, post};
use crate::report::Section;
use crate::runner::SuiteRunner;

/// What is answered is asked for, not when: a busy host may take its time.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);
/// The log is written in batches.
const LOG_TIMEOUT: Duration = Duration::from_secs(15);
const LOG_POLL: Duration = Duration::from_millis(50);

/// Requests of a tenant that the gateway of these checks allows.
const LIMIT: usize = 20;
/// What the scrubber must not let through.
const PRIVATE: &str = "anna.keller@example.com";
const CHAT: &str = r#"{"model":"mock-fast","temperature":0,"messages":[{"role":"user","content":"What is two and two?"}]}"#;

/// The checks, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct FunctionalChecks {
    /// What they are of, behind the title; empty for the gateway.
    pub(super) of: String,
    /// The gateway that was asked.
    pub(super) asked: &'static str,
    pub(super) checks: Vec<Check>,
}

/// What a layer should do, and whether it did.
#[derive(Debug)]
pub(super) struct Check {
    layer: &'static str,
    should: &'static str,
    /// What came instead; `None` if it did what it should.
    instead: Option<String>,
}

impl Check {
    pub(super) fn new(
        layer: &'static str,
        should: &'static str,
        did: bool,
        instead: String,
    ) -> Self {
        Self { layer, should, instead: (!did).then_some(instead) }
    }
}

/// The title of their tables.
pub(super) const TITLE: &str = "Functional checks before the load";

/// Sends single requests to a gateway with all layers on; `None` for the user's gateway, and if it
/// cannot be reached.
pub(super) fn check(runner: &mut SuiteRunner<'_>) -> Result<Option<FunctionalChecks>, SuiteError> {
    runner.section = TITLE;
    if runner.target().is_some() {
        let why =
            "the suite cannot switch the layers of a target, and does not know its keys and limits";
        runner.skip("whether each layer does what it should", why);
        return Ok(None);
    }
    let file = "functional.jsonl";
    let provider = runner.provider(&[])?;
    let limit = format!(
        "rate_limits=[{{per: tenant, requests: {LIMIT}, window: 60s, algorithm: sliding}}]"
    );
    // What is scrubbed are answers of upstreams: another gateway, whose own answer has an address.
    let body = format!(r#"routes.0.respond.body='{{"contact":"{PRIVATE}"}}'"#);
    let backend = runner.gateway("layers", &bare_with(&[&body]), None)?;
    let backend_address = backend.address().unwrap_or_default();
    let upstream = format!(r#"upstreams.backend.addresses=["{backend_address}"]"#);
    let chats = format!(r#"upstreams.provider.addresses=["{}"]"#, provider.address());
    let sets = [limit, upstream, chats, audit(runner, file)];
    let gateway = runner.gateway("layers", &sets, None)?;
    let Some(address) = gateway.address().map(str::to_owned) else { return Ok(None) };
    if let Err(error) = get_with(&address, "/", &[], TIMEOUT) {
        runner.skip("the functional checks", &format!("the gateway does not answer: {error}"));
        return Ok(None);
    }
    let log = runner.options.folder.join(file);
    let found = Checks { address, sent: 1, found: Vec::new() }.make(&log);
    // It has a row for each of a few requests.
    let _ = std::fs::remove_file(&log);
    let asked = "a gateway with every layer on";
    Ok(Some(FunctionalChecks { of: String::new(), asked, checks: found }))
}

/// The checks while they are made.
struct Checks {
    address: String,
    sent: usize,
    found: Vec<Check>,
}

impl Checks {
    fn make(mut self, log: &std::path::Path) -> Vec<Check> {
        let without = self.get("/", &[]);
        self.note("key auth", "401 without a key", without.status == 401, status(&without));
        let other = [("apikey", "other-test-key"), ("x-tenant-id", "wholesale")];
        let other = self.get("/", &other);
        let should = "403 for a consumer that the route does not list";
        self.note("consumer restriction", should, other.status == 403, status(&other));
        let own = self.get("/", &[KEY, TENANT]);
        self.note("key auth", "200 with the key", own.status == 200, status(&own));
        let has_id = own.headers.iter().any(|(name, id)| name == "x-request-id" && !id.is_empty());
        self.note("request id", "x-request-id in the answer", has_id, "no such header".to_owned());
        let answer = self.get("/smoke/", &[KEY, TENANT]);
        let leaks = answer.body.contains(PRIVATE) || !answer.body.contains("contact");
        let should = "an address of mail in an upstream's answer is hidden, the rest is not";
        let instead = if answer.status == 200 { answer.body } else { status(&answer) };
        self.note("response PII scrub", should, !leaks, instead);
        let counts = self.get("/metrics", &[]);
        let counted = counts.body.lines().any(is_counted);
        self.note("Prometheus", "answered requests are counted", counted, status(&counts));
        let (first, second) = (self.chat(), self.chat());
        let hit = second.status == 200 && is_hit(&second) && !is_hit(&first);
        self.note("cache", "the same chat again is a hit", hit, status(&second));
        let rows = time::poll(LOG_TIMEOUT, LOG_POLL, || {
            Some(rows_of(log)).filter(|rows| *rows >= self.sent)
        });
        let (sent, rows) = (self.sent, rows.unwrap_or_else(|| rows_of(log)));
        let instead = format!("{rows} rows of {sent} requests");
        self.note("request log", "a row for each of these requests", rows >= sent, instead);
        self.exhaust();
        self.found
    }

    /// More requests than the tenant may make.
    fn exhaust(&mut self) {
        let mut last = HttpResponse::default();
        for _ in 0..=LIMIT {
            last = self.get("/", &[KEY, TENANT]);
            if last.status == 429 {
                break;
            }
        }
        let should = "429 once the tenant's limit is reached";
        self.note("tenant rate limit", should, last.status == 429, status(&last));
    }

    fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        self.sent += 1;
        or_why_not(get_with(&self.address, path, &lines(headers), TIMEOUT))
    }

    fn chat(&mut self) -> HttpResponse {
        self.sent += 1;
        let headers = lines(&[KEY, TENANT]);
        or_why_not(post(&self.address, "/v1/chat/completions", &headers, CHAT, TIMEOUT))
    }

    fn note(&mut self, layer: &'static str, should: &'static str, did: bool, instead: String) {
        self.found.push(Check::new(layer, should, did, instead));
    }
}

pub(super) fn lines(headers: &[(&str, &str)]) -> Vec<String> {
    headers.iter().map(|(name, value): &(&str, &str)| format!("{name}: {value}")).collect()
}

/// The answer, or one without a status whose body says why there is none.
pub(super) fn or_why_not(answer: io::Result<HttpResponse>) -> HttpResponse {
    answer
        .unwrap_or_else(|error| HttpResponse { body: error.to_string(), ..HttpResponse::default() })
}

pub(super) fn status(response: &HttpResponse) -> String {
    match response.status {
        0 => format!("no answer: {}", response.body),
        status => format!("the answer is {status}"),
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

impl FunctionalChecks {
    fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.instead.is_none()).count()
    }

    pub(super) fn section(&self) -> Section {
        let mut table = Table::new(["Layer", "should", "did"]);
        for Check { layer, should, instead } in &self.checks {
            let did = instead
                .clone()
                .map_or_else(|| "yes".to_owned(), |instead| format!("NO: {instead}"));
            table.row([(*layer).to_owned(), (*should).to_owned(), did]);
        }
        let Self { of, asked, checks } = self;
        let title = format!("{TITLE}{of}: {} of {}", self.passed(), checks.len());
        Section::new(&title, table)
            .note(format!("single requests to {asked}, started for them alone"))
            .before_load()
    }

    /// The cost of a layer that does not do its work is no cost of it.
    pub(super) fn bound(&self) -> BoundResult {
        let failed = (self.checks.len() - self.passed()) as f64;
        BoundResult::count(
            &format!("functional checks{} that were not passed", self.of),
            Some(failed),
            Requirement::at_most(0.0, digits),
        )
    }
}
