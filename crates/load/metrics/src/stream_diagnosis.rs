//! The diagnosis of the streams of a group: whether they came as a model writes them, and if not,
//! what the target, a proxy or the generator did to them.
//!
//! Each whole stream has a [`StreamShape`], found from its own reads. Here the shapes are counted,
//! and the counts decide. `docs/adr/0042-streams-are-diagnosed.md` derives the bounds.

use plimsoll_measure::{ErrorClass, GapSummary, Nanos, Outcome, Sample, StreamShape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Streams are named by their bad ends if at least one in so many has one.
const BAD_ENDS_ONE_IN: u64 = 100;
/// Streams are called intact if at most one in so many is not.
const INTACT_BUT_ONE_IN: u64 = 10;
/// Streams are called read late if at least one in so many is.
const READ_LATE_ONE_IN: u64 = 4;

/// A stream stalled if its longest gap has at least this length, and this multiple of the mean of
/// the others. With an exponential distribution, one gap in 20,000 is as long.
const LEAST_PAUSE: Nanos = Nanos::from_millis(200);
const PAUSE_TIMES: u64 = 10;
/// Other gaps that there must be.
const OTHER_GAPS: u64 = 3;

/// Counts of the streams of a group; they add up over workers and stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamTally {
    shapes: [u64; StreamShape::ALL.len()],
    without_content: u64,
    with_finish_reason: u64,
    cut: u64,
    no_end: u64,
    no_finish_reason: u64,
    fewer_tokens: u64,
    /// Content events and reads of merged streams, without the last read, which flushes the rest.
    held_events: u64,
    held_reads: u64,
    /// The same streams without the first read: content events, and the time in which they were
    /// sent, in nanoseconds.
    later_events: u64,
    later_span: u64,
    /// Streams that stood still, and their longest gaps together, in nanoseconds.
    paused: u64,
    paused_for: u64,
    /// The longest of them.
    paused_longest: u64,
}

impl StreamTally {
    /// Counts a turn that asked for a stream and got the head of a success.
    #[inline]
    pub(crate) fn count(&mut self, sample: &Sample) {
        if !sample.stream || !matches!(sample.status, 101 | 200..300) {
            return;
        }
        match sample.outcome {
            Outcome::Completed => self.whole(sample),
            Outcome::Failed(class) if is_cut(class, sample.events) => self.cut += 1,
            Outcome::Failed(ErrorClass::NoFinishReason) => self.no_finish_reason += 1,
            Outcome::TimedOut => self.no_end += 1,
            _ => {}
        }
    }

