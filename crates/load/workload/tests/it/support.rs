//! Scenarios and helpers that the tests share.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_measure::{ConversationKey, IdSeed, Seed};
use plimsoll_protocol::{Dialect, Message, RequestContent, Role, TokenLimit};
use plimsoll_workload::{
    CacheMode, Content, Conversation, PolicyDecisionSpec, ScenarioSpec, Trace, WebSocketSpec,
    Workload,
};

/// One turn of chat that says `hello`, without a marker.
pub(crate) fn scenario() -> ScenarioSpec {
    ScenarioSpec {
        name: "test".to_owned(),
        weight: 1.0,
        model: None,
        protocol: Dialect::OpenaiChat,
        turns: 1,
        stream: true,
        system: None,
        content: Content::Pool { prompts: vec!["hello".to_owned()] },
        max_tokens: Some(64),
        output_tokens: None,
        max_tokens_field: TokenLimit::MaxTokens,
        tool_result: "done".to_owned(),
        think_time: None,
        headers: BTreeMap::new(),
        cache_mode: CacheMode::Allow,
        prefix_pool: None,
        http: None,
        mcp: None,
        a2a: None,
        websocket: WebSocketSpec::default(),
        parameters: serde_json::Map::new(),
        expect: None,
        category: None,
        policy_decision: PolicyDecisionSpec::default(),
        agent: None,
    }
}

pub(crate) const fn sized(approx_input_tokens: u32) -> Content {
    let approx_input_tokens = plimsoll_workload::LengthSpec::Fixed(approx_input_tokens);
    Content::Sized { approx_input_tokens }
}

pub(crate) fn workload(scenarios: &[ScenarioSpec]) -> Workload {
    Workload::new(scenarios, None, None, Seed(42), IdSeed::default()).unwrap()
}

pub(crate) fn traced(scenario: &ScenarioSpec, trace: &Trace) -> Workload {
    Workload::new(
        std::slice::from_ref(scenario),
        Some(Arc::new(trace.clone())),
        None,
        Seed(42),
        IdSeed::default(),
    )
    .unwrap()
}

/// The first conversations of a scenario.
pub(crate) fn conversations(scenario: &ScenarioSpec, count: u64) -> Vec<Conversation> {
    let workload = workload(std::slice::from_ref(scenario));
    (0..count).map(|seq| workload.conversation(ConversationKey::arrival(seq), None)).collect()
}

pub(crate) fn conversation(scenario: &ScenarioSpec) -> Conversation {
    conversations(scenario, 1).remove(0)
}

/// The current turn of a chat: the system prompt and the messages.
pub(crate) fn chat(conversation: &Conversation) -> (Option<String>, Vec<(Role, String)>) {
    let RequestContent::Chat { system, messages } = conversation.turn().unwrap().content else {
        panic!("not a chat");
    };
    (
        system.map(ToString::to_string),
        messages.iter().map(|message: &Message| (message.role, message.text.to_string())).collect(),
    )
}

/// The user's last text.
pub(crate) fn last_text(conversation: &Conversation) -> String {
    chat(conversation).1.pop().unwrap().1
}

/// The texts of the first conversations.
pub(crate) fn texts(scenario: &ScenarioSpec, count: u64) -> Vec<String> {
    conversations(scenario, count).iter().map(last_text).collect()
}

/// As the mock provider counts.
pub(crate) fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// Length of the beginning that two texts have in common.
pub(crate) fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}
