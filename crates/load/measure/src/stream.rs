//! How the content events of a stream arrived, and why it ended.
//!
//! `docs/adr/0042-streams-are-diagnosed.md` derives the bounds.

use serde::{Deserialize, Serialize};

use crate::named_enum;
use crate::time::Nanos;

/// Minimum number of content events of a judged stream: three gaps show no pattern.
const MIN_EVENTS: u32 = 4;
/// Minimum time since the previous read for counting merged events. Faster reads merge events in
/// the normal way of TCP, which a reader of the text does not notice.
pub const TOGETHER_AFTER: Nanos = Nanos::from_millis(2);
/// Duration of a delayed acknowledgement: 40 ms (`TCP_DELACK_MIN` of Linux), rounded up to the
/// kernel's tick, which is 4 ms where it is longest today.
const DELAYED_ACK: std::ops::RangeInclusive<Nanos> =
    Nanos::from_millis(36)..=Nanos::from_millis(46);

named_enum! {
    /// How the content events of a complete stream arrived.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum StreamShape {
        /// Fewer than four content events.
        TooShort => "too_short",
        /// Nearly every event arrived separately.
        Intact => "intact",
        /// The target, or a proxy, repeatedly sent several events in one piece.
        Merged => "merged",
        /// All events arrived in one piece, at the end.
        BufferedWhole => "buffered_whole",
        /// Events were delayed by 40 ms, once or repeatedly: the sign of Nagle's algorithm combined
        /// with delayed acknowledgements.
        Stalled => "stalled",
        /// The generator read late, so the shape is unknown.
        ReadLate => "read_late",
    }
}

named_enum! {
    /// Finish reasons of the dialects.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum FinishReason {
        /// End of the answer (`OpenAI`).
        Stop => "stop",
        /// Limit on output tokens (`OpenAI`).
        Length => "length",
        /// Tool calls (`OpenAI`).
        ToolCalls => "tool_calls",
        /// Function call (`OpenAI`, before tools).
        FunctionCall => "function_call",
        /// Content filter (`OpenAI`).
        ContentFilter => "content_filter",
        /// End of the answer (Responses API).
        Completed => "completed",
        /// Incomplete answer (Responses API, without a reason).
        Incomplete => "incomplete",
        /// Limit on output tokens (Responses API).
        MaxOutputTokens => "max_output_tokens",
        /// End of the answer (Anthropic).
        EndTurn => "end_turn",
        /// Limit on output tokens (Anthropic).
        MaxTokens => "max_tokens",
        /// Stop sequence (Anthropic).
        StopSequence => "stop_sequence",
        /// Tool call (Anthropic).
        ToolUse => "tool_use",
        /// Pause of a long turn (Anthropic).
        PauseTurn => "pause_turn",
        /// Refusal of the model (Anthropic).
        Refusal => "refusal",
        /// Any other word.
        Other => "other",
    }
}

impl FinishReason {
    /// Parses a reason, case-insensitively because of Google's servers; [`Self::Other`] for an
    /// unknown word.
    pub fn from_name(word: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|reason: &Self| reason.name().eq_ignore_ascii_case(word))
            .unwrap_or(Self::Other)
    }
}

/// Statistics of the reads of one stream at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamReads {
    /// Content events.
    pub events: u32,
    /// Reads with content.
    pub reads: u32,
    /// Time from the first content event to the last one.
    pub span: Nanos,
    /// Time from the dispatch to the end of the response.
    pub service_time: Nanos,
    /// How much earlier than stamped the first content event may have arrived.
    pub first_earlier_by: Nanos,
    /// Content events that shared a read with the previous event, if that read came at least
    /// [`TOGETHER_AFTER`] after the previous read.
    pub together: u32,
    /// Number of these events in timely reads that came [one delayed
    /// acknowledgement](is_delayed_ack) after the previous read.
    pub together_delayed: u32,
    /// Largest number of content events in a timely read that came one delayed acknowledgement
    /// after the previous read.
    pub delayed_burst: u32,
    /// Content events of the first read with any.
    pub first_burst: u32,
    /// Reads that completed an event one delayed acknowledgement after its beginning.
    pub split_delayed: u32,
    /// Content events that may share their read only because the generator was late.
    pub late_together: u32,
}

