//! Writes rows member by member, because this runs for every request on the generator's machine.

use std::sync::Arc;

use plimsoll_measure::{Moment, Nanos, Outcome, Sample, TokenCount};

/// A key as it is written, joined by the compiler: `,"turn":`. The opening brace replaces the comma
/// of the first key. Every key is also in [`super::COLUMNS`].
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}

/// The names and ids of a row, to which the sample refers by number.
#[derive(Clone, Copy, Debug)]
pub struct RowContext<'a> {
    /// The conversation's id.
    pub conversation: &'a str,
    /// The id that was sent with the request.
    pub request_id: &'a str,
    /// Scenario, target and stage.
    pub names: &'a RowNames,
    /// Wall-clock time of the run clock's epoch, in nanoseconds since 1970 UTC.
    pub epoch_unix_ns: u64,
    /// Number of turns that the row represents.
    pub weight: u32,
    /// Arrivals of its content events, if the row shall have them.
    pub events: Option<&'a [Moment]>,
    /// Texts of response headers by name, if the profile records any.
    pub headers: &'a [(Arc<str>, String)],
    /// Parts of the target's time by name, as its response says.
    pub server_parts: &'a [(Arc<str>, Nanos)],
    /// Error text of the target, or a description of the problem.
    pub error_detail: Option<&'a str>,
    /// Size of a body that came compressed, once decoded.
    pub decoded_bytes: Option<u64>,
    /// In a comparison: the number of its block.
    pub pair: Option<u64>,
}

/// The names in a row, already encoded, because many rows of a run have the same.
#[derive(Clone, Debug, Default)]
pub struct RowNames(Vec<u8>);

impl RowNames {
    /// The names of a scenario, its category if it has one, a target and a stage.
    pub fn new(scenario: &str, category: Option<&str>, target: &str, stage: &str) -> Self {
        let mut members = Vec::new();
        let mut object = JsonObject { start: 0, out: &mut members };
        object.text(key!("scenario"), scenario);
        if let Some(category) = category {
            object.text(key!("category"), category);
        }
        object.text(key!("target"), target);
        object.text(key!("stage"), stage);
        Self(members)
    }
}

/// `00` to `99`.
const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number as usize] = [b'0' + number / 10, b'0' + number % 10];
        number += 1;
    }
    pairs
};

/// Capacity for most rows, reserved once per row.
const ROW_CAPACITY: usize = 1_024;

/// Appends one line for a turn, with its newline. Allocates only when `out` has to grow.
pub fn write_row(sample: &Sample, context: &RowContext<'_>, out: &mut Vec<u8>) {
    out.reserve(ROW_CAPACITY);
    let mut object = JsonObject { start: out.len(), out };
    object.text(key!("conversation"), context.conversation);
    object.text(key!("request_id"), context.request_id);
    object.out.extend_from_slice(&context.names.0);
    if let Some(pair) = context.pair {
        object.number(key!("pair"), pair);
        object.number(key!("position"), sample.position.into());
    }
    turn(&mut object, sample);
    object.number(
        key!("intended_unix_ns"),
        context.epoch_unix_ns.saturating_add(sample.timeline.intended.as_nanos()),
    );
    times(&mut object, sample);
    gaps(&mut object, sample);
    if let (Some(events), Some(from)) = (context.events, sample.timeline.dispatched) {
        object.list(key!("event_ms"), events.iter().map(|at| at.since(from)));
    }
    outcome(&mut object, sample, context.error_detail);
    usage(&mut object, sample);
    server(&mut object, sample, context);
    object.number(key!("bytes_out"), sample.bytes_out);
    object.number(key!("bytes_in"), sample.bytes_in);
    if let Some(bytes) = context.decoded_bytes {
        object.number(key!("decoded_bytes"), bytes);
    }
    if context.weight != 1 {
        object.number(key!("weight"), context.weight.into());
    }
    object.end();
}

fn turn(object: &mut JsonObject<'_>, sample: &Sample) {
    object.number(key!("turn"), sample.turn.into());
    if let Some(operation) = sample.operation {
        object.word(key!("operation"), operation.name());
    }
    object.flag(key!("stream"), sample.stream);
    object.flag(key!("warmup"), sample.warmup);
    object.flag(key!("reused"), sample.reused);
}

