//! Negotiates the protocol with a server.
//!
//! It tries the newest version first, like the official clients. Without proof that the server
//! supports it, it falls back to the handshake of the versions with sessions.

use serde::Deserialize;
use serde_json::json;

use super::{Answer, Connected, Outgoing, Protocol, ReplyBody, client_info};
use crate::object::read_object;
use crate::rpc;
use crate::version::{LATEST_WITH_SESSIONS, STATELESS, WITH_SESSIONS, with_sessions};

/// Longest id of a session that is kept, in bytes.
const MAX_SESSION: usize = 1_024;

/// A handshake in progress.
#[derive(Debug)]
pub struct Handshake {
    protocol: Protocol,
    waiting_for: WaitingFor,
}

#[derive(Debug)]
enum WaitingFor {
    Discovery,
    Initialization,
    Acceptance(Connected),
}

/// The next step of a handshake.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this, and pass its answer to [`Handshake::next`].
    Send(Outgoing),
    /// The handshake is complete.
    Done(Connected),
    /// The handshake failed, for this reason.
    Failed(String),
}

#[derive(Deserialize)]
struct Discovered {
    #[serde(rename = "supportedVersions")]
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct Initialized {
    #[serde(rename = "protocolVersion")]
    version: String,
}

impl Handshake {
    /// Starts a handshake; `id` is the id of the first request, and the next id is used, too.
    pub fn start(protocol: Protocol, id: u64) -> (Self, Outgoing) {
        if protocol == Protocol::Sessions {
            return (Self { protocol, waiting_for: WaitingFor::Initialization }, initialize(id));
        }
        (Self { protocol, waiting_for: WaitingFor::Discovery }, discover(id))
    }

    /// Processes an answer; `id` is the id of the next request.
    pub fn next(&mut self, answer: &Answer, id: u64) -> Step {
        match &self.waiting_for {
            WaitingFor::Discovery => self.discovered(answer, id),
            WaitingFor::Initialization => self.initialized(answer),
            WaitingFor::Acceptance(connected) => match answer.body {
                ReplyBody::Accepted => Step::Done(connected.clone()),
                _ => Step::Failed(format!(
                    "it refused `notifications/initialized` with status {}",
                    answer.status
                )),
            },
        }
    }

    fn discovered(&mut self, answer: &Answer, id: u64) -> Step {
        let found = match &answer.body {
            ReplyBody::Result(result) => read_object::<Discovered>(result).ok(),
            _ => None,
        };
        if found.is_some_and(|found| found.versions.iter().any(|version| version == STATELESS)) {
            return Step::Done(Connected::Stateless);
        }
        if self.protocol == Protocol::Stateless {
            return Step::Failed(format!(
                "it does not speak MCP {STATELESS}{}",
                server_error(answer)
            ));
        }
        self.waiting_for = WaitingFor::Initialization;
        Step::Send(initialize(id))
    }

