//! Cached responses belong to the rules that were applied to them.

use std::fs;

use plimsoll_gateway_server::{Gateway, Spec};

use super::support::client::post;
use super::support::provider::{Provider, answer};
use super::support::{CHAT, question, streamed};

const PRIVATE: &str = "ada.lovelace@example.org";

#[test]
fn an_answer_of_before_a_reload_is_not_served_unscrubbed() {
    let provider =
        Provider::start(|seen, wire| answer(seen, wire, &[format!("write to {PRIVATE} now")]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.yaml");
    let write = |sections: &str| {
        let text = format!(
            "listen: 127.0.0.1:0\nupstreams: {{u: {{addresses: ['{}']}}}}\n\
             routes: [{{name: llm, path: '/*', upstream: u, llm: true}}]\ncache: {{}}\n{sections}",
            provider.addr
        );
        fs::write(&file, text).unwrap();
    };
    write("");
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    let ask = |whole: bool| {
        let body = if whole { question("who") } else { streamed("who") };
        let reply = post(gateway.addr(), CHAT, &[], &body);
        assert_eq!(reply.status, 200);
        (reply.header("x-cache").unwrap().to_owned(), reply.text().contains(PRIVATE))
    };
    let shared = |cache: &str, is_private| (cache.to_owned(), is_private);
    for whole in [true, false] {
        assert_eq!([ask(whole), ask(whole)], [shared("miss", true), shared("hit", true)]);
    }
    write("scrub: {}\n");
    gateway.reload().unwrap();
    for whole in [true, false] {
        assert_eq!([ask(whole), ask(whole)], [shared("miss", false), shared("hit", false)]);
    }
    // Whatever changes what is scrubbed is another question, too.
    write("scrub: {pass_types: [image/png]}\n");
    gateway.reload().unwrap();
    assert_eq!(ask(true), shared("miss", false));
    // No entry is lost: with the earlier rules, the earlier responses are served again.
    write("");
    gateway.reload().unwrap();
    assert_eq!(ask(true), shared("hit", true));
}

#[test]
fn rules_in_a_file_belong_to_the_question() {
    let provider = Provider::with_text(&["hello"]);
    let folder = tempfile::tempdir().unwrap();
    let (file, rules) = (folder.path().join("g.yaml"), folder.path().join("rules.yaml"));
    let write = |word: &str| {
        let text = format!(
            "rules: [{{id: r, category: admin, description: d, literals: [{word}], \
             pattern: '{word}', positive: [{word}], negative: [other]}}]\n"
        );
        fs::write(&rules, text).unwrap();
    };
    write("first");
    let text = format!(
        "listen: 127.0.0.1:0\nupstreams: {{u: {{addresses: ['{}']}}}}\n\
         routes: [{{name: llm, path: '/*', upstream: u, llm: true}}]\ncache: {{}}\n\
         policy: {{rules: '{}'}}\n",
        provider.addr,
        rules.display()
    );
    fs::write(&file, text).unwrap();
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    let ask = || {
        let reply = post(gateway.addr(), CHAT, &[], &question("who"));
        reply.header("x-cache").unwrap_or_default().to_owned()
    };
    assert_eq!([ask(), ask()], ["miss", "hit"]);
    write("second");
    gateway.reload().unwrap();
    assert_eq!([ask(), ask()], ["miss", "hit"]);
}
