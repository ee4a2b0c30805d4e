//! Embeddings: every request is independent.

use plimsoll_protocol::{Dialect, RequestContent};
use plimsoll_workload::{CacheMode, Conversation, ScenarioSpec, SystemPrompt};

use crate::support::{conversation, scenario, sized, tokens};

fn input(talk: &Conversation) -> String {
    let RequestContent::Embed { inputs } = talk.turn().unwrap().content else {
        panic!("not an embedding")
    };
    assert_eq!(inputs.len(), 1);
    inputs[0].to_string()
}

#[test]
fn the_content_is_embedded_turn_by_turn() {
    let system = Some(SystemPrompt::Text("ignored".to_owned()));
    let spec = ScenarioSpec { protocol: Dialect::OpenaiEmbeddings, turns: 2, system, ..scenario() };
    let mut talk = conversation(&spec);
    assert_eq!(input(&talk), "hello");
    talk.advance(None);
    assert_eq!(input(&talk), "hello");
}

#[test]
fn every_text_has_a_different_marker() {
    let spec = ScenarioSpec {
        protocol: Dialect::OpenaiEmbeddings,
        turns: 2,
        cache_mode: CacheMode::Bust,
        content: sized(30),
        ..scenario()
    };
    let mut talk = conversation(&spec);
    let first = input(&talk);
    talk.advance(None);
    let second = input(&talk);
    assert_eq!((tokens(&first), tokens(&second)), (30, 30));
    assert_eq!((&first[20..24], &second[20..24]), ("--- ", "--- "));
    assert_ne!(second[..20], first[..20], "a cache would recognise it");
}
