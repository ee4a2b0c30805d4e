//! Writing rows: by hand, because this runs once per request beside the load.

use plimsoll_measure::{Nanos, Outcome, Sample, TokenCount};

/// What a sample refers to by number, in words.
#[derive(Clone, Copy, Debug)]
pub struct RowContext<'a> {
    /// The conversation's id.
    pub conversation: &'a str,
    /// The id that was sent with the request.
    pub request_id: &'a str,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Label by which scenarios are grouped, where it has one.
    pub category: Option<&'a str>,
    /// Name of the lane.
    pub lane: &'a str,
    /// Name of the stage.
    pub stage: &'a str,
    /// Wall-clock time of the run clock's epoch, in nanoseconds since 1970 UTC.
    pub epoch_unix_ns: u64,
}

/// A member's name as it stands in the file, put together by the compiler: `,"turn":`. The comma of the
/// first member makes way for the brace.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}

/// Room for most rows, so that it is asked for once.
const ROW: usize = 1_024;

/// Appends one line for a turn, with its newline. Allocates only when `out` has to grow.
pub fn write_row(sample: &Sample, context: &RowContext<'_>, out: &mut Vec<u8>) {
    out.reserve(ROW);
    let mut object = Object { start: out.len(), out };
    names(&mut object, context);
    turn(&mut object, sample);
    object.number(
        key!("intended_unix_ns"),
        context.epoch_unix_ns.saturating_add(sample.timeline.intended.as_nanos()),
    );
    times(&mut object, sample);
    gaps(&mut object, sample);
    outcome(&mut object, sample);
    usage(&mut object, sample);
    object.number(key!("bytes_out"), sample.bytes_out);
    object.number(key!("bytes_in"), sample.bytes_in);
    object.end();
}

fn names(object: &mut Object<'_>, context: &RowContext<'_>) {
    object.text(key!("conversation"), context.conversation);
    object.text(key!("request_id"), context.request_id);
    object.text(key!("scenario"), context.scenario);
    if let Some(category) = context.category {
        object.text(key!("category"), category);
    }
    object.text(key!("lane"), context.lane);
    object.text(key!("stage"), context.stage);
}

fn turn(object: &mut Object<'_>, sample: &Sample) {
    object.number(key!("turn"), sample.turn.into());
    object.flag(key!("stream"), sample.stream);
    object.flag(key!("warmup"), sample.warmup);
    object.flag(key!("reused"), sample.reused);
}

fn times(object: &mut Object<'_>, sample: &Sample) {
    let line = &sample.timeline;
    let last_token = line.last_token.zip(line.dispatched).map(|(last, from)| last.since(from));
    object.millis(key!("dispatch_lag_ms"), line.dispatch_lag());
    object.millis(key!("response_time_ms"), line.response_time());
    object.millis(key!("service_time_ms"), line.service_time());
    object.millis(key!("ttfb_ms"), line.ttfb());
    object.millis(key!("ttft_ms"), line.ttft());
    object.millis(key!("ttfot_ms"), line.ttfot());
    object.millis(key!("last_token_ms"), last_token);
    object.millis(key!("transfer_ms"), line.transfer_time());
    object.millis(key!("dns_ms"), sample.connect.dns);
    object.millis(key!("connect_ms"), sample.connect.tcp);
    object.millis(key!("tls_ms"), sample.connect.tls);
    if sample.connect.tls.is_some() {
        object.flag(key!("tls_resumed"), sample.connect.resumed);
    }
    object.millis(key!("read_lag_ms"), sample.read_lag);
    object.millis(key!("send_stall_ms"), sample.flow.send_stall);
    if sample.flow.receive_stall {
        object.flag(key!("receive_stall"), true);
    }
    object.millis(key!("tpot_ms"), sample.output_tokens().and_then(|tokens| line.tpot(tokens)));
}

