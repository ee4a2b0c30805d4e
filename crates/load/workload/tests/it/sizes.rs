//! Synthetic text of a given size.

use std::collections::HashSet;

use plimsoll_protocol::RequestContent;
use plimsoll_workload::{CacheMode, ScenarioSpec};

use crate::support::{
    chat, common, conversation, conversations, last_text, scenario, sized, texts, tokens,
};

const SIZES: [u32; 14] = [1, 2, 3, 9, 10, 11, 12, 128, 496, 497, 550, 1_002, 12_500, 50_000];

fn of_size(size: u32, cache_mode: CacheMode) -> ScenarioSpec {
    ScenarioSpec { content: sized(size), cache_mode, ..scenario() }
}

#[test]
fn prompts_are_exactly_of_their_size_with_and_without_a_marker() {
    for size in SIZES {
        for cache_mode in [CacheMode::Allow, CacheMode::Bust] {
            for text in texts(&of_size(size, cache_mode), 5) {
                assert_eq!(text.len(), size as usize * 4 - 1, "{size} {cache_mode:?}");
                assert_eq!(text.split(' ').count(), size as usize, "{size} {cache_mode:?}");
                assert_eq!(tokens(&text), size as usize);
            }
        }
    }
}

#[test]
fn every_turn_is_of_its_size() {
    let spec = ScenarioSpec { turns: 3, ..of_size(200, CacheMode::Bust) };
    let mut talk = conversation(&spec);
    for turn in 1..=3 {
        let lines = chat(&talk).1;
        assert_eq!(lines.len(), turn * 2 - 1);
        assert_eq!(tokens(&lines.last().unwrap().1), 200);
        talk.advance(Some("ok"));
    }
}

#[test]
fn a_marker_is_shortened_to_fit() {
    let text = |size| last_text(&conversation(&of_size(size, CacheMode::Bust)));
    let whole = text(9);
    for size in [1, 3, 5] {
        assert_eq!(text(size), whole[..size as usize * 4 - 1], "{size} tokens");
    }
    assert_eq!(whole[20..24], *"--- ");
}

#[test]
fn conversations_differ_beyond_the_marker() {
    for cache_mode in [CacheMode::Allow, CacheMode::Bust] {
        for size in [128, 12_500] {
            let texts = texts(&of_size(size, cache_mode), 400);
            let bodies: HashSet<_> = texts.iter().map(|text| &text[24..]).collect();
            assert_eq!(bodies.len(), texts.len(), "{size} {cache_mode:?}");
            assert!(common(&texts[0][24..], &texts[1][24..]) < 40);
        }
    }
}

#[test]
fn long_prompts_are_mostly_shared_memory() {
    let talks = conversations(&of_size(50_000, CacheMode::Bust), 20);
    let mut distinct = HashSet::new();
    for talk in &talks {
        let RequestContent::Chat { messages, .. } = talk.turn().unwrap().content else {
            panic!("not a chat")
        };
        for piece in messages[0].text.pieces() {
            distinct.insert((piece.as_ptr().addr(), piece.len()));
        }
    }
    let bytes: usize = distinct.iter().map(|(_, length)| length).sum();
    assert!(bytes < 600_000, "20 prompts of 200 kB keep {bytes} bytes");
}
