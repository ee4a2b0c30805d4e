//! Every key of a row, in the order in which it is written. The reference page of `results.jsonl`
//! is made from this table, and a test compares it with real rows.

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
    ($($key:literal [$unit:literal] $meaning:literal, $absent:literal;)+) => {
        /// Every key of a row.
        pub const COLUMNS: [Column; [$($key),+].len()] = [$(Column {
            key: $key,
            unit: $unit,
            meaning: $meaning,
            absent: $absent,
        }),+];
    };
}

columns! {
    "conversation" ["text"] "Id of the conversation.", "";
    "request_id" ["text"] "Id sent as `x-request-id`: the conversation's id, `-` and the turn.", "";
    "scenario" ["text"] "Name of the scenario.", "";
    "category" ["text"] "Category of the scenario.", "the scenario has none";
    "target" ["text"] "Name of the target.", "";
    "stage" ["text"] "Name of the stage in which the turn was scheduled.", "";
    "pair" ["number"]
        "Number of the block: the same for the same conversation on every target.",
        "nothing is compared";
    "position" ["number"]
        "Place in the order of the targets of its block, from 0.",
        "nothing is compared";
    "turn" ["number"] "Position in the conversation, from 0.", "";
    "operation" ["text"]
        "What a tool server or an agent was asked for, like `tools/call`.",
        "another kind of request";
    "stream" ["boolean"] "Whether a streamed response was asked for.", "";
    "warmup" ["boolean"] "Whether the stage is a warm-up.", "";
    "reused" ["boolean"] "Whether the connection had been used before.", "";
    "intended_unix_ns" ["ns"] "Intended start, since 1970 UTC.", "";
    "dispatch_lag_ms" ["ms"] "Dispatched minus intended start.", "never sent";
    "response_time_ms" ["ms"]
        "Finished minus intended start.",
        "never sent, or in flight at the end";
    "service_time_ms" ["ms"] "Finished minus dispatched.", "never sent, or in flight at the end";
    "ttfb_ms" ["ms"] "First byte of the response minus dispatched.", "no response";
    "ttft_ms" ["ms"]
        "First content event (text, reasoning or tool call) minus dispatched.",
        "no content event";
    "ttfot_ms" ["ms"]
        "First content event that is not reasoning, minus dispatched.",
        "no such event";
    "last_token_ms" ["ms"] "Last content event minus dispatched.", "no content event";
    "transfer_ms" ["ms"]
        "Finished minus first byte of the response.",
        "no response, or in flight at the end";
    "connection_wait_ms" ["ms"]
        "Wait for a connection, before the dispatch.",
        "the request did not wait";
    "opened_ahead" ["boolean"]
        "`true` if the request was the first on a connection that was idle.",
        "it was not";
    "retried_after_ms" ["ms"]
        "The request was sent again, because the target had closed its connection without any \
         answer: how long that connection had been idle.",
        "it was sent once";
    "dns_ms" ["ms"] "Name resolution.", "no connection to a name was opened";
    "connect_ms" ["ms"] "TCP handshake.", "no connection was opened";
    "tls_ms" ["ms"] "TLS handshake.", "no TLS connection was opened";
    "tls_resumed" ["boolean"]
        "Whether the TLS handshake resumed an earlier session.",
        "no TLS connection was opened";
    "upgrade_ms" ["ms"]
        "Handshake of a WebSocket, on the open connection.",
        "the request opened no WebSocket";
    "read_lag_ms" ["ms"]
        "User-space read minus the kernel's receive time stamp: the worst read of the request.",
        "no response, or no kernel time stamps";
    "send_stall_ms" ["ms"]
        "HTTP/2: time spent waiting for the target's flow-control windows or its limit of \
         concurrent streams.",
        "the request did not wait";
    "receive_stall" ["boolean"]
        "HTTP/2: `true` if the generator's own flow-control window may have held the target up.",
        "it did not";
    "tpot_ms" ["ms"]
        "Time per output token after the first piece: `(last_token - first_token) / tokens_after_first`.",
        "no token after the first piece, their number is not known, or they came in one piece";
    "generator_ms" ["ms"]
        "Of the response time, what the generator itself may have added: an upper bound.",
        "less than 20us or 0.5 % of the time to the first byte, or no response time";
    "generator_parts_ms" ["list of ms"]
        "What the generator may have added to the dispatch and to the sending, and how much earlier \
         than stamped may have arrived: the first byte, the first content event, the first that is \
         not reasoning, the last, and the end. Zeros at the end are left out.",
        "as `generator_ms`";
    "events" ["number"] "Content events received.", "";
    "gap_count" ["number"] "Gaps between content events.", "no gap";
    "gap_mean_ms" ["ms"] "Mean gap.", "no gap";
    "gap_max_ms" ["ms"] "Longest gap.", "no gap";
    "largest_burst" ["number"] "Most content events in one read.", "no gap";
    "late_together" ["number"]
        "Content events that may share their read with the one before them only because the \
         generator read late.",
        "none";
    "stream_shape" ["text"]
        "How the content events came: `intact`, `merged`, `buffered_whole`, `stalled`, \
         `read_late`, or `too_short` to tell.",
        "not a whole stream with content";
    "event_ms" ["list of ms"]
        "Arrival of each content event, since the dispatch.",
        "`event_times` does not select the conversation, or never sent";
    "status" ["number"] "HTTP status.", "no response head";
    "outcome" ["text"]
        "`completed`, `rejected`, `failed`, `timed_out`, `cancelled`, `in_flight` or `never_sent`.",
        "";
    "error" ["text"]
        "Error class, see [metrics](metrics.md#error-classes).",
        "the outcome is not `failed`";
    "error_detail" ["text"]
        "What the target says of its error, in its own words, or what was wrong with its answer or \
         the connection: the first 200 bytes, without credentials; control characters are escaped.",
        "the outcome is `completed`, or there is nothing to say";
    "rpc_code" ["number"]
        "Code of the JSON-RPC error.",
        "the answer is none";
    "tool_error" ["boolean"]
        "`true` if the call came through and the tool's result says `isError`, or the agent's task \
         ended as failed or rejected.",
        "it does not";
    "notifications" ["number"]
        "Messages of a tool server or an agent before its answer.",
        "none";
    "finish_reason" ["text"]
        "Why the model stopped, in the target's word; `other` for a word that no dialect has.",
        "the target did not say, or the response has no end";
    "policy_decision" ["text"]
        "The target's decision: `allow`, `block`, `redact`, `rate_limited` or `unexpected`.",
        "no response";
    "expected" ["text"]
        "The policy decision that the scenario expects.",
        "the scenario expects none";
    "prompt_tokens" ["tokens"] "Input tokens.", "not known";
    "prompt_tokens_source" ["text"]
        "`reported` by the target, or `estimated`.",
        "the number is not known";
    "completion_tokens" ["tokens"] "Output tokens.", "not known";
    "completion_tokens_source" ["text"]
        "`reported` by the target, or `estimated` from content events.",
        "the number is not known";
    "cached_tokens" ["tokens"]
        "Of the input tokens, those read from the target's prompt cache.",
        "none";
    "reasoning_tokens" ["tokens"] "Of the output tokens, those spent on reasoning.", "none";
    "usage_refused" ["boolean"]
        "`true` if the target reported token counts that cannot be true.",
        "it did not";
    "tokens_after_first" ["tokens"]
        "Output tokens after the first piece of the stream, without hidden or summarised reasoning.",
        "the usage does not separate the tokens that were sent";
    "cache" ["text"]
        "What the response says of a cache: `hit`, `miss` or `bypass`.",
        "it says nothing";
    "upstream_retries" ["number"]
        "How often the target asked its upstream again, as the response says.",
        "none, or it says nothing";
    "server_time_ms" ["ms"]
        "How long the target took, as the response says.",
        "it says nothing";
    "server_parts_ms" ["object of ms"]
        "The parts of its time that the target states in its headers, by name; `other` \
         are all names beyond the first 8 of the run.",
        "it names none, or they cannot be true";
    "response_headers" ["object of texts"]
        "The headers that the profile records (`response_headers.record`), by name.",
        "the profile records none, or the response has none of them";
    "bytes_out" ["bytes"] "Size of the request with its head.", "";
    "bytes_in" ["bytes"] "Size of the response with its head, as it came, after TLS.", "";
    "decoded_bytes" ["bytes"]
        "Size of the response's body once decoded, where it came compressed (`content-encoding`).",
        "the body came as it is, or was not read";
    "weight" ["number"]
        "Turns that the row stands for: the inverse of the probability with which the row was \
         kept.",
        "1";
}