fn gaps(object: &mut Object<'_>, sample: &Sample) {
    object.number(key!("events"), sample.events.into());
    let gaps = sample.gaps;
    if let Some(mean) = gaps.sum.as_u64().checked_div(gaps.count.into()) {
        object.number(key!("gap_count"), gaps.count.into());
        object.millis(key!("gap_mean_ms"), Some(Nanos::new(mean)));
        object.millis(key!("gap_max_ms"), Some(gaps.max));
        object.number(key!("largest_burst"), gaps.largest_burst.into());
    }
}

fn outcome(object: &mut Object<'_>, sample: &Sample) {
    if sample.status != 0 {
        object.number(key!("status"), sample.status.into());
    }
    object.word(key!("outcome"), sample.outcome.name());
    if let Outcome::Failed(class) = sample.outcome {
        object.word(key!("error"), class.name());
    }
    if let Some(verdict) = sample.verdict {
        object.word(key!("verdict"), verdict.name());
    }
    if let Some(expected) = sample.expected {
        object.word(key!("expected"), expected.name());
    }
}

fn usage(object: &mut Object<'_>, sample: &Sample) {
    let usage = &sample.usage;
    tokens(object, [key!("prompt_tokens"), key!("prompt_tokens_source")], usage.prompt);
    tokens(object, [key!("completion_tokens"), key!("completion_tokens_source")], usage.completion);
    if usage.cached > 0 {
        object.number(key!("cached_tokens"), usage.cached.into());
    }
    if usage.reasoning > 0 {
        object.number(key!("reasoning_tokens"), usage.reasoning.into());
    }
}

fn tokens(object: &mut Object<'_>, [count, source]: [&str; 2], tokens: TokenCount) {
    if let Some(known) = tokens.known() {
        object.number(count, known.into());
        object.word(source, tokens.source.name());
    }
}

/// A JSON object under construction. Keys are those of [`key!`].
struct Object<'a> {
    /// Where it begins in `out`.
    start: usize,
    out: &'a mut Vec<u8>,
}

impl Object<'_> {
    /// `word` is one of our own, which needs no escapes.
    fn word(&mut self, key: &str, word: &str) {
        self.put(key);
        self.out.push(b'"');
        self.put(word);
        self.out.push(b'"');
    }

    fn text(&mut self, key: &str, text: &str) {
        if text.bytes().all(is_plain) {
            return self.word(key, text);
        }
        self.put(key);
        self.out.push(b'"');
        text.bytes().for_each(|byte| self.escaped(byte));
        self.out.push(b'"');
    }

    fn number(&mut self, key: &str, number: u64) {
        self.put(key);
        self.put(itoa::Buffer::new().format(number));
    }

    fn flag(&mut self, key: &str, flag: bool) {
        self.put(key);
        self.put(if flag { "true" } else { "false" });
    }

    fn millis(&mut self, key: &str, length: Option<Nanos>) {
        let Some(length) = length else { return };
        self.number(key, length.as_u64() / 1_000_000);
        self.fraction(length.as_u64() % 1_000_000);
    }

    /// The decimals of `nanos` millionths, without zeros at the end.
    fn fraction(&mut self, nanos: u64) {
        if nanos == 0 {
            return;
        }
        // The 1 in front keeps the zeros after it, and makes way for the point.
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(1_000_000 + nanos).trim_end_matches('0');
        self.out.push(b'.');
        self.put(&digits[1..]);
    }

    fn end(self) {
        self.out[self.start] = b'{';
        self.out.extend_from_slice(b"}\n");
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn escaped(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        match byte {
            b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                self.out.extend_from_slice(b"\\u00");
                self.out.push(HEX[usize::from(byte >> 4)]);
                self.out.push(HEX[usize::from(byte & 15)]);
            }
            _ => self.out.push(byte),
        }
    }
}

/// Does a byte stand for itself in JSON? Those of UTF-8 beyond ASCII do.
const fn is_plain(byte: u8) -> bool {
    !matches!(byte, b'"' | b'\\' | 0..0x20)
}
