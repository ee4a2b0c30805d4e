//! The part of a profile that describes content: scenarios and traces.

mod agent;
mod length;
mod mcp;
mod status_set;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use agent::{AgentRole, AgentSpec, ApproveSpec, ToolProtocol, part_names, with_parts};
pub use length::{LengthDistribution, LengthSpec, LognormalLength};
pub use mcp::{ByteRange, McpMethod, McpSpec, McpStep};
use plimsoll_measure::{Nanos, PolicyDecision, Rng};
use plimsoll_protocol::rpc::a2a::Version;
use plimsoll_protocol::{Dialect, TokenLimit};
use schemars::{JsonSchema, Schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
pub use status_set::{StatusSet, StatusSetError};

use crate::trace::{ReplySource, Trace, TraceSpec, TrafficFile};

/// Whether prompts may hit caches on the way to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// `bust` for synthetic text and prompts of the profile; prompts of files stay unchanged.
    #[default]
    Auto,
    /// A unique id before every conversation (after a shared prefix, if there is one) and in
    /// `x-request-id`, and an id of the run before text that conversations share. The ids differ
    /// between runs, so cache entries of earlier runs are useless.
    Bust,
    /// Prompts repeat if the content repeats them.
    Allow,
}

impl CacheMode {
    /// Whether texts get an id. `own` means that the text is from a user's file.
    pub const fn busts(self, own: bool) -> bool {
        match self {
            Self::Auto => !own,
            Self::Bust => true,
            Self::Allow => false,
        }
    }
}

/// Source of the user's side of the dialogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// A random prompt of a list for every turn.
    Pool {
        /// The list.
        prompts: Vec<String>,
    },
    /// Recorded traffic: prompts, conversations, batches, logs, or a canonical file, in any format
    /// that `plimsoll import` reads. Sessions are replayed completely, each request as recorded;
    /// the run lists members that are not sent.
    File {
        /// The file, relative to the profile.
        file: PathBuf,
        /// Format, one of `plimsoll import --as`. Omitted: recognised.
        format: Option<String>,
        /// Order of the sessions.
        #[serde(default)]
        order: PromptOrder,
        /// Speed of recorded waits: 10 divides them by ten.
        time_scale: Option<f64>,
        /// Replies that later prompts repeat.
        #[serde(default)]
        replies: ReplySource,
        /// Skip broken rows instead of rejecting the file.
        #[serde(default)]
        skip_broken: bool,
        /// Reject a file with members that are not sent.
        #[serde(default)]
        strict: bool,
        /// The file's content, read once for all copies of the scenario.
        #[serde(skip)]
        read: TrafficFile,
    },
    /// A fixed dialogue: turn `i` says `script[i]`. There must be a line for every turn.
    Scripted {
        /// The user's lines.
        script: Vec<String>,
    },
    /// Synthetic text of about a given number of tokens for every turn.
    Sized {
        /// Tokens per turn: counted with the profile's tokenizer if it names one, else estimated. A
        /// number, or a distribution like `{mean: 550, stddev: 100}`.
        approx_input_tokens: LengthSpec,
    },
}

impl Content {
    /// The recorded traffic of a file, read once; `None` for other content.
    pub(crate) fn recording(&self) -> Option<Result<Arc<Trace>, String>> {
        let Self::File { file, format, time_scale, replies, skip_broken, read, .. } = self else {
            return None;
        };
        let (time_scale, replies, skip_broken) = (*time_scale, *replies, *skip_broken);
        let (file, format) = (file.clone(), format.clone());
        let spec =
            TraceSpec { file, format, time_scale, replies, skip_broken, ..TraceSpec::default() };
        Some(read.get(|| Trace::load(&spec, Path::new(""))))
    }
}

/// Order of the sessions of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptOrder {
    /// A random session for each conversation. From a file of bare prompts: a random prompt for
    /// every turn.
    #[default]
    Random,
    /// Each session once, in the order of the file; the run ends after the last one. A warm-up
    /// sends random sessions. Requires a single scenario without `turns`.
    File,
}