fn times(object: &mut JsonObject<'_>, sample: &Sample) {
    let timeline = &sample.timeline;
    let last_token =
        timeline.last_token.zip(timeline.dispatched).map(|(last, from)| last.since(from));
    object.millis(key!("dispatch_lag_ms"), timeline.dispatch_lag());
    object.millis(key!("response_time_ms"), timeline.response_time());
    object.millis(key!("service_time_ms"), timeline.service_time());
    object.millis(key!("ttfb_ms"), timeline.ttfb());
    object.millis(key!("ttft_ms"), timeline.ttft());
    object.millis(key!("ttfot_ms"), timeline.ttfot());
    object.millis(key!("last_token_ms"), last_token);
    object.millis(key!("transfer_ms"), timeline.transfer_time());
    object.millis(key!("connection_wait_ms"), sample.connect.wait);
    if sample.connect.ahead {
        object.flag(key!("opened_ahead"), true);
    }
    object.millis(key!("retried_after_ms"), sample.retried_after);
    object.millis(key!("dns_ms"), sample.connect.dns);
    object.millis(key!("connect_ms"), sample.connect.tcp);
    object.millis(key!("tls_ms"), sample.connect.tls);
    if sample.connect.tls.is_some() {
        object.flag(key!("tls_resumed"), sample.connect.resumed);
    }
    object.millis(key!("upgrade_ms"), sample.connect.upgrade);
    object.millis(key!("read_lag_ms"), sample.read_lag);
    object.millis(key!("send_stall_ms"), sample.flow.send_stall);
    if sample.flow.receive_stall {
        object.flag(key!("receive_stall"), true);
    }
    object.millis(key!("tpot_ms"), sample.tpot());
    if sample.generator_matters() {
        generator(object, sample);
    }
}

/// Possible overhead of the generator, without trailing zeros.
#[cold]
fn generator(object: &mut JsonObject<'_>, sample: &Sample) {
    let without = sample.timeline_without_generator().response_time();
    let added = sample.timeline.response_time().zip(without);
    object.millis(key!("generator_ms"), added.map(|(all, without)| all.saturating_sub(without)));
    let parts = sample.generator.parts();
    let used = parts.iter().rposition(|part| *part > Nanos::ZERO).map_or(0, |last| last + 1);
    object.list(key!("generator_parts_ms"), parts[..used].iter().copied());
}

fn gaps(object: &mut JsonObject<'_>, sample: &Sample) {
    object.number(key!("events"), sample.events.into());
    let gaps = sample.gaps;
    if let Some(mean) = gaps.sum.as_u64().checked_div(gaps.count.into()) {
        object.number(key!("gap_count"), gaps.count.into());
        object.millis(key!("gap_mean_ms"), Some(Nanos::new(mean)));
        object.millis(key!("gap_max_ms"), Some(gaps.max));
        object.number(key!("largest_burst"), gaps.largest_burst.into());
    }
    if gaps.late_together > 0 {
        object.number(key!("late_together"), gaps.late_together.into());
    }
    if let Some(shape) = sample.shape {
        object.word(key!("stream_shape"), shape.name());
    }
}

fn outcome(object: &mut JsonObject<'_>, sample: &Sample, error_detail: Option<&str>) {
    if sample.status != 0 {
        object.number(key!("status"), sample.status.into());
    }
    object.word(key!("outcome"), sample.outcome.name());
    if let Outcome::Failed(class) = sample.outcome {
        object.word(key!("error"), class.name());
    }
    if let Some(detail) = error_detail {
        object.text(key!("error_detail"), detail);
    }
    rpc(object, sample);
    if let Some(reason) = sample.finish_reason {
        object.word(key!("finish_reason"), reason.name());
    }
    if let Some(policy_decision) = sample.policy_decision {
        object.word(key!("policy_decision"), policy_decision.name());
    }
    if let Some(expected) = sample.expected {
        object.word(key!("expected"), expected.name());
    }
}

fn rpc(object: &mut JsonObject<'_>, sample: &Sample) {
    if let Some(code) = sample.rpc.code {
        object.signed(key!("rpc_code"), code);
    }
    if sample.rpc.tool_error {
        object.flag(key!("tool_error"), true);
    }
    if sample.rpc.notifications > 0 {
        object.number(key!("notifications"), sample.rpc.notifications.into());
    }
}

fn usage(object: &mut JsonObject<'_>, sample: &Sample) {
    let usage = &sample.usage;
    tokens(object, [key!("prompt_tokens"), key!("prompt_tokens_source")], usage.prompt);
    tokens(object, [key!("completion_tokens"), key!("completion_tokens_source")], usage.completion);
    if usage.cached > 0 {
        object.number(key!("cached_tokens"), usage.cached.into());
    }
    if sample.repeated_tokens > 0 {
        object.number(key!("repeated_tokens"), sample.repeated_tokens.into());
    }
    if usage.reasoning > 0 {
        object.number(key!("reasoning_tokens"), usage.reasoning.into());
    }
    if sample.usage_refused {
        object.flag(key!("usage_refused"), true);
    }
    if let Some(tokens) = usage.after_first {
        object.number(key!("tokens_after_first"), tokens.into());
    }
}

