//! The scenario mix, and that a conversation depends on seed and key alone.

use std::fmt::Write as _;

use plimsoll_measure::{ConversationKey, IdSeed, Seed};
use plimsoll_workload::{CacheMode, ScenarioSpec, Workload};
use proptest::prelude::*;

use crate::support::{chat, scenario, sized, workload};

fn mixed() -> Vec<ScenarioSpec> {
    [55.0, 30.0, 15.0]
        .map(|weight| ScenarioSpec {
            weight,
            turns: 3,
            content: sized(60),
            cache_mode: CacheMode::Bust,
            ..scenario()
        })
        .into()
}

#[test]
fn scenarios_are_chosen_by_weight_in_the_open_and_in_the_closed_model() {
    let workload = workload(&mixed());
    let open = |n| ConversationKey::arrival(n);
    let closed = |n: u64| {
        ConversationKey::iteration(u32::try_from(n % 200).unwrap(), u32::try_from(n / 200).unwrap())
    };
    for key in [&open as &dyn Fn(u64) -> ConversationKey, &closed] {
        let mut counts = [0.0; 3];
        for n in 0..20_000 {
            let talk = workload.conversation(key(n), None);
            assert_eq!(talk.scenario(), workload.scenario(key(n)));
            counts[talk.scenario().index()] += 1.0;
        }
        for (count, share) in counts.iter().zip([0.55, 0.30, 0.15]) {
            let deviation = f64::sqrt(20_000.0 * share * (1.0 - share));
            assert!(f64::abs(count - 20_000.0 * share) < 4.0 * deviation, "{counts:?}");
        }
    }
}

/// All requests of a conversation, with fixed answers.
fn transcript(workload: &Workload, key: u64) -> String {
    let mut talk = workload.conversation(ConversationKey(key), None);
    let mut all = format!("{:?} {}", talk.scenario(), talk.id());
    while talk.turn().is_some() {
        let turn = (talk.request_id(), talk.think_time(), chat(&talk));
        writeln!(all, "\n{turn:?}").unwrap();
        talk.advance(Some("fine"));
    }
    all
}

#[test]
fn another_seed_gives_other_prompts() {
    let other = Workload::new(&mixed(), None, None, Seed(43), IdSeed::default()).unwrap();
    assert_ne!(transcript(&workload(&mixed()), 1), transcript(&other, 1));
}

#[test]
fn a_workload_is_shared_among_threads() {
    let workload = workload(&mixed());
    let here = transcript(&workload, 9);
    let there = std::thread::spawn(move || transcript(&workload, 9)).join().unwrap();
    assert_eq!(here, there);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn neither_order_nor_instance_matters(keys in proptest::collection::vec(any::<u64>(), 1..20)) {
        let (one, other) = (workload(&mixed()), workload(&mixed()));
        let forwards: Vec<_> = keys.iter().map(|key| transcript(&one, *key)).collect();
        let mut backwards: Vec<_> = keys.iter().rev().map(|key| transcript(&other, *key)).collect();
        backwards.reverse();
        prop_assert_eq!(forwards, backwards);
    }
}