/// Prefixes that several conversations share, like common tool definitions or documents. A prefix
/// comes before all other text of a prompt, and its tokens are additional.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefixPool {
    /// Share of the conversations that begin with a prefix.
    #[serde(default = "whole")]
    pub share: f64,
    /// Number of different prefixes; each conversation draws one.
    #[serde(default = "one")]
    pub count: u32,
    /// Length of each, in tokens.
    pub approx_tokens: u32,
}

const fn whole() -> f64 {
    1.0
}

const fn one() -> u32 {
    1
}

/// A plain HTTP request. In path, header values and body these are replaced:
///
/// - `{{uuid}}`: an id of the request, the same everywhere in it; in the first turn the
///   conversation's id
/// - `{{seq}}`: the number of the conversation; in the open model the number of its arrival, from 0
/// - `{{turn}}`: the turn, from 0
/// - `{{random N}}`: a random whole number from 0 to N-1, a new one for every placeholder
/// - `{{prompt}}`: the text of the content, percent-encoded in the path, on one line in a header,
///   and escaped as part of a JSON string in a body that begins with `{` or `[`
/// - `{{open}}`: two opening braces, for texts that contain them
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpSpec {
    /// `GET`, `POST`, ...
    #[serde(default = "get")]
    pub method: String,
    /// Path and query; empty means the target's own path.
    #[serde(default)]
    pub path: String,
    /// Headers of this request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body.
    #[serde(default)]
    pub body: String,
    /// File to send as the body, relative to the profile. Its placeholders are not replaced.
    pub body_file: Option<PathBuf>,
    /// Status codes counted as success: `200, 304, 404`, `2xx`, `any`, or a list. Left out: 2xx and
    /// 304.
    pub expect: Option<StatusSet>,
}

fn get() -> String {
    "GET".to_owned()
}

/// The handshake of the `websocket` protocol. A conversation has a connection of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSocketSpec {
    /// Path and query of the handshake. Left out: `/ws/chat` below the target's path, in the place
    /// of its `/v1`.
    pub path: Option<String>,
    /// The subprotocol that the handshake asks for (`Sec-WebSocket-Protocol`).
    pub subprotocol: Option<String>,
}

/// One weighted kind of user behaviour, with every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioSpec {
    /// Name, unique in the plan.
    pub name: String,
    /// Share of all conversations, relative to the other weights.
    pub weight: f64,
    /// Name of the model, in place of the target's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Wire format.
    pub protocol: Dialect,
    /// Requests of one conversation.
    pub turns: u16,
    /// Whether responses are streamed.
    pub stream: bool,
    /// System prompt.
    pub system: Option<SystemPrompt>,
    /// The user's side.
    pub content: Content,
    /// Maximum output tokens per turn.
    pub max_tokens: Option<u32>,
    /// The same, drawn for each turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<LengthSpec>,
    /// The name of the output token limit in `openai-chat`.
    pub max_tokens_field: TokenLimit,
    /// The result of every tool call of the model.
    pub tool_result: String,
    /// Pause before every turn but the first, and of a virtual user before the next conversation.
    pub think_time: Option<DurationSpec>,
    /// Headers of every request, in addition to the profile's headers.
    pub headers: BTreeMap<String, String>,
    /// Cache busting.
    pub cache_mode: CacheMode,
    /// Shared prefixes.
    pub prefix_pool: Option<PrefixPool>,
    /// The request of the `http` protocol.
    pub http: Option<HttpSpec>,
    /// The sessions of the `mcp` protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpSpec>,
    /// The conversations of the `a2a` protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a2a: Option<A2aSpec>,
    /// The handshake of the `websocket` protocol.
    pub websocket: WebSocketSpec,
    /// Further members of the request's JSON object, like `temperature`.
    pub parameters: serde_json::Map<String, Value>,
    /// The expected policy decision for every turn.
    pub expect: Option<ExpectedDecision>,
    /// Label by which scenarios are grouped in reports.
    pub category: Option<String>,
    /// How the target's decision is read from its response.
    pub policy_decision: PolicyDecisionSpec,
    /// Whether it is an agent, or a part of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRole>,
}

