//! Tenants x keys x credentials x headers x forms of the answer, over one cache: the provider tells
//! in its answer who it was asked for, so that an answer from another cell is seen.

use std::collections::HashSet;

use plimsoll_gateway_server::Gateway;

use super::support::client::{ClientResponse, post};
use super::support::provider::{Provider, ReceivedRequest, answer};
use super::support::{CHAT, crowd, llm, question, streamed};

const LAYERS: &str = "auth: {header: apikey, keys: [\
    {name: a1, key: ka1, tenant: a}, {name: a2, key: ka2, tenant: a}, \
    {name: b1, key: kb1, tenant: b}, {name: any, key: kany, tenant: '*'}]}\n\
    tenant: {anonymous: true}\ncache: {}";

/// Keys, with the tenant that each has, and the header that names it.
const KEYS: [(&str, Option<&str>, Option<&str>); 6] = [
    ("ka1", Some("a"), None),
    ("ka2", Some("a"), None),
    ("kb1", Some("b"), None),
    ("kb1", Some("b"), Some("b")),
    ("kany", Some("a"), Some("a")),
    ("kany", None, None),
];

/// Credentials that are passed on.
const CREDENTIALS: [Option<(&str, &str)>; 6] = [
    None,
    Some(("authorization", "Bearer one")),
    Some(("authorization", "Bearer two")),
    Some(("x-api-key", "one")),
    Some(("cookie", "session=one")),
    Some(("cookie", "session=two")),
];

/// Headers by which a provider may tell its users apart, and one that the gateway makes its own.
const HEADERS: [Option<(&str, &str)>; 8] = [
    None,
    Some(("x-user", "one")),
    Some(("x-user", "two")),
    Some(("user-agent", "one")),
    Some(("accept-language", "de")),
    Some(("openai-organization", "one")),
    Some(("baggage", "user=one")),
    Some((FORGED, "192.0.2.1")),
];

const FORGED: &str = "x-forwarded-for";

/// One who asks.
#[derive(Clone, Copy)]
struct Cell {
    key: (&'static str, Option<&'static str>, Option<&'static str>),
    credential: Option<(&'static str, &'static str)>,
    header: Option<(&'static str, &'static str)>,
    streamed: bool,
}

impl Cell {
    /// All of them.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for key in KEYS {
            for credential in CREDENTIALS {
                for header in HEADERS {
                    for streamed in [false, true] {
                        all.push(Self { key, credential, header, streamed });
                    }
                }
            }
        }
        all
    }

    /// Owner of the responses that it may get: those of its tenant, for an equal request.
    fn owner(&self) -> (Option<&'static str>, String, bool) {
        let header = self.header.filter(|(name, _)| *name != FORGED);
        let seen = told([self.credential, header].into_iter().flatten());
        (self.key.1, seen, self.streamed)
    }

    fn ask(&self, gateway: &Gateway, text: &str) -> ClientResponse {
        let tenant = self.key.2.map(|name| ("x-tenant-id", name));
        let mut headers = vec![("apikey", self.key.0)];
        headers.extend([self.credential, self.header, tenant].into_iter().flatten());
        let body = if self.streamed { streamed(text) } else { question(text) };
        post(gateway.addr(), CHAT, &headers, &body)
    }
}

fn told<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut told: Vec<String> = headers.map(|(name, value)| format!("{name}={value}")).collect();
    told.sort();
    format!("[{}]", told.join(" "))
}

/// Facts about the caller in a request, except the tenant, because a cached response has the one of
/// its first cell.
fn told_by(seen: &ReceivedRequest) -> String {
    let names = CREDENTIALS.iter().chain(&HEADERS).flatten().map(|(name, _)| *name);
    let names: HashSet<&str> = names.filter(|name| *name != FORGED).collect();
    told(names.into_iter().filter_map(|name| Some((name, seen.header(name)?))))
}

fn provider() -> Provider {
    Provider::start(|seen, wire| answer(seen, wire, &[told_by(seen)]))
}

/// The text of an answer, whole or streamed, without what is around it.
fn text_of(reply: &ClientResponse) -> String {
    let text = reply.text();
    let told = text.split("\"content\":\"").find(|part| part.starts_with('['));
    let told = told.unwrap_or_else(|| panic!("{text}"));
    told[..=told.find(']').unwrap()].to_owned()
}

#[test]
fn no_cell_gets_the_answer_of_another() {
    let provider = provider();
    let gateway = llm(provider.addr, LAYERS);
    let cells = Cell::all();
    let mut asked = HashSet::new();
    // A step that is prime to their number: neighbours differ in all that cells can differ in.
    for place in 0..2 * cells.len() {
        let cell = cells[place * 101 % cells.len()];
        let reply = cell.ask(&gateway, "the same question");
        let known = !asked.insert(cell.owner());
        let (expected, text) = (if known { "hit" } else { "miss" }, text_of(&reply));
        let case = format!("{:?} {:?} {:?}", cell.key, cell.credential, cell.header);
        assert_eq!((reply.status, reply.header("x-cache")), (200, Some(expected)), "{case}");
        assert_eq!(text, cell.owner().1, "{case}");
    }
    assert_eq!(provider.count(), asked.len());
    // Three tenants, or none; the forged header makes no difference.
    assert_eq!(asked.len(), 3 * CREDENTIALS.len() * (HEADERS.len() - 1) * 2);
}

#[test]
fn no_cell_gets_the_answer_of_another_that_asks_at_the_same_time() {
    let provider = provider();
    let gateway = llm(provider.addr, LAYERS);
    let cells = Cell::all();
    for round in 0..cells.len().div_ceil(64) {
        let cell_of = |number: usize| cells[(round * 64 + number) * 101 % cells.len()];
        let replies = crowd(|number| cell_of(number).ask(&gateway, "all at once"));
        for (number, reply) in replies.iter().enumerate() {
            let cell = cell_of(number);
            assert_eq!((reply.status, text_of(reply)), (200, cell.owner().1), "{:?}", cell.key);
        }
    }
    let owners: HashSet<_> = cells.iter().map(Cell::owner).collect();
    assert_eq!(provider.count(), owners.len());
}
