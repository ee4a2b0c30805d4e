//! Plain HTTP requests.

use std::collections::BTreeMap;

use plimsoll_measure::ConversationKey;
use plimsoll_protocol::{Dialect, HttpContent, RequestContent};
use plimsoll_workload::{CacheMode, Content, Conversation, HttpSpec, ScenarioSpec};

use crate::support::{conversation, conversations, scenario, sized, workload};

fn plain(path: &str, header: &str, body: &str) -> ScenarioSpec {
    let http = HttpSpec {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: BTreeMap::from([("X-Test".to_owned(), header.to_owned())]),
        body: body.to_owned(),
        body_file: None,
        expect: None,
    };
    ScenarioSpec { protocol: Dialect::Http, http: Some(http), ..scenario() }
}

fn ask(talk: &Conversation) -> HttpContent {
    let RequestContent::Http(ask) = talk.turn().unwrap().content else {
        panic!("not a plain request")
    };
    ask.clone()
}

fn body(talk: &Conversation) -> String {
    String::from_utf8(ask(talk).body).unwrap()
}

#[test]
fn a_request_without_placeholders_is_sent_as_it_is_written() {
    let mut talk =
        conversation(&ScenarioSpec { turns: 2, ..plain("/a?b={c}", "v", "{\"x\": {}}") });
    let expected = HttpContent {
        method: "POST".to_owned(),
        path: "/a?b={c}".to_owned(),
        headers: vec![("X-Test".to_owned(), "v".to_owned())],
        body: b"{\"x\": {}}".to_vec(),
    };
    assert_eq!(ask(&talk), expected);
    talk.advance(Some("ignored"));
    assert_eq!(ask(&talk), expected);
}

#[test]
fn placeholders_are_filled_in_for_every_request() {
    let spec = plain("/{{uuid}}/{{seq}}/{{turn}}", "{{uuid}}", "n={{random 1000000}}");
    let workload = workload(&[ScenarioSpec { turns: 2, ..spec }]);
    let mut talk = workload.conversation(ConversationKey::arrival(7), None);
    let first = ask(&talk);
    assert_eq!(first.path, format!("/{}/7/0", talk.id()));
    assert_eq!(first.headers[0].1, talk.id(), "one request has one id");
    talk.advance(None);
    let second = ask(&talk);
    assert!(second.path.ends_with("/7/1"));
    assert_ne!(second.headers[0].1, talk.id(), "and the next has another");
    assert_ne!(first.body, second.body);
}

#[test]
fn the_content_goes_where_the_prompt_is_asked_for() {
    let content = Content::Pool { prompts: vec!["say \"a b\"\n".to_owned()] };
    let spec = plain("/?q={{prompt}}", "{{prompt}}", "{\"query\": \"{{prompt}}\"}");
    let request = ask(&conversation(&ScenarioSpec { content, ..spec }));
    assert_eq!(request.path, "/?q=say%20%22a%20b%22%0A");
    assert_eq!(request.headers[0].1, "say \"a b\" ");
    assert_eq!(request.body, b"{\"query\": \"say \\\"a b\\\"\\n\"}");
}

#[test]
fn a_prompt_has_a_marker_and_its_size() {
    let spec = plain("/", "", "{{prompt}}");
    let bust = ScenarioSpec { content: sized(25), cache_mode: CacheMode::Bust, ..spec };
    for talk in conversations(&bust, 10) {
        let body = body(&talk);
        assert_eq!((&body[20..24], body.len()), ("--- ", 99));
    }
}

#[test]
fn content_is_only_needed_for_a_prompt_placeholder_and_is_empty_if_left_out() {
    let unused = Content::Pool { prompts: vec![] };
    conversation(&ScenarioSpec { content: unused, ..plain("/", "", "{{seq}}") });
    let empty = ScenarioSpec { content: sized(0), ..plain("/", "", "[{{prompt}}]") };
    assert_eq!(body(&conversation(&empty)), "[]");
}
