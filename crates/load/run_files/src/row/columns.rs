//! Every key of a row, in the order in which it is written, and how it is read. The reference page
//! of `results.jsonl` is made from `columns.tsv`, and a test compares it with real rows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_measure::{CacheState, Nanos, PolicyDecision, TokenSource};
use serde::Deserialize;

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

/// Every key of a row.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let lines = include_str!("columns.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(Column::read).collect()
});

impl Column {
    fn read(line: &'static str) -> Self {
        let mut cells = line.split('\t');
        let [key, unit, meaning, absent] =
            std::array::from_fn(|_| cells.next().unwrap_or_default());
        Self { key, unit, meaning, absent }
    }
}

/// One line of `results.jsonl`, as [`crate::write_row`] wrote it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, as the file has them")]
#[expect(missing_docs, reason = "`COLUMNS` defines every key")]
pub struct ParsedRow {
    pub conversation: String,
    pub request_id: String,
    pub scenario: String,
    pub category: Option<String>,
    pub target: String,
    pub stage: String,
    pub pair: Option<u64>,
    #[serde(default)]
    pub position: u8,
    pub turn: u16,
    pub operation: Option<String>,
    pub stream: bool,
    pub warmup: bool,
    pub reused: bool,
    pub intended_unix_ns: u64,
    pub dispatch_lag_ms: Option<f64>,
    pub response_time_ms: Option<f64>,
    pub service_time_ms: Option<f64>,
    pub ttfb_ms: Option<f64>,
    pub ttft_ms: Option<f64>,
    pub ttfot_ms: Option<f64>,
    pub last_token_ms: Option<f64>,
    pub transfer_ms: Option<f64>,
    pub connection_wait_ms: Option<f64>,
    #[serde(default)]
    pub opened_ahead: bool,
    pub retried_after_ms: Option<f64>,
    pub dns_ms: Option<f64>,
    pub connect_ms: Option<f64>,
    pub tls_ms: Option<f64>,
    #[serde(default)]
    pub tls_resumed: bool,
    pub upgrade_ms: Option<f64>,
    pub read_lag_ms: Option<f64>,
    pub send_stall_ms: Option<f64>,
    #[serde(default)]
    pub receive_stall: bool,
    pub tpot_ms: Option<f64>,
    pub generator_ms: Option<f64>,
    #[serde(default)]
    pub generator_parts_ms: Vec<f64>,
    pub events: u32,
    #[serde(default)]
    pub gap_count: u32,
    pub gap_mean_ms: Option<f64>,
    pub gap_max_ms: Option<f64>,
    #[serde(default)]
    pub largest_burst: u32,
    #[serde(default)]
    pub late_together: u32,
    pub stream_shape: Option<String>,
    pub event_ms: Option<Vec<f64>>,
    #[serde(default)]
    pub status: u16,
    pub outcome: String,
    pub error: Option<String>,
    pub error_detail: Option<String>,
    pub rpc_code: Option<i32>,
    #[serde(default)]
    pub tool_error: bool,
    #[serde(default)]
    pub notifications: u32,
    pub finish_reason: Option<String>,
    pub policy_decision: Option<PolicyDecision>,
    pub expected: Option<PolicyDecision>,
    #[serde(default)]
    pub prompt_tokens: u32,
    #[serde(default)]
    pub prompt_tokens_source: TokenSource,
    #[serde(default)]
    pub completion_tokens: u32,
    #[serde(default)]
    pub completion_tokens_source: TokenSource,
    #[serde(default)]
    pub cached_tokens: u32,
    #[serde(default)]
    pub repeated_tokens: u32,
    #[serde(default)]
    pub reasoning_tokens: u32,
    #[serde(default)]
    pub usage_refused: bool,
    pub tokens_after_first: Option<u32>,
    pub cache: Option<CacheState>,
    #[serde(default)]
    pub upstream_retries: u32,
    pub server_time_ms: Option<f64>,
    #[serde(default)]
    pub server_parts_ms: BTreeMap<String, f64>,
    #[serde(default)]
    pub response_headers: BTreeMap<String, String>,
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub decoded_bytes: Option<u64>,
    #[serde(default = "one")]
    pub weight: u32,
}

const fn one() -> u32 {
    1
}

/// A time of a row, which is in milliseconds. Exact below ten days: a double keeps 15 decimal
/// digits.
pub fn row_time(millis: Option<f64>) -> Option<Nanos> {
    millis.map(|millis| Nanos::from_secs_f64(millis / 1e3))
}