impl StreamReads {
    /// The shape of the stream.
    pub fn shape(&self) -> StreamShape {
        let pairs = self.events.saturating_sub(1);
        if self.events < MIN_EVENTS {
            StreamShape::TooShort
        } else if self.is_at_the_end() {
            // A stream that arrived event by event needs a far larger part of its time than this.
            let unsure = is_more_than_one_in(4, self.first_earlier_by, self.service_time);
            if unsure { StreamShape::ReadLate } else { StreamShape::BufferedWhole }
        } else if is_an_eighth(self.split_delayed, self.reads) || self.has_stall() {
            StreamShape::Stalled
        } else if is_an_eighth(self.together.saturating_sub(self.late_together), pairs) {
            let stalls = self.together_delayed >= self.together.div_ceil(2);
            if stalls { StreamShape::Stalled } else { StreamShape::Merged }
        } else if is_an_eighth(self.late_together, pairs) {
            StreamShape::ReadLate
        } else {
            StreamShape::Intact
        }
    }

    /// Mean time between two events, as they were sent. Merging does not change it. The events of
    /// the first read began to arrive before the read.
    pub fn pace(&self) -> Nanos {
        let events = u64::from(self.events.saturating_sub(self.first_burst));
        Nanos::new(self.span.as_u64().checked_div(events).unwrap_or(0))
    }

    /// Whether a read returned all events that the model wrote during one delayed acknowledgement,
    /// in a stream whose pace is at most half of that. Linux delays one acknowledgement per
    /// response and then none for a while, so most streams show only one such read.
    fn has_stall(&self) -> bool {
        let pace = self.pace().as_u64();
        let (shortest, longest_pace) = (30_000_000, 20_000_000);
        self.delayed_burst >= 2
            && pace <= longest_pace
            && u64::from(self.delayed_burst).saturating_mul(pace) >= shortest
    }

    /// Whether all content arrived in a few pieces within the last twentieth of the response, at
    /// more than one event per millisecond.
    fn is_at_the_end(&self) -> bool {
        let pairs = u64::from(self.events.saturating_sub(1));
        self.reads <= (self.events / 4).max(1)
            && self.span < Nanos::from_millis(pairs)
            && !is_more_than_one_in(20, self.span, self.service_time)
    }
}

/// Whether a wait is as long as a delayed acknowledgement.
pub fn is_delayed_ack(wait: Nanos) -> bool {
    DELAYED_ACK.contains(&wait)
}

fn is_more_than_one_in(n: u64, part: Nanos, whole: Nanos) -> bool {
    part.as_u64().saturating_mul(n) > whole.as_u64()
}

