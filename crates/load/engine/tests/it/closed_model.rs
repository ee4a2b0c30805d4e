//! Virtual users and conversations: counts, tokens, growing chats, weights of scenarios.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_measure::TokenSource;

use crate::support::{CHAT, joined, mock, plan, run, url};

#[test]
fn closed_loop_counts_agree_with_the_mock_and_tokens_are_exact() {
    let mock = mock("");
    let ran = run(plan(
        &url(&mock),
        &format!("{CHAT}stages: '8:1s'\nstream: true\nlimits: {{}}\n").replace("limits: {}\n", ""),
    ));
    let log = mock.take_log();
    let accounting = ran.accounting();
    assert_eq!(accounting.completed, accounting.scheduled);
    assert_eq!(log.len() as u64, accounting.scheduled);
    assert!(accounting.scheduled > 100, "only {} requests in a second", accounting.scheduled);
    let pairs = joined(&ran, &log);
    assert_eq!(
        pairs.len(),
        ran.samples.len(),
        "every sample has its record under its own request id"
    );
    for (sample, record) in pairs {
        assert_eq!(u64::from(sample.usage.prompt.count), record.prompt_tokens);
        assert_eq!(record.prompt_tokens, 64);
        assert_eq!(sample.usage.completion.count, record.planned_tokens);
        assert_eq!(sample.usage.completion.source, TokenSource::Reported);
        assert_eq!((sample.events, record.planned_tokens), (8, 8));
        assert_eq!(sample.status, 200);
    }
    // Unique prompts by default: a cache in between could never hit.
    let prompts: BTreeSet<u64> = log.iter().map(|record| record.prompt_hash).collect();
    assert_eq!(prompts.len(), log.len());
}

#[test]
fn conversations_grow_turn_by_turn_and_follow_the_weights() {
    let mock = mock("");
    let profile = "
stages: '20:2s'
stream: true
max_tokens: 16
drain: 5s
scenarios:
  - {name: short, weight: 3, turns: 1, content: {mode: pool, prompts: [one, two]}}
  - {name: long, weight: 1, turns: 3, content: {mode: scripted, script: [a, b, c]}, think_time: 1ms}
";
    let ran = run(plan(&url(&mock), profile));
    let log = mock.take_log();
    let mut by_conversation: BTreeMap<u64, Vec<(u16, u64, u32)>> = BTreeMap::new();
    for (sample, record) in joined(&ran, &log) {
        if sample.scenario.0 == 1 {
            let turns = by_conversation.entry(sample.conversation.0).or_default();
            turns.push((sample.turn, record.prompt_tokens, record.messages));
        }
    }
    let whole: Vec<_> = by_conversation.values_mut().filter(|turns| turns.len() == 3).collect();
    assert!(whole.len() > 50);
    for turns in whole {
        turns.sort_unstable();
        assert!(turns[0].1 < turns[1].1 && turns[1].1 < turns[2].1, "{turns:?}");
        // User, then user-assistant-user, then two more.
        assert_eq!(turns.iter().map(|turn| turn.2).collect::<Vec<_>>(), [1, 3, 5]);
    }
    let conversations = |scenario: u16| {
        ran.samples.iter().filter(|s| s.scenario.0 == scenario && s.turn == 0).count() as f64
    };
    let (short, long) = (conversations(0), conversations(1));
    let share = short / (short + long);
    let sigma = (0.75 * 0.25 / (short + long)).sqrt();
    assert!((share - 0.75).abs() < 4.0 * sigma, "share {share}, sigma {sigma}");
}
