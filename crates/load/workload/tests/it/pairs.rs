//! Comparisons: the conversations of a block have the same content on every target, but for ids.

use plimsoll_measure::{ConversationKey, IdSeed, Seed, TargetId};
use plimsoll_protocol::{Dialect, RequestContent};
use plimsoll_workload::{
    CacheMode, Content, Conversation, HttpSpec, PrefixPool, ScenarioSpec, Workload,
};

use crate::support::{chat, scenario, sized};

const TARGETS: u16 = 3;

fn workload(spec: &ScenarioSpec) -> Workload {
    let specs = [spec.clone(), ScenarioSpec { name: "other".to_owned(), ..scenario() }];
    let workload = Workload::new(&specs, None, None, Seed(42), IdSeed::default()).unwrap();
    workload.for_targets(TARGETS, true)
}

fn on_each(workload: &Workload, block: u64) -> Vec<Conversation> {
    let key = |target| ConversationKey::arrival(block).on(TargetId(target), TARGETS);
    (0..TARGETS).map(|target| workload.conversation(key(target), None)).collect()
}

/// The whole request as one text.
fn text(conversation: &Conversation) -> String {
    match conversation.turn().unwrap().content {
        RequestContent::Chat { .. } => format!("{:?}", chat(conversation)),
        RequestContent::Embed { inputs } => inputs.iter().map(ToString::to_string).collect(),
        RequestContent::Http(request) => {
            let body = String::from_utf8(request.body.clone()).unwrap();
            format!("{} {:?} {body}", request.path, request.headers)
        }
        RequestContent::Rpc(request) => format!("{request:?}"),
        RequestContent::Recorded { .. } => unreachable!("nothing is recorded"),
    }
}

/// The text with every UUID, or the digits of a shortened one, blanked. It is checked that the
/// texts have the same length and differ there alone.
fn assert_same_but_for_ids(texts: &[String], ids: bool) {
    let lengths: Vec<_> = texts.iter().map(String::len).collect();
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}: {texts:?}");
    let differ: Vec<_> = (0..lengths[0])
        .filter(|&at| texts.iter().any(|text| text.as_bytes()[at] != texts[0].as_bytes()[at]))
        .collect();
    assert_eq!(!differ.is_empty(), ids, "{texts:?}");
    for text in texts {
        assert!(
            differ
                .iter()
                .all(|at: &usize| matches!(text.as_bytes()[*at], b'0'..=b'9' | b'a'..=b'z' | b'-')),
            "{texts:?}"
        );
    }
}

fn http(path: &str, body: &str) -> ScenarioSpec {
    let request = HttpSpec {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: [("x-seq".to_owned(), "{{seq}}".to_owned())].into(),
        body: body.to_owned(),
        body_file: None,
        expect: None,
    };
    ScenarioSpec {
        protocol: Dialect::Http,
        http: Some(request),
        content: sized(40),
        cache_mode: CacheMode::Bust,
        ..scenario()
    }
}

#[test]
fn requests_of_a_block_differ_in_nothing_but_ids_of_equal_length() {
    let bust = ScenarioSpec { cache_mode: CacheMode::Bust, ..scenario() };
    let prefixes = Some(PrefixPool { share: 1.0, count: 5, approx_tokens: 90 });
    let pool = Content::Pool { prompts: (0..50).map(|n| format!("prompt {n}")).collect() };
    for (name, spec, ids) in [
        ("pool", ScenarioSpec { content: pool, ..bust.clone() }, true),
        ("sized", ScenarioSpec { content: sized(200), ..bust.clone() }, true),
        ("shorter than the marker", ScenarioSpec { content: sized(4), ..bust.clone() }, true),
        ("shared prefixes", ScenarioSpec { prefix_pool: prefixes, ..bust.clone() }, true),
        ("no busting", ScenarioSpec { content: sized(200), ..scenario() }, false),
        (
            "embeddings",
            ScenarioSpec { protocol: Dialect::OpenaiEmbeddings, stream: false, ..bust },
            true,
        ),
        ("plain", http("/a/{{random 1000}}?u={{uuid}}", "{\"p\": \"{{prompt}}\"}"), true),
    ] {
        let workload = workload(&spec);
        let mut seen = Vec::new();
        for block in 0..40 {
            let all = on_each(&workload, block);
            assert!(all.iter().all(|own| own.scenario() == all[0].scenario()), "{name}");
            if all[0].scenario().0 > 0 {
                continue;
            }
            let texts: Vec<_> = all.iter().map(text).collect();
            assert_same_but_for_ids(&texts, ids);
            let requests: Vec<_> = all.iter().map(Conversation::request_id).collect();
            assert!(requests[0] != requests[1] && requests[1] != requests[2], "{name}");
            seen.push(texts[0].clone());
        }
        seen.sort();
        seen.dedup();
        assert!(seen.len() > 5, "{name}: blocks differ from each other: {seen:?}");
    }
}

#[test]
fn shared_prefixes_are_shared_on_one_target_and_never_between_two() {
    let spec = ScenarioSpec {
        cache_mode: CacheMode::Bust,
        prefix_pool: Some(PrefixPool { share: 1.0, count: 1, approx_tokens: 50 }),
        ..scenario()
    };
    let workload = workload(&spec);
    let first_words = |conversation: &Conversation| chat(conversation).1[0].1[..40].to_owned();
    let of_first_scenario = (0..40).map(|block| on_each(&workload, block));
    let blocks: Vec<_> = of_first_scenario.filter(|all| all[0].scenario().0 == 0).collect();
    let (one, other) = (&blocks[0], &blocks[1]);
    for target in 0..usize::from(TARGETS) {
        assert_eq!(first_words(&one[target]), first_words(&other[target]));
    }
    assert_ne!(first_words(&one[0]), first_words(&one[1]));
    assert_ne!(first_words(&one[1]), first_words(&one[2]));
}

#[test]
fn later_turns_are_the_same_whatever_the_targets_answered() {
    let spec = ScenarioSpec {
        turns: 3,
        content: sized(30),
        cache_mode: CacheMode::Bust,
        max_tokens: Some(16),
        ..scenario()
    };
    let workload = workload(&spec);
    let mut all = (0..1_000)
        .map(|block| on_each(&workload, block))
        .find(|all| all[0].turns() == Some(3))
        .unwrap();
    for turn in 1..3 {
        for (own, answer) in all.iter_mut().zip(["yes", "", "no, never"]) {
            own.advance(Some(answer));
        }
        let texts: Vec<_> = all.iter().map(text).collect();
        assert_same_but_for_ids(&texts, true);
        assert!(!texts[2].contains("no, never"));
        let answers =
            chat(&all[0]).1.into_iter().filter(|(role, _)| format!("{role:?}") == "Assistant");
        let answers: Vec<_> = answers.map(|(_, text)| text).collect();
        assert_eq!(answers.len(), turn);
        // 16 tokens of four bytes.
        assert!(answers.iter().all(|text| (50..80).contains(&text.len())), "{answers:?}");
    }
}