impl ScenarioSpec {
    /// A scenario with the defaults of a profile: a chat of one turn, not streamed.
    pub fn new(name: &str, content: Content) -> Self {
        Self {
            name: name.to_owned(),
            weight: 1.0,
            model: None,
            protocol: Dialect::default(),
            turns: 1,
            stream: false,
            system: None,
            content,
            max_tokens: None,
            output_tokens: None,
            max_tokens_field: TokenLimit::default(),
            tool_result: "ok".to_owned(),
            think_time: None,
            headers: BTreeMap::new(),
            cache_mode: CacheMode::default(),
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
}

/// The standard normal distribution's 95th percentile.
const Z95: f64 = 1.644_853_626_951_472_2;

/// A duration, fixed or drawn from a distribution each time.
///
/// In files a fixed duration is a text (`2s`); a distribution is a mapping like
/// `{exponential: {mean: 2s}}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(transform = or_text)]
pub enum DurationSpec {
    /// Always the same.
    Fixed(#[schemars(with = "String", extend("format" = "duration"))] Nanos),
    /// Uniform between two durations.
    Uniform {
        /// The shortest.
        #[schemars(with = "String", extend("format" = "duration"))]
        min: Nanos,
        /// The longest.
        #[schemars(with = "String", extend("format" = "duration"))]
        max: Nanos,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        #[schemars(with = "String", extend("format" = "duration"))]
        mean: Nanos,
    },
    /// Normal, cut off at zero.
    Normal {
        /// Mean.
        #[schemars(with = "String", extend("format" = "duration"))]
        mean: Nanos,
        /// Standard deviation.
        #[schemars(with = "String", extend("format" = "duration"))]
        std: Nanos,
    },
    /// Lognormal, given by two of its quantiles.
    Lognormal {
        /// Median: half of all values are shorter.
        #[schemars(with = "String", extend("format" = "duration"))]
        median: Nanos,
        /// 95th percentile: 95 % of all values are shorter.
        #[schemars(with = "String", extend("format" = "duration"))]
        p95: Nanos,
    },
}

impl DurationSpec {
    /// Draws a duration.
    ///
    /// The lognormal is `median * exp(sigma z)` with a standard normal `z`; since 95 % of all `z`
    /// are below 1.645, `sigma = ln(p95 / median) / 1.645`.
    pub fn sample(&self, rng: &mut Rng) -> Nanos {
        match *self {
            Self::Fixed(length) => length,
            Self::Uniform { min, max } => min + max.saturating_sub(min).scale(rng.uniform()),
            Self::Exponential { mean } => mean.scale(rng.exponential()),
            Self::Normal { mean, std } => {
                Nanos::from_secs_f64(std.as_secs_f64().mul_add(rng.normal(), mean.as_secs_f64()))
            }
            Self::Lognormal { median, p95 } => {
                let sigma = (p95.as_secs_f64() / median.as_secs_f64()).ln() / Z95;
                median.scale((sigma * rng.normal()).exp())
            }
        }
    }

    /// Whether durations can be drawn. False for a range whose ends are swapped, or a lognormal
    /// without a spread.
    pub(crate) fn is_valid(&self) -> bool {
        match *self {
            Self::Uniform { min, max } => min <= max,
            Self::Lognormal { median, p95 } => median > Nanos::ZERO && median <= p95,
            Self::Fixed(_) | Self::Exponential { .. } | Self::Normal { .. } => true,
        }
    }
}

/// Lets the schema accept a plain text as well.
fn or_text(schema: &mut Schema) {
    let text = serde_json::json!({
        "type": "string",
        "format": "duration",
        "description": "Always the same, like `2s`.",
    });
    add_alternative(schema, text);
}

impl Serialize for DurationSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(length) => length.serialize(serializer),
            other => Self::serialize(other, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for DurationSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMapping)
    }
}

struct TextOrMapping;

impl<'de> Visitor<'de> for TextOrMapping {
    type Value = DurationSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a length of time like `2s`, or a distribution like `{exponential: {mean: 2s}}`",
        )
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<DurationSpec, E> {
        text.parse().map(DurationSpec::Fixed).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DurationSpec, A::Error> {
        DurationSpec::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A decision that can be expected of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedDecision {
    /// Allowed.
    Allow,
    /// Refused by a rule.
    Block,
    /// Allowed with parts removed.
    Redact,
    /// Refused for the request rate.
    RateLimited,
}

impl From<ExpectedDecision> for PolicyDecision {
    fn from(decision: ExpectedDecision) -> Self {
        match decision {
            ExpectedDecision::Allow => Self::Allow,
            ExpectedDecision::Block => Self::Block,
            ExpectedDecision::Redact => Self::Redact,
            ExpectedDecision::RateLimited => Self::RateLimited,
        }
    }
}

/// How policy decisions are read from responses if the status alone is not enough.
///
/// The first match decides, in this order: block, redact, `rate_limited`, allow. A response without
/// a match has the policy decision of its status (2xx allow, 403 block, 429 `rate_limited`), unless
/// that decision has a match here: then it is unexpected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecisionSpec {
    /// Matches a refusal by a rule.
    pub block: Option<ResponseMatch>,
    /// Matches a response with parts removed.
    pub redact: Option<ResponseMatch>,
    /// Matches a refusal for the request rate.
    pub rate_limited: Option<ResponseMatch>,
    /// Matches a response that was allowed.
    pub allow: Option<ResponseMatch>,
}

impl PolicyDecisionSpec {
    /// The matches in the order in which they are tried.
    pub fn matches_in_order(&self) -> impl Iterator<Item = (PolicyDecision, &ResponseMatch)> {
        let ordered = [
            (PolicyDecision::Block, &self.block),
            (PolicyDecision::Redact, &self.redact),
            (PolicyDecision::RateLimited, &self.rate_limited),
            (PolicyDecision::Allow, &self.allow),
        ];
        ordered.into_iter().filter_map(|(decision, found)| Some((decision, found.as_ref()?)))
    }
}

/// The properties that a response must have for a policy decision, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseMatch {
    /// One of these statuses. Left out: any.
    #[serde(default)]
    #[schemars(inner(range(min = 100, max = 599)))]
    pub status: Vec<u16>,
    /// Each of these headers with exactly this value.
    #[serde(default)]
    pub header: BTreeMap<String, String>,
    /// This text in the body, compared byte by byte, with escapes and white space. Left out: any
    /// body.
    pub body_contains: Option<String>,
}

impl ResponseMatch {
    /// Whether it has no condition, so that every response matches.
    pub fn is_empty(&self) -> bool {
        let text = self.body_contains.as_deref().unwrap_or_default();
        self.status.is_empty() && self.header.is_empty() && text.is_empty()
    }
}

/// Adds one more form to the schema of an enum, as the first.
fn add_alternative(schema: &mut Schema, form: Value) {
    if let Some(forms) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        forms.insert(0, form);
    }
}

