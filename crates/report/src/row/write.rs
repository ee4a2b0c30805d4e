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
    /// Name of the lane.
    pub lane: &'a str,
    /// Name of the stage.
    pub stage: &'a str,
    /// Wall-clock time of the run clock's epoch, in nanoseconds since 1970 UTC.
    pub epoch_unix_ns: u64,
}

/// Appends one line for a turn, with its newline. Allocates only when `out` has to grow.
pub fn write_row(sample: &Sample, context: &RowContext<'_>, out: &mut Vec<u8>) {
    let mut object = Object { out, first: true };
    names(&mut object, context);
    turn(&mut object, sample);
    object.number(
        "intended_unix_ns",
        context.epoch_unix_ns.saturating_add(sample.timeline.intended.as_nanos()),
    );
    times(&mut object, sample);
    gaps(&mut object, sample);
    outcome(&mut object, sample);
    usage(&mut object, sample);
    object.number("bytes_out", sample.bytes_out);
    object.number("bytes_in", sample.bytes_in);
    object.end();
}

fn names(object: &mut Object<'_>, context: &RowContext<'_>) {
    object.text("conversation", context.conversation);
    object.text("request_id", context.request_id);
    object.text("scenario", context.scenario);
    object.text("lane", context.lane);
    object.text("stage", context.stage);
}

fn turn(object: &mut Object<'_>, sample: &Sample) {
    object.number("turn", sample.turn.into());
    object.flag("stream", sample.stream);
    object.flag("warmup", sample.warmup);
    object.flag("reused", sample.reused);
}

fn times(object: &mut Object<'_>, sample: &Sample) {
    let line = &sample.timeline;
    let last_token = line.last_token.zip(line.dispatched).map(|(last, from)| last.since(from));
    object.millis("dispatch_lag_ms", line.dispatch_lag());
    object.millis("response_time_ms", line.response_time());
    object.millis("service_time_ms", line.service_time());
    object.millis("ttfb_ms", line.ttfb());
    object.millis("ttft_ms", line.ttft());
    object.millis("ttfot_ms", line.ttfot());
    object.millis("last_token_ms", last_token);
    object.millis("transfer_ms", line.transfer_time());
    object.millis("dns_ms", sample.connect.dns);
    object.millis("connect_ms", sample.connect.tcp);
    object.millis("tls_ms", sample.connect.tls);
    object.millis("read_lag_ms", sample.read_lag);
    object.millis("tpot_ms", sample.output_tokens().and_then(|tokens| line.tpot(tokens)));
}

fn gaps(object: &mut Object<'_>, sample: &Sample) {
    object.number("events", sample.events.into());
    let gaps = sample.gaps;
    if let Some(mean) = gaps.sum.as_u64().checked_div(gaps.count.into()) {
        object.number("gap_count", gaps.count.into());
        object.millis("gap_mean_ms", Some(Nanos::new(mean)));
        object.millis("gap_max_ms", Some(gaps.max));
        object.number("largest_burst", gaps.largest_burst.into());
    }
}

fn outcome(object: &mut Object<'_>, sample: &Sample) {
    if sample.status != 0 {
        object.number("status", sample.status.into());
    }
    object.word("outcome", sample.outcome.name());
    if let Outcome::Failed(class) = sample.outcome {
        object.word("error", class.name());
    }
    if let Some(verdict) = sample.verdict {
        object.word("verdict", verdict.name());
    }
}

fn usage(object: &mut Object<'_>, sample: &Sample) {
    let usage = &sample.usage;
    tokens(object, ["prompt_tokens", "prompt_tokens_source"], usage.prompt);
    tokens(object, ["completion_tokens", "completion_tokens_source"], usage.completion);
    if usage.cached > 0 {
        object.number("cached_tokens", usage.cached.into());
    }
    if usage.reasoning > 0 {
        object.number("reasoning_tokens", usage.reasoning.into());
    }
}

fn tokens(object: &mut Object<'_>, [count, source]: [&str; 2], tokens: TokenCount) {
    if let Some(known) = tokens.known() {
        object.number(count, known.into());
        object.word(source, tokens.source.name());
    }
}

/// A JSON object under construction.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl Object<'_> {
    /// `key` and `word` are our own words, which need no escapes.
    fn word(&mut self, key: &str, word: &str) {
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(word.as_bytes());
        self.out.push(b'"');
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        self.out.push(b'"');
        text.bytes().for_each(|byte| self.escaped(byte));
        self.out.push(b'"');
    }

    fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        self.digits(number);
    }

    fn flag(&mut self, key: &str, flag: bool) {
        self.key(key);
        self.out.extend_from_slice(if flag { b"true" } else { b"false" });
    }

    fn millis(&mut self, key: &str, length: Option<Nanos>) {
        let Some(length) = length else { return };
        self.key(key);
        self.digits(length.as_u64() / 1_000_000);
        self.fraction(length.as_u64() % 1_000_000);
    }

    /// The decimals of `nanos` millionths, without zeros at the end.
    fn fraction(&mut self, mut nanos: u64) {
        if nanos == 0 {
            return;
        }
        self.out.push(b'.');
        let mut place = 100_000;
        while nanos > 0 {
            self.digits(nanos / place);
            nanos %= place;
            place /= 10;
        }
    }

    fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }

    fn key(&mut self, key: &str) {
        self.out.push(if self.first { b'{' } else { b',' });
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn digits(&mut self, number: u64) {
        self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Bytes of UTF-8 beyond ASCII need no escape in JSON.
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