/// Whether a part is at least an eighth of the whole, and more than a single coincidence.
const fn is_an_eighth(part: u32, whole: u32) -> bool {
    part >= 2 && part as u64 * 8 >= whole as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// A stream of 100 events, 10 ms apart, after 200 ms, each in its own read.
    fn intact() -> StreamReads {
        StreamReads {
            events: 100,
            reads: 100,
            span: ms(990),
            service_time: ms(1_200),
            ..StreamReads::default()
        }
    }

    #[test]
    fn a_few_coincidences_do_not_change_the_shape() {
        assert_eq!(intact().shape(), StreamShape::Intact);
        let few = StreamReads { reads: 90, together: 10, ..intact() };
        assert_eq!(few.shape(), StreamShape::Intact);
        // In a short stream, one event is more than an eighth of all.
        let short = StreamReads { events: 5, reads: 4, together: 1, span: ms(40), ..intact() };
        assert_eq!(short.shape(), StreamShape::Intact);
        let tiny = StreamReads { events: 3, reads: 1, together: 2, span: ms(0), ..intact() };
        assert_eq!(tiny.shape(), StreamShape::TooShort);
    }

    #[test]
    fn events_that_the_target_sent_in_one_piece_are_merged() {
        // 18 events per read.
        let merged = StreamReads { reads: 6, together: 94, ..intact() };
        assert_eq!(merged.shape(), StreamShape::Merged);
        // Two events per read.
        let pairs = StreamReads { reads: 50, together: 50, ..intact() };
        assert_eq!(pairs.shape(), StreamShape::Merged);
        // Our late reads explain only a part.
        let partly = StreamReads { late_together: 30, ..merged };
        assert_eq!(partly.shape(), StreamShape::Merged);
    }

    #[test]
    fn events_that_a_late_read_explains_are_not_the_targets() {
        let late = StreamReads { reads: 70, together: 30, late_together: 30, ..intact() };
        assert_eq!(late.shape(), StreamShape::ReadLate);
        let once = StreamReads { reads: 95, together: 5, late_together: 5, ..intact() };
        assert_eq!(once.shape(), StreamShape::Intact);
    }

    #[test]
    fn all_content_at_the_end_is_buffered_whole() {
        let whole = StreamReads { reads: 1, together: 99, span: ms(0), ..intact() };
        assert_eq!(whole.shape(), StreamShape::BufferedWhole);
        // A large response needs several reads.
        let large = StreamReads { reads: 20, together: 5, span: ms(40), ..intact() };
        assert_eq!(large.shape(), StreamShape::BufferedWhole);
        // In the middle of the response: merged, but not at the end.
        let early = StreamReads { reads: 2, together: 98, span: ms(70), ..intact() };
        assert_eq!(early.shape(), StreamShape::Merged);
        // Two batches at the end of a long wait came 170 ms apart.
        let batches = StreamReads {
            events: 36,
            reads: 2,
            together: 34,
            span: ms(170),
            service_time: ms(5_000),
            ..intact()
        };
        assert_eq!(batches.shape(), StreamShape::Merged);
    }

    #[test]
    fn a_whole_stream_that_was_read_late_is_not_blamed_on_the_target() {
        let whole = StreamReads { reads: 1, together: 99, span: ms(0), ..intact() };
        let late = StreamReads { first_earlier_by: ms(400), late_together: 99, ..whole };
        assert_eq!(late.shape(), StreamShape::ReadLate);
        // A lag of 200 ms cannot hide a stream of 1.2 s.
        let slightly = StreamReads { first_earlier_by: ms(200), late_together: 99, ..whole };
        assert_eq!(slightly.shape(), StreamShape::BufferedWhole);
    }

    #[test]
    fn events_held_for_a_delayed_acknowledgement_are_stalled() {
        let stalled = StreamReads { reads: 25, together: 75, together_delayed: 72, ..intact() };
        assert_eq!(stalled.shape(), StreamShape::Stalled);
        let split = StreamReads { split_delayed: 90, ..intact() };
        assert_eq!(split.shape(), StreamShape::Stalled);
        // One stall in a stream: four events of 10 ms each waited for 40 ms.
        let once = StreamReads { together: 3, delayed_burst: 4, reads: 97, ..intact() };
        assert_eq!(once.shape(), StreamShape::Stalled);
        // Two events after 40 ms instead of four: the target's own pause.
        let pause = StreamReads { together: 1, delayed_burst: 2, reads: 99, ..intact() };
        assert_eq!(pause.shape(), StreamShape::Intact);
        // A target with a natural pace of 40 ms sends its events one by one.
        let pace = StreamReads {
            delayed_burst: 2,
            together: 1,
            span: ms(3_960),
            service_time: ms(4_200),
            ..intact()
        };
        assert_eq!(pace.shape(), StreamShape::Intact);
        for (wait, delayed) in [(35, false), (40, true), (44, true), (50, false)] {
            assert_eq!(is_delayed_ack(ms(wait)), delayed, "{wait} ms");
        }
    }

    #[test]
    fn a_finish_reason_keeps_the_targets_word_if_a_dialect_has_it() {
        for reason in FinishReason::ALL {
            assert_eq!(FinishReason::from_name(reason.name()), reason);
        }
        assert_eq!(FinishReason::from_name("eos"), FinishReason::Other);
    }
}
