//! Tests of the cache key.

use super::*;

fn key(endpoint: Endpoint, body: &str) -> Vec<u8> {
    let mut key = Vec::new();
    write_cache_key(endpoint, body.as_bytes(), |bytes| key.extend_from_slice(bytes)).unwrap();
    key
}

fn chat(body: &str) -> Vec<u8> {
    key(Endpoint::Chat, body)
}

const BASE: &str =
    r#"{"model":"m","messages":[{"role":"user","content":"a é"}],"temperature":0.5}"#;

#[test]
fn equivalent_requests_have_the_same_key() {
    let same = [
        (
            "order of members",
            r#"{"temperature":0.5,"messages":[{"content":"a é","role":"user"}],"model":"m"}"#,
        ),
        (
            "white space",
            "{ \"model\" : \"m\",\n\"messages\":[ {\"role\":\"user\",\"content\":\"a é\"} ],\"temperature\":0.5 }",
        ),
        (
            "escapes",
            r#"{"mod\u0065l":"m","messages":[{"role":"user","content":"\u0061 \u00e9"}],"temperature":0.5}"#,
        ),
    ];
    for (case, body) in same {
        assert_eq!(chat(BASE), chat(body), "{case}");
    }
}

#[test]
fn different_requests_have_different_keys() {
    let mut keys = vec![chat(BASE), key(Endpoint::Responses, BASE)];
    keys.extend(
        [
            r#"{"model":"n","messages":[{"role":"user","content":"a é"}],"temperature":0.5}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a e"}],"temperature":0.5}"#,
            r#"{"model":"m","messages":[{"role":"user","content":["a é"]}],"temperature":0.5}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é"},{}],"temperature":0.5}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é"},[]],"temperature":0.5}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é"}],"temperature":"0.5"}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é"}],"temperature":0}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é"}]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é"}],"temperature":0.5,"stream":true}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é"}],"temperature":0.5,"stream":true,"stream_options":{"include_usage":true}}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é"}],"temperature":0.5,"x_unknown":1}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"a é","user":"in a message it counts"}],"temperature":0.5}"#,
        ]
        .map(chat),
    );
    let count = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), count);
}

#[test]
fn the_key_format_is_stable_because_caches_outlive_releases() {
    let mut expected = b"plimsoll-answer-2\0/v1/embeddings{".to_vec();
    for (letter, text) in
        [('k', "input"), ('s', "a"), ('k', "model"), ('s', "m"), ('k', "n"), ('n', "1")]
    {
        expected.push(letter as u8);
        expected.extend((text.len() as u64).to_le_bytes());
        expected.extend(text.bytes());
    }
    expected.push(b'}');
    assert_eq!(key(Endpoint::Embeddings, r#"{"n":1,"model":"m","input":"a"}"#), expected);
}

#[test]
fn invalid_requests_have_no_key() {
    for body in ["", "[]", "{", "{} x", "{\"a\":\"\\ud800\"}"] {
        let written = write_cache_key(Endpoint::Chat, body.as_bytes(), |_| {});
        assert_eq!(written.map_err(|error| error.status()), Err(400), "{body}");
    }
}