/// The system prompt: a text, or synthetic text of about a given number of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields, expecting = "expected a text, or `{approx_tokens: N}`")]
pub enum SystemPrompt {
    /// This text.
    Text(String),
    /// Synthetic text, the same in every conversation of the scenario.
    Synthetic {
        /// Length in tokens.
        approx_tokens: u32,
    },
}

// Conversations of a scenario with an agent.

/// The conversations of the `a2a` protocol: as many steps as the scenario has `turns`. The messages
/// are the scenario's `content`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct A2aSpec {
    /// Version of A2A.
    #[serde(default)]
    pub version: Version,
    /// Path of the agent. Omitted: the path of the target's URL, or else `/a2a`.
    #[serde(default)]
    pub path: String,
    /// Path of the agent's card.
    #[serde(default = "card_path")]
    pub card_path: String,
    /// Possible steps of a conversation, chosen by weight.
    pub steps: Vec<A2aStep>,
}

/// A step of a conversation with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct A2aStep {
    /// Action.
    pub action: A2aAction,
    /// Weight relative to the other steps.
    #[serde(default = "whole")]
    #[schemars(range(min = 0))]
    pub weight: f64,
}

/// Action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum A2aAction {
    /// Sends a message and waits until the task is over.
    Send,
    /// Sends a message and reads a stream of responses.
    Stream,
    /// Sends a message that returns as soon as the task exists.
    Submit,
    /// Asks for the state of the last task. Without a task, it sends a message first, like
    /// `submit`.
    Get,
    /// Sends a message like `submit`, and cancels its task.
    Cancel,
    /// Gets the agent's card.
    Card,
}

