//! Dialogues.

use std::collections::{BTreeSet, HashSet};

use plimsoll_measure::{ConversationKey, IdSeed, Nanos};
use plimsoll_protocol::{Dialect, RequestContent, Role, ToolCall};
use plimsoll_workload::{CacheMode, Content, DurationSpec, PrefixPool, ScenarioSpec, SystemPrompt};

use crate::support::{
    chat, common, conversation, conversations, last_text, scenario, sized, tokens, workload,
};

fn scripted(lines: &[&str]) -> ScenarioSpec {
    let script: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
    let turns = u16::try_from(lines.len()).unwrap();
    ScenarioSpec { turns, content: Content::Scripted { script }, ..scenario() }
}

#[test]
fn a_dialogue_grows_by_an_answer_and_a_prompt_in_every_turn() {
    use Role::{Assistant, User};
    let mut talk = conversation(&scripted(&["one", "two", "three"]));
    let user = |text: &str| (User, text.to_owned());
    let model = |text: &str| (Assistant, text.to_owned());
    assert_eq!(chat(&talk), (None, vec![user("one")]));
    talk.advance(Some("1"));
    assert_eq!(chat(&talk).1, [user("one"), model("1"), user("two")]);
    talk.advance(Some("2"));
    assert_eq!(chat(&talk).1, [user("one"), model("1"), user("two"), model("2"), user("three")]);
    assert!(!talk.is_over());
    talk.advance(Some("3"));
    assert!(talk.is_over() && talk.turn().is_none());
    talk.advance(None);
    assert_eq!((talk.index(), talk.turns()), (3, Some(3)), "there is nothing beyond the end");
}

#[test]
fn an_answer_without_text_leaves_no_message() {
    for answer in [None, Some("")] {
        let mut talk = conversation(&scripted(&["one", "two"]));
        talk.advance(answer);
        let roles: Vec<_> = chat(&talk).1.into_iter().map(|(role, _)| role).collect();
        assert_eq!(roles, [Role::User, Role::User], "{answer:?}");
    }
}

/// Providers refuse a dialogue in which a tool call has no result (L-2).
#[test]
fn tool_calls_stay_in_the_dialogue_and_each_gets_a_result() {
    let call = |id: &str| ToolCall { id: id.to_owned(), ..ToolCall::default() };
    for answer in ["I look.", ""] {
        let mut talk = conversation(&scripted(&["one", "two", "three"]));
        talk.advance_with(answer, vec![call("c1"), call("")]);
        talk.advance(Some("done"));
        let RequestContent::Chat { messages, .. } = talk.turn().unwrap().content else {
            panic!("not a chat");
        };
        let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant, Role::User]);
        let calls: Vec<_> = messages[1].tool_calls.iter().map(|call| call.id.as_str()).collect();
        let results: Vec<_> =
            messages[2].tool_results.iter().map(|result| result.call_id.as_str()).collect();
        assert_eq!((calls.len(), calls[0], &results), (2, "c1", &calls));
        assert!(!calls[1].is_empty(), "a call without an id gets one");
        assert!(messages[2].tool_results.iter().all(|result| &*result.text == "done"));
        assert_eq!(messages[2].text.to_string(), "two");
        assert!(messages[4].tool_results.is_empty() && messages[3].tool_calls.is_empty());
    }
}

#[test]
fn all_chat_dialects_have_the_same_prompts() {
    for protocol in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::AnthropicMessages] {
        assert_eq!(last_text(&conversation(&ScenarioSpec { protocol, ..scenario() })), "hello");
    }
}

#[test]
fn limits_and_streaming_are_those_of_the_scenario() {
    let talk = conversation(&scenario());
    let turn = talk.turn().unwrap();
    assert_eq!((turn.stream, turn.max_tokens), (true, Some(64)));
}

#[test]
fn a_request_id_is_the_conversations_id_and_the_turn() {
    let mut talk = conversation(&scripted(&["one", "two"]));
    let id = talk.id().to_owned();
    let free = plimsoll_workload::conversation_id(IdSeed::default(), talk.key());
    assert_eq!(free.as_str(), id, "it can be computed without a conversation");
    assert_eq!(talk.request_id().as_str(), format!("{id}-0"));
    talk.advance(None);
    assert_eq!(talk.request_id().as_str(), format!("{id}-1"));
}

#[test]
fn a_pool_offers_all_its_prompts_turn_by_turn() {
    let prompts: Vec<_> = (0..4).map(|n| format!("prompt {n}")).collect();
    let content = Content::Pool { prompts: prompts.clone() };
    let spec = ScenarioSpec { turns: 2, content, ..scenario() };
    let mut seen = [[0; 4]; 2];
    for mut talk in conversations(&spec, 4_000) {
        let position = |text: &String| prompts.iter().position(|prompt| prompt == text).unwrap();
        seen[0][position(&last_text(&talk))] += 1;
        talk.advance(None);
        seen[1][position(&last_text(&talk))] += 1;
    }
    // 1,000 each; four standard deviations are 110.
    assert!(seen.iter().flatten().all(|count| i32::abs(count - 1_000) < 110), "{seen:?}");
}