    fn whole(&mut self, sample: &Sample) {
        self.with_finish_reason += u64::from(sample.finish_reason.is_some());
        self.fewer_tokens += u64::from(sample.hides_tokens());
        let Some(shape) = sample.shape else {
            self.without_content += 1;
            return;
        };
        self.shapes[shape as usize] += 1;
        if shape != StreamShape::ReadLate && stood_still(sample) {
            self.paused += 1;
            self.paused_for += sample.gaps.max.as_u64();
            self.paused_longest = self.paused_longest.max(sample.gaps.max.as_u64());
        }
        if shape == StreamShape::Merged {
            let line = &sample.timeline;
            let span = line.last_token.zip(line.first_token).map(|(last, first)| last.since(first));
            let GapSummary { count, first_burst, last_burst, .. } = sample.gaps;
            self.held_events += u64::from(sample.events - last_burst.min(sample.events));
            self.held_reads += u64::from(count);
            self.later_events += u64::from(sample.events - first_burst.min(sample.events));
            self.later_span += span.unwrap_or_default().as_u64();
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.shapes.iter_mut().zip(other.shapes) {
            *mine += theirs;
        }
        self.without_content += other.without_content;
        self.with_finish_reason += other.with_finish_reason;
        self.cut += other.cut;
        self.no_end += other.no_end;
        self.no_finish_reason += other.no_finish_reason;
        self.fewer_tokens += other.fewer_tokens;
        self.held_events += other.held_events;
        self.held_reads += other.held_reads;
        self.later_events += other.later_events;
        self.later_span += other.later_span;
        self.paused += other.paused;
        self.paused_for += other.paused_for;
        self.paused_longest = self.paused_longest.max(other.paused_longest);
    }

    /// The diagnosis; `None` if no stream began.
    pub(crate) fn diagnosis(&self) -> Option<StreamDiagnosis> {
        let whole = self.shapes.iter().sum::<u64>() + self.without_content;
        let begun = whole + self.cut + self.no_end + self.no_finish_reason;
        let mut diagnosis = StreamDiagnosis {
            word: StreamWord::Unknown,
            begun,
            judged: whole - self.without_content - self.count_of(StreamShape::TooShort),
            intact: self.count_of(StreamShape::Intact),
            merged: self.count_of(StreamShape::Merged),
            buffered_whole: self.count_of(StreamShape::BufferedWhole),
            stalled: self.count_of(StreamShape::Stalled),
            read_late: self.count_of(StreamShape::ReadLate),
            cut: self.cut,
            no_end: self.no_end,
            no_finish_reason: self.no_finish_reason,
            fewer_tokens: self.fewer_tokens,
            finish_reasons_given: self.with_finish_reason > 0,
            events_per_read: self.events_per_read(),
            over_ms: self.over_ms(),
            paused: self.paused,
            pause_ms: (self.paused > 0).then(|| self.paused_for as f64 / 1e6 / self.paused as f64),
            longest_pause_ms: (self.paused > 0).then(|| self.paused_longest as f64 / 1e6),
        };
        diagnosis.word = diagnosis.bad_end().unwrap_or_else(|| diagnosis.shape());
        (begun > 0).then_some(diagnosis)
    }

    const fn count_of(&self, shape: StreamShape) -> u64 {
        self.shapes[shape as usize]
    }

    fn events_per_read(&self) -> Option<f64> {
        (self.held_reads > 0).then(|| self.held_events as f64 / self.held_reads as f64)
    }

    /// The time from the first to the last event of one read when they were sent, at the mean pace
    /// of the events after the first read. Merging does not change that pace.
    fn over_ms(&self) -> Option<f64> {
        let pace = (self.later_events > 0)
            .then(|| self.later_span as f64 / 1e6 / self.later_events as f64)?;
        Some((self.events_per_read()? - 1.0).max(0.0) * pace)
    }
}

/// Whether the longest gap of a stream is out of all proportion to its others, and not made by a
/// late read of the generator.
fn stood_still(sample: &Sample) -> bool {
    let GapSummary { count, sum, max, .. } = sample.gaps;
    let others = u64::from(count).saturating_sub(1);
    let rest = sum.saturating_sub(max).as_u64();
    let late = sample.read_lag.unwrap_or_default();
    others >= OTHER_GAPS
        && max >= LEAST_PAUSE
        && max.as_u64().saturating_mul(others) >= rest.saturating_mul(PAUSE_TIMES)
        && late.as_u64().saturating_mul(2) < max.as_u64()
}

/// Whether a failure of this class means that a stream broke off.
const fn is_cut(class: ErrorClass, events: u32) -> bool {
    match class {
        ErrorClass::StreamTruncated | ErrorClass::BodyTruncated | ErrorClass::MalformedChunk => {
            true
        }
        ErrorClass::Reset | ErrorClass::ClosedEarly | ErrorClass::WebsocketClosed => events > 0,
        _ => false,
    }
}

/// One word for the streams of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamWord {
    /// They came as they were written, event by event.
    Intact,
    /// The target or a proxy sent several events in one piece, again and again.
    Merged,
    /// All events came in one piece, at the end.
    BufferedWhole,
    /// Events were held for 40 ms, once or again and again: the mark of Nagle's algorithm with
    /// delayed acknowledgements.
    Stalled,
    /// The generator read late: how the events came is not known.
    ReadLate,
    /// Some streams came one way and some another.
    Mixed,
    /// At least 1 % broke off before their end.
    Cut,
    /// At least 1 % had no end before the time limit of the request.
    NoEnd,
    /// At least 1 % ended without the reason why the model stopped, which the target gives in other
    /// streams.
    NoFinishReason,
    /// The usage of at least 1 % does not match their content.
    FewerTokens,
    /// Too few content events to tell.
    Unknown,
}