fn tokens(object: &mut JsonObject<'_>, [count, source]: [&str; 2], tokens: TokenCount) {
    if let Some(known) = tokens.known() {
        object.number(count, known.into());
        object.word(source, tokens.source.name());
    }
}

fn server(object: &mut JsonObject<'_>, sample: &Sample, context: &RowContext<'_>) {
    if let Some(cache) = sample.server.cache {
        object.word(key!("cache"), cache.name());
    }
    if sample.server.retries > 0 {
        object.number(key!("upstream_retries"), sample.server.retries.into());
    }
    object.millis(key!("server_time_ms"), sample.server.time);
    object.members(key!("server_parts_ms"), context.server_parts, |members, time| {
        members.decimal(time.as_u64());
    });
    object.members(key!("response_headers"), context.headers, |members, text| members.quoted(text));
}

/// A JSON object under construction, with keys by [`key!`].
struct JsonObject<'a> {
    /// Its first position in `out`.
    start: usize,
    out: &'a mut Vec<u8>,
}

impl JsonObject<'_> {
    /// Adds a word of ours, which needs no escapes.
    #[inline]
    fn word(&mut self, key: &str, word: &str) {
        self.put(key);
        self.out.push(b'"');
        self.put(word);
        self.out.push(b'"');
    }

    fn text(&mut self, key: &str, text: &str) {
        self.put(key);
        self.quoted(text);
    }

    fn quoted(&mut self, text: &str) {
        // A vector takes every text.
        serde_json::to_writer(&mut *self.out, text).unwrap_or_default();
    }

    #[inline]
    fn number(&mut self, key: &str, number: u64) {
        self.put(key);
        self.digits(number);
    }

    fn signed(&mut self, key: &str, number: i32) {
        self.put(key);
        self.put(itoa::Buffer::new().format(number));
    }

    #[expect(clippy::cast_possible_truncation, reason = "both are below 100")]
    fn digits(&mut self, number: u64) {
        match number {
            0..10 => self.out.push(b'0' + number as u8),
            10..100 => self.out.extend_from_slice(&DIGIT_PAIRS[number as usize]),
            _ => self.put(itoa::Buffer::new().format(number)),
        }
    }

    #[inline]
    fn flag(&mut self, key: &str, flag: bool) {
        self.put(key);
        self.put(if flag { "true" } else { "false" });
    }

    #[inline]
    fn millis(&mut self, key: &str, length: Option<Nanos>) {
        let Some(length) = length else { return };
        self.put(key);
        self.decimal(length.as_u64());
    }

    fn list(&mut self, key: &str, lengths: impl Iterator<Item = Nanos>) {
        self.put(key);
        self.out.push(b'[');
        for (index, length) in lengths.enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.decimal(length.as_u64());
        }
        self.out.push(b']');
    }

    /// Adds an object of values by name, if there are any.
    fn members<T>(&mut self, key: &str, all: &[(Arc<str>, T)], add: fn(&mut JsonObject<'_>, &T)) {
        if all.is_empty() {
            return;
        }
        self.put(key);
        let mut members = JsonObject { start: self.out.len(), out: self.out };
        for (name, value) in all {
            members.out.push(b',');
            members.quoted(name);
            members.out.push(b':');
            add(&mut members, value);
        }
        members.out[members.start] = b'{';
        members.out.push(b'}');
    }

    /// Adds millionths as a decimal number without trailing zeros.
    fn decimal(&mut self, millionths: u64) {
        self.digits(millionths / 1_000_000);
        let rest = millionths % 1_000_000;
        if rest == 0 {
            return;
        }
        let mut decimals = *b".000000\0";
        for (pair, of) in decimals[1..7].chunks_exact_mut(2).zip([rest / 10_000, rest / 100, rest])
        {
            pair.copy_from_slice(&DIGIT_PAIRS[(of % 100) as usize]);
        }
        self.out.extend_from_slice(&decimals);
        let mut end = self.out.len() - 1;
        while self.out[end - 1] == b'0' {
            end -= 1;
        }
        self.out.truncate(end);
    }

    fn end(self) {
        self.out[self.start] = b'{';
        self.out.extend_from_slice(b"}\n");
    }

    #[inline]
    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }
}
