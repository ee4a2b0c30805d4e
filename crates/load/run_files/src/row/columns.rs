//! Every key of a row, in the order in which it is written, and how it is read. The reference page
//! of `results.jsonl` is made from this table, and a test compares it with real rows.

use std::collections::BTreeMap;

use plimsoll_measure::{
    CacheState, FinishReason, Nanos, Operation, PolicyDecision, StreamShape, TokenSource,
};
use serde::{Deserialize, Deserializer};

/// One key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The key.
    pub key: &'static str,
    /// Its type, or the unit of a number.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// When the key is left out; empty if it never is.
    pub absent: &'static str,
}

macro_rules! columns {
    ($($(#[$read:meta])* $key:ident: $type:ty [$unit:literal] $meaning:literal, $absent:literal;)+) => {
        /// Every key of a row.
        pub const COLUMNS: [Column; [$(stringify!($key)),+].len()] = [$(Column {
            key: stringify!($key),
            unit: $unit,
            meaning: $meaning,
            absent: $absent,
        }),+];

        /// One line of `results.jsonl`, as [`crate::write_row`] wrote it.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[expect(missing_docs, reason = "`COLUMNS` defines every key")]
        pub struct ParsedRow {
            $($(#[$read])* pub $key: $type,)+
        }
    };
}

columns! {
    conversation: String ["text"] "Id of the conversation.", "";
    request_id: String ["text"]
        "Id sent as `x-request-id`: the conversation's id, `-` and the turn.", "";
    scenario: String ["text"] "Name of the scenario.", "";
    category: Option<String> ["text"] "Category of the scenario.", "the scenario has none";
    target: String ["text"] "Name of the target.", "";
    stage: String ["text"] "Name of the stage in which the turn was scheduled.", "";
    pair: Option<u64> ["number"]
        "Number of the block: the same for the same conversation on every target.",
        "nothing is compared";
    #[serde(default)]
    position: u8 ["number"]
        "Place in the order of the targets of its block, from 0.",
        "nothing is compared";
    turn: u16 ["number"] "Position in the conversation, from 0.", "";
    #[serde(default, deserialize_with = "operation")]
    operation: Option<Operation> ["text"]
        "What a tool server or an agent was asked for, like `tools/call`.",
        "another kind of request";
    stream: bool ["boolean"] "Whether a streamed response was asked for.", "";
    warmup: bool ["boolean"] "Whether the stage is a warm-up.", "";
    reused: bool ["boolean"] "Whether the connection had been used before.", "";
    intended_unix_ns: u64 ["ns"] "Intended start, since 1970 UTC.", "";
    #[serde(default, deserialize_with = "millis")]
    dispatch_lag_ms: Option<Nanos> ["ms"] "Dispatched minus intended start.", "never sent";
    #[serde(default, deserialize_with = "millis")]
    response_time_ms: Option<Nanos> ["ms"]
        "Finished minus intended start.",
        "never sent, or in flight at the end";
    #[serde(default, deserialize_with = "millis")]
    service_time_ms: Option<Nanos> ["ms"]
        "Finished minus dispatched.", "never sent, or in flight at the end";
    #[serde(default, deserialize_with = "millis")]
    ttfb_ms: Option<Nanos> ["ms"] "First byte of the response minus dispatched.", "no response";
    #[serde(default, deserialize_with = "millis")]
    ttft_ms: Option<Nanos> ["ms"]
        "First content event (text, reasoning or tool call) minus dispatched.",
        "no content event";
    #[serde(default, deserialize_with = "millis")]
    ttfot_ms: Option<Nanos> ["ms"]
        "First content event that is not reasoning, minus dispatched.",
        "no such event";
    #[serde(default, deserialize_with = "millis")]
    last_token_ms: Option<Nanos> ["ms"] "Last content event minus dispatched.", "no content event";
    #[serde(default, deserialize_with = "millis")]
    transfer_ms: Option<Nanos> ["ms"]
        "Finished minus first byte of the response.",
        "no response, or in flight at the end";
    #[serde(default, deserialize_with = "millis")]
    connection_wait_ms: Option<Nanos> ["ms"]
        "Wait for a connection, before the dispatch.",
        "the request did not wait";
    #[serde(default)]
    opened_ahead: bool ["boolean"]
        "`true` if the request was the first on a connection that was idle.",
        "it was not";
    #[serde(default, deserialize_with = "millis")]
    retried_after_ms: Option<Nanos> ["ms"]
        "The request was sent again, because the target had closed its connection without any \
         answer: how long that connection had been idle.",
        "it was sent once";
    #[serde(default, deserialize_with = "millis")]
    dns_ms: Option<Nanos> ["ms"] "Name resolution.", "no connection to a name was opened";
    #[serde(default, deserialize_with = "millis")]
    connect_ms: Option<Nanos> ["ms"] "TCP handshake.", "no connection was opened";
    #[serde(default, deserialize_with = "millis")]
    tls_ms: Option<Nanos> ["ms"] "TLS handshake.", "no TLS connection was opened";
    #[serde(default)]
    tls_resumed: bool ["boolean"]
        "Whether the TLS handshake resumed an earlier session.",
        "no TLS connection was opened";
    #[serde(default, deserialize_with = "millis")]
    upgrade_ms: Option<Nanos> ["ms"]
        "Handshake of a WebSocket, on the open connection.",
        "the request opened no WebSocket";
    #[serde(default, deserialize_with = "millis")]
    read_lag_ms: Option<Nanos> ["ms"]
        "User-space read minus the kernel's receive time stamp: the worst read of the request.",
        "no response, or no kernel time stamps";
    #[serde(default, deserialize_with = "millis")]
    send_stall_ms: Option<Nanos> ["ms"]
        "HTTP/2: time spent waiting for the target's flow-control windows or its limit of \
         concurrent streams.",
        "the request did not wait";
    #[serde(default)]
    receive_stall: bool ["boolean"]
        "HTTP/2: `true` if the generator's own flow-control window may have held the target up.",
        "it did not";
    #[serde(default, deserialize_with = "millis")]
    tpot_ms: Option<Nanos> ["ms"]
        "Time per output token after the first piece: `(last_token - first_token) / tokens_after_first`.",
        "no token after the first piece, their number is not known, or they came in one piece";
    #[serde(default, deserialize_with = "millis")]
    generator_ms: Option<Nanos> ["ms"]
        "Of the response time, what the generator itself may have added: an upper bound.",
        "less than 20us or 0.5 % of the time to the first byte, or no response time";
    #[serde(default)]
    generator_parts_ms: Vec<f64> ["list of ms"]
        "What the generator may have added to the dispatch and to the sending, and how much earlier \
         than stamped may have arrived: the first byte, the first content event, the first that is \
         not reasoning, the last, and the end. Zeros at the end are left out.",
        "as `generator_ms`";
    events: u32 ["number"] "Content events received.", "";
    #[serde(default)]
    gap_count: u32 ["number"] "Gaps between content events.", "no gap";
    #[serde(default, deserialize_with = "millis")]
    gap_mean_ms: Option<Nanos> ["ms"] "Mean gap.", "no gap";
    #[serde(default, deserialize_with = "millis")]
    gap_max_ms: Option<Nanos> ["ms"] "Longest gap.", "no gap";
    #[serde(default)]
    largest_burst: u32 ["number"] "Most content events in one read.", "no gap";
    #[serde(default)]
    late_together: u32 ["number"]
        "Content events that may share their read with the one before them only because the \
         generator read late.",
        "none";
    #[serde(default, deserialize_with = "shape")]
    stream_shape: Option<StreamShape> ["text"]
        "How the content events came: `intact`, `merged`, `buffered_whole`, `stalled`, \
         `read_late`, or `too_short` to tell.",
        "not a whole stream with content";
    event_ms: Option<Vec<f64>> ["list of ms"]
        "Arrival of each content event, since the dispatch.",
        "`event_times` does not select the conversation, or never sent";
    #[serde(default)]
    status: u16 ["number"] "HTTP status.", "no response head";
    outcome: String ["text"]
        "`completed`, `rejected`, `failed`, `timed_out`, `cancelled`, `in_flight` or `never_sent`.",
        "";
    error: Option<String> ["text"]
        "Error class, see [metrics](metrics.md#error-classes).",
        "the outcome is not `failed`";
    error_detail: Option<String> ["text"]
        "What the target says of its error, in its own words, or what was wrong with its answer or \
         the connection: the first 200 bytes, without credentials; control characters are escaped.",
        "the outcome is `completed`, or there is nothing to say";
    rpc_code: Option<i32> ["number"]
        "Code of the JSON-RPC error.",
        "the answer is none";
    #[serde(default)]
    tool_error: bool ["boolean"]
        "`true` if the call came through and the tool's result says `isError`, or the agent's task \
         ended as failed or rejected.",
        "it does not";
    #[serde(default)]
    notifications: u32 ["number"]
        "Messages of a tool server or an agent before its answer.",
        "none";
    #[serde(default, deserialize_with = "finish_reason")]
    finish_reason: Option<FinishReason> ["text"]
        "Why the model stopped, in the target's word; `other` for a word that no dialect has.",
        "the target did not say, or the response has no end";
    policy_decision: Option<PolicyDecision> ["text"]
        "The target's decision: `allow`, `block`, `redact`, `rate_limited` or `unexpected`.",
        "no response";
    expected: Option<PolicyDecision> ["text"]
        "The policy decision that the scenario expects.",
        "the scenario expects none";
    #[serde(default)]
    prompt_tokens: u32 ["tokens"] "Input tokens.", "not known";
    #[serde(default)]
    prompt_tokens_source: TokenSource ["text"]
        "`reported` by the target, or `estimated`.",
        "the number is not known";
    #[serde(default)]
    completion_tokens: u32 ["tokens"] "Output tokens.", "not known";
    #[serde(default)]
    completion_tokens_source: TokenSource ["text"]
        "`reported` by the target, or `estimated` from content events.",
        "the number is not known";
    #[serde(default)]
    cached_tokens: u32 ["tokens"]
        "Of the input tokens, those read from the target's prompt cache.",
        "none";
    #[serde(default)]
    reasoning_tokens: u32 ["tokens"] "Of the output tokens, those spent on reasoning.", "none";
    #[serde(default)]
    usage_refused: bool ["boolean"]
        "`true` if the target reported token counts that cannot be true.",
        "it did not";
    tokens_after_first: Option<u32> ["tokens"]
        "Output tokens after the first piece of the stream, without hidden or summarised reasoning.",
        "the usage does not separate the tokens that were sent";
    cache: Option<CacheState> ["text"]
        "What the response says of a cache: `hit`, `miss` or `bypass`.",
        "it says nothing";
    #[serde(default)]
    upstream_retries: u32 ["number"]
        "How often the target asked its upstream again, as the response says.",
        "none, or it says nothing";
    #[serde(default, deserialize_with = "millis")]
    server_time_ms: Option<Nanos> ["ms"]
        "How long the target took, as the response says.",
        "it says nothing";
    #[serde(default)]
    server_parts_ms: BTreeMap<String, f64> ["object of ms"]
        "The parts of its time that the target states in its headers, by name; `other` \
         are all names beyond the first 8 of the run.",
        "it names none, or they cannot be true";
    #[serde(default)]
    response_headers: BTreeMap<String, String> ["object of texts"]
        "The headers that the profile records (`response_headers.record`), by name.",
        "the profile records none, or the response has none of them";
    bytes_out: u64 ["bytes"] "Size of the request with its head.", "";
    bytes_in: u64 ["bytes"] "Size of the response with its head, as it came, after TLS.", "";
    decoded_bytes: Option<u64> ["bytes"]
        "Size of the response's body once decoded, where it came compressed (`content-encoding`).",
        "the body came as it is, or was not read";
    #[serde(default = "one")]
    weight: u32 ["number"]
        "Turns that the row stands for: the inverse of the probability with which the row was \
         kept.",
        "1";
}

const fn one() -> u32 {
    1
}

/// Exact for lengths below ten days: a double keeps 15 decimal digits.
fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
    let millis: Option<f64> = Option::deserialize(deserializer)?;
    Ok(millis.map(|millis| Nanos::from_secs_f64(millis / 1e3)))
}

/// An operation of a later version is not known.
fn operation<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Operation>, D::Error> {
    let name: Option<String> = Option::deserialize(from)?;
    Ok(name.and_then(|name| Operation::named(&name)))
}

/// A shape of a later version is not known.
fn shape<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StreamShape>, D::Error> {
    let name: Option<String> = Option::deserialize(deserializer)?;
    Ok(StreamShape::ALL.into_iter().find(|shape| Some(shape.name()) == name.as_deref()))
}

fn finish_reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FinishReason>, D::Error> {
    let name: Option<String> = Option::deserialize(from)?;
    Ok(name.map(|name| FinishReason::from_name(&name)))
}