    fn initialized(&mut self, answer: &Answer) -> Step {
        let result = match &answer.body {
            ReplyBody::Result(result) => read_object::<Initialized>(result),
            _ => return Step::Failed(format!("it does not speak MCP{}", server_error(answer))),
        };
        let Ok(initialized) = result else {
            return Step::Failed("its answer to `initialize` names no version".to_owned());
        };
        let Some(version) = with_sessions(&initialized.version) else {
            let known = WITH_SESSIONS.join(" and ");
            return Step::Failed(format!(
                "it chose an unsupported version of MCP; the supported ones with sessions are {known}"
            ));
        };
        let id = answer.session.clone().filter(|id| !id.is_empty());
        if id.as_ref().is_some_and(|id| !is_session_id(id)) {
            return Step::Failed("its session id is invalid".to_owned());
        }
        let connected = Connected::Session { version, id };
        let outgoing = connected.initialized();
        self.waiting_for = WaitingFor::Acceptance(connected);
        Step::Send(outgoing)
    }
}

/// The server's error message.
fn server_error(answer: &Answer) -> String {
    match &answer.body {
        ReplyBody::Error(error) => format!(": {error}"),
        ReplyBody::Result(_) => String::new(),
        ReplyBody::Accepted | ReplyBody::Status => {
            format!(": it answered status {}", answer.status)
        }
    }
}

fn discover(id: u64) -> Outgoing {
    let params = json!({"_meta": super::stateless_meta()}).to_string();
    let method = "server/discover";
    let headers = Connected::Stateless.headers(method, None);
    Outgoing { id: Some(id), headers, body: rpc::request(Some(id), method, &params) }
}

fn initialize(id: u64) -> Outgoing {
    let params = json!({
        "protocolVersion": LATEST_WITH_SESSIONS, "capabilities": {}, "clientInfo": client_info(),
    });
    let body = rpc::request(Some(id), "initialize", &params.to_string());
    Outgoing { id: Some(id), headers: Vec::new(), body }
}

/// Whether a text may be the id of a session.
fn is_session_id(id: &str) -> bool {
    id.len() <= MAX_SESSION && id.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::RpcError;

    fn answer(status: u16, body: ReplyBody) -> Answer {
        Answer { status, session: None, body }
    }

    fn result(text: &str) -> Answer {
        answer(200, ReplyBody::Result(text.to_owned()))
    }

    fn method(outgoing: &Outgoing) -> String {
        let body: serde_json::Value = serde_json::from_str(&outgoing.body).unwrap();
        body["method"].as_str().unwrap().to_owned()
    }

    fn sent(step: &Step) -> String {
        let Step::Send(outgoing) = step else { panic!("{step:?}") };
        method(outgoing)
    }

    #[test]
    fn a_server_of_the_newest_version_is_spoken_to_at_once() {
        for protocol in [Protocol::Auto, Protocol::Stateless] {
            let (mut handshake, first) = Handshake::start(protocol, 1);
            assert_eq!((method(&first).as_str(), first.id), ("server/discover", Some(1)));
            let found = result(r#"{"supportedVersions":["2026-07-28","2025-11-25"]}"#);
            assert_eq!(handshake.next(&found, 2), Step::Done(Connected::Stateless));
        }
    }

    #[test]
    fn what_is_no_sign_of_the_newest_version_leads_to_a_session() {
        for refused in [
            answer(404, ReplyBody::Status),
            answer(400, ReplyBody::Error(RpcError::new(-32_022, "no"))),
            answer(200, ReplyBody::Error(RpcError::new(-32_601, "no"))),
            result("{}"),
            result(r#"{"supportedVersions":["2025-11-25"]}"#),
            answer(202, ReplyBody::Accepted),
        ] {
            let (mut handshake, _) = Handshake::start(Protocol::Auto, 1);
            assert_eq!(sent(&handshake.next(&refused, 2)), "initialize");
            let mut opened = result(r#"{"protocolVersion":"2025-06-18"}"#);
            opened.session = Some("s1".to_owned());
            assert_eq!(sent(&handshake.next(&opened, 3)), "notifications/initialized");
            let done = handshake.next(&answer(202, ReplyBody::Accepted), 3);
            let id = Some("s1".to_owned());
            assert_eq!(done, Step::Done(Connected::Session { version: "2025-06-18", id }));
            let (mut handshake, _) = Handshake::start(Protocol::Stateless, 1);
            assert!(matches!(handshake.next(&refused, 2), Step::Failed(_)), "it must be stateless");
        }
    }

    #[test]
    fn a_server_that_cannot_be_spoken_to_is_given_up() {
        let mut odd = result(r#"{"protocolVersion":"2025-11-25"}"#);
        odd.session = Some("a\nb".to_owned());
        for (refusal, reason) in [
            (answer(500, ReplyBody::Status), "status 500"),
            (answer(200, ReplyBody::Error(RpcError::new(-1, "closed"))), "closed"),
            (result("{}"), "names no version"),
            (result(r#"{"protocolVersion":"1999-01-01"}"#), "2025-11-25"),
            (odd, "session"),
        ] {
            let (mut handshake, first) = Handshake::start(Protocol::Sessions, 1);
            assert_eq!(method(&first), "initialize");
            let Step::Failed(found) = handshake.next(&refusal, 2) else { panic!("{refusal:?}") };
            assert!(found.contains(reason), "{found}");
        }
    }

    #[test]
    fn a_server_that_refuses_the_end_of_the_handshake_is_given_up() {
        let (mut handshake, _) = Handshake::start(Protocol::Sessions, 1);
        handshake.next(&result(r#"{"protocolVersion":"2025-11-25"}"#), 2);
        assert!(matches!(handshake.next(&answer(400, ReplyBody::Status), 2), Step::Failed(_)));
    }
}