fn card_path() -> String {
    "/.well-known/agent-card.json".to_owned()
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Seed;

    use super::*;

    fn read(json: &str) -> Result<DurationSpec, serde_json::Error> {
        serde_json::from_str(json)
    }

    const SECOND: Nanos = Nanos::from_secs(1);

    #[test]
    fn a_plain_text_is_a_fixed_duration_and_is_written_as_one() {
        let fixed = DurationSpec::Fixed(Nanos::from_secs(2));
        assert_eq!(read("\"2s\"").unwrap(), fixed);
        assert_eq!(read("{\"fixed\": \"2s\"}").unwrap(), fixed);
        assert_eq!(serde_json::to_string(&fixed).unwrap(), "\"2s\"");
    }

    #[test]
    fn distributions_are_objects() {
        let mean = DurationSpec::Exponential { mean: SECOND };
        assert_eq!(read("{\"exponential\": {\"mean\": \"1s\"}}").unwrap(), mean);
        assert_eq!(serde_json::to_string(&mean).unwrap(), "{\"exponential\":{\"mean\":\"1s\"}}");
    }

    #[test]
    fn anything_else_is_refused_with_what_was_expected() {
        for (json, part) in [
            ("2", "expected a length of time like `2s`"),
            ("\"2\"", "`2` is not a length of time"),
            ("{\"gamma\": {}}", "unknown variant `gamma`"),
            ("{\"normal\": {\"mean\": \"1s\", \"sd\": \"1s\"}}", "unknown field `sd`"),
        ] {
            let message = read(json).unwrap_err().to_string();
            assert!(message.contains(part), "{json}: {message}");
        }
    }

    #[test]
    fn durations_have_the_moments_and_quantiles_of_their_distribution() {
        let sample = |spec: DurationSpec| {
            let mut lengths: Vec<_> = (0..40_000)
                .map(|i| spec.sample(&mut Seed(3).rng("think", i)).as_secs_f64())
                .collect();
            lengths.sort_by(f64::total_cmp);
            let mean = lengths.iter().sum::<f64>() / 40_000.0;
            [mean, lengths[0], lengths[20_000], lengths[38_000], lengths[39_999]]
        };
        let [mean, least, .., most] =
            sample(DurationSpec::Uniform { min: SECOND, max: Nanos::from_secs(3) });
        assert!((mean - 2.0).abs() < 0.02 && (1.0..3.0).contains(&least) && most <= 3.0);
        let [mean, _, median, ..] = sample(DurationSpec::Exponential { mean: SECOND });
        assert!((mean - 1.0).abs() < 0.02 && (median - 2f64.ln()).abs() < 0.02);
        let [mean, least, ..] = sample(DurationSpec::Normal { mean: SECOND, std: SECOND });
        assert!(least == 0.0 && (mean - 1.083).abs() < 0.02, "cut off at zero: {mean}");
        let [_, _, median, p95, _] =
            sample(DurationSpec::Lognormal { median: SECOND, p95: Nanos::from_secs(4) });
        assert!((median - 1.0).abs() < 0.03 && (p95 - 4.0).abs() < 0.15, "{median} {p95}");
    }

    #[test]
    fn a_text_is_written_as_it_is_and_a_length_as_a_mapping() {
        for (json, prompt) in [
            ("\"Be kind.\"", SystemPrompt::Text("Be kind.".to_owned())),
            ("{\"approx_tokens\":2000}", SystemPrompt::Synthetic { approx_tokens: 2_000 }),
        ] {
            assert_eq!(serde_json::from_str::<SystemPrompt>(json).unwrap(), prompt, "{json}");
            assert_eq!(serde_json::to_string(&prompt).unwrap(), json);
        }
        let refusal = serde_json::from_str::<SystemPrompt>("5").unwrap_err().to_string();
        assert!(refusal.contains("expected a text"), "{refusal}");
    }
}