/// Delivery of the streams of a group: streamed answers that began, by diagnosis.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamDiagnosis {
    /// The diagnosis: a bad end if 1 % of the streams have one, else how the events came.
    pub word: StreamWord,
    /// Streams that began, with the head of a success.
    pub begun: u64,
    /// Complete streams with at least four content events. Each is counted once: `intact`,
    /// `merged`, `buffered_whole`, `stalled` or `read_late`.
    pub judged: u64,
    /// Nearly every event came by itself.
    pub intact: u64,
    /// At least an eighth of the events came in one piece with the event before, by the target or a
    /// proxy.
    pub merged: u64,
    /// All events came in one piece, at the end.
    pub buffered_whole: u64,
    /// Held for 40 ms, once or again and again: the mark of Nagle's algorithm.
    pub stalled: u64,
    /// At least an eighth of the events may have come together only because the generator read
    /// late.
    pub read_late: u64,
    /// Broke off before their end.
    pub cut: u64,
    /// Had no end before the time limit of the request.
    pub no_end: u64,
    /// Ended without the reason why the model stopped, which the target gives in other streams.
    /// They count as failed.
    pub no_finish_reason: u64,
    /// Their usage does not match their content: reasoning that is neither sent nor reported, or a
    /// cut. They count as completed, without a TPOT.
    pub fewer_tokens: u64,
    /// Whether any stream has a finish reason. If none has, a stream that was truncated before a
    /// gateway ended it looks like a complete one.
    pub finish_reasons_given: bool,
    /// Mean number of content events of a read in merged streams.
    pub events_per_read: Option<f64>,
    /// The time over which the events of one such read were sent, in milliseconds.
    pub over_ms: Option<f64>,
    /// Stood still once for at least 200 ms and ten times as long as their other gaps are.
    #[serde(default)]
    pub paused: u64,
    /// The mean of these longest gaps, in milliseconds.
    pub pause_ms: Option<f64>,
    /// The longest of them.
    pub longest_pause_ms: Option<f64>,
}

impl StreamDiagnosis {
    /// The most frequent bad end, if at least one stream in a hundred has it.
    fn bad_end(&self) -> Option<StreamWord> {
        let ends = [
            (self.fewer_tokens, StreamWord::FewerTokens),
            (self.no_finish_reason, StreamWord::NoFinishReason),
            (self.no_end, StreamWord::NoEnd),
            (self.cut, StreamWord::Cut),
        ];
        // The last of equals.
        let (count, word) = ends.into_iter().max_by_key(|(count, _)| *count)?;
        (count > 0 && count * BAD_ENDS_ONE_IN >= self.begun).then_some(word)
    }

    /// Whether streams stood still: at least 3, and one in a hundred. A single one in 20,000 does
    /// by chance.
    pub const fn stand_still(&self) -> bool {
        self.paused >= 3 && self.paused * 100 >= self.judged
    }

    /// How the events came, whatever the ends.
    ///
    /// Streams that were read late tell nothing of the target. They decide only where the others
    /// show no fault.
    pub fn shape(&self) -> StreamWord {
        let told = self.judged.saturating_sub(self.read_late);
        let changed = [
            (self.merged, StreamWord::Merged),
            (self.buffered_whole, StreamWord::BufferedWhole),
            (self.stalled, StreamWord::Stalled),
        ];
        let all_changed: u64 = changed.iter().map(|(count, _)| *count).sum();
        let most = changed.into_iter().max_by_key(|(count, _)| *count);
        if self.judged == 0 {
            StreamWord::Unknown
        } else if told * 2 < self.judged {
            StreamWord::ReadLate
        } else if self.stalled * 4 >= told && self.stalled > self.merged + self.buffered_whole {
            // A new connection, and an idle one, shows no stall: few streams need to.
            StreamWord::Stalled
        } else if let Some((_, word)) = most.filter(|(count, _)| *count * 2 > told) {
            word
        } else if all_changed * INTACT_BUT_ONE_IN > told.max(INTACT_BUT_ONE_IN) {
            StreamWord::Mixed
        } else if self.read_late * READ_LATE_ONE_IN >= self.judged {
            StreamWord::ReadLate
        } else {
            StreamWord::Intact
        }
    }
}

#[cfg(test)]
mod tests;