#[test]
fn the_marker_stands_once_before_the_first_text() {
    let bust = ScenarioSpec { cache_mode: CacheMode::Bust, ..scripted(&["one", "two"]) };
    let mut talk = conversation(&bust);
    let marker = last_text(&talk).strip_suffix("one").unwrap().to_owned();
    assert_eq!((marker.len(), &marker[20..]), (24, "--- "));
    talk.advance(Some("1"));
    let lines: Vec<_> = chat(&talk).1.into_iter().map(|(_, text)| text).collect();
    assert_eq!(lines, [format!("{marker}one"), "1".to_owned(), "two".to_owned()]);

    let system = Some(SystemPrompt::Text("Be kind.".to_owned()));
    let (system, lines) = chat(&conversation(&ScenarioSpec { system, ..bust }));
    assert_eq!(system.unwrap(), format!("{marker}Be kind."));
    assert_eq!(lines[0].1, "one");
}

#[test]
fn a_synthetic_system_prompt_is_of_its_size_and_the_same_everywhere() {
    let system = Some(SystemPrompt::Synthetic { approx_tokens: 700 });
    for (cache_mode, own) in [(CacheMode::Allow, 0), (CacheMode::Bust, 24)] {
        let spec = ScenarioSpec { system: system.clone(), cache_mode, ..scenario() };
        let prompts: Vec<_> =
            conversations(&spec, 20).iter().map(|talk| chat(talk).0.unwrap()).collect();
        for prompt in &prompts {
            assert_eq!(tokens(prompt), 700);
            assert_eq!(prompt[own..], prompts[0][own..], "but for the marker");
        }
    }
}

#[test]
fn prefixes_come_first_and_are_shared() {
    let prefix_pool = Some(PrefixPool { share: 1.0, count: 3, approx_tokens: 600 });
    let spec = ScenarioSpec {
        prefix_pool,
        cache_mode: CacheMode::Bust,
        content: sized(100),
        ..scenario()
    };
    let talks = conversations(&spec, 300);
    let mut prefixes: Vec<_> =
        talks.iter().map(|talk| last_text(talk)[..2_400].to_owned()).collect();
    let mut markers = HashSet::new();
    for talk in &talks {
        let text = last_text(talk);
        assert_eq!(tokens(&text), 700);
        assert_eq!(text[2_420..2_424], *"--- ", "the marker follows the prefix");
        markers.insert(text[2_400..2_420].to_owned());
    }
    assert_eq!(markers.len(), 300);
    prefixes.sort();
    prefixes.dedup();
    assert_eq!(prefixes.len(), 3);
    // The marker of the run stands before each.
    for pair in prefixes.windows(2) {
        assert!((24..80).contains(&common(&pair[0], &pair[1])));
    }
}

#[test]
fn a_share_of_the_conversations_begins_with_a_prefix_that_repeats() {
    let prefix_pool = Some(PrefixPool { share: 0.6, count: 20, approx_tokens: 300 });
    let spec = ScenarioSpec { prefix_pool, turns: 2, content: sized(100), ..scenario() };
    let workload = workload(std::slice::from_ref(&spec));
    let again = conversations(&spec, 2_000);
    let (mut with, mut seen) = (0, BTreeSet::new());
    for (seq, other) in again.iter().enumerate() {
        let mut talk = workload.conversation(ConversationKey::arrival(seq as u64), None);
        let text = last_text(&talk);
        assert_eq!(text, last_text(other), "the seed determines the prefix");
        let is_long = text.split(' ').count() == 400;
        assert!(is_long || text.split(' ').count() == 100, "the prefix is additional");
        with += u32::from(is_long);
        // A word and its space are four bytes; the last word has no space.
        let is_known = is_long && !seen.insert(text[..1_200].to_owned());
        assert_eq!(talk.note_sent(), is_known.then_some([1_200, 1_599]));
        talk.advance(Some("1"));
        let later = is_long.then_some([1_200, 1_599 + 1 + 399]);
        assert_eq!(talk.note_sent(), later, "the second turn repeats the first");
    }
    // 1,200; four standard deviations are 88.
    assert!(with.abs_diff(1_200) < 88 && seen.len() == 20, "{with} {}", seen.len());
}

#[test]
fn prefixes_stand_before_the_system_prompt_where_there_is_one() {
    let prefix_pool = Some(PrefixPool { share: 1.0, count: 1, approx_tokens: 50 });
    let system = Some(SystemPrompt::Text("Be kind.".to_owned()));
    let spec = ScenarioSpec { prefix_pool, system, cache_mode: CacheMode::Bust, ..scenario() };
    let talk = conversation(&spec);
    let (system, lines) = chat(&talk);
    assert_eq!(system.unwrap()[220..], *"--- Be kind.");
    assert_eq!(lines[0].1, "hello");
}

#[test]
fn users_think_before_every_turn_but_the_first() {
    let think_time = Some(DurationSpec::Exponential { mean: Nanos::from_secs(2) });
    let spec = ScenarioSpec { think_time, turns: 3, ..scenario() };
    let mut sum = 0.0;
    for mut talk in conversations(&spec, 5_000) {
        assert_eq!(talk.think_time(), Nanos::ZERO);
        talk.advance(None);
        let second = talk.think_time();
        assert_eq!(second, talk.think_time(), "asking does not draw anew");
        talk.advance(None);
        assert_ne!(second, talk.think_time());
        sum += second.as_secs_f64() + talk.think_time().as_secs_f64();
    }
    assert!((sum / 10_000.0 - 2.0).abs() < 0.08, "{sum}");
}
