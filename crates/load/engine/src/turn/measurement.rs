//! The measurement of a turn: its sample, the gaps between its content events, and how they came.

use plimsoll_measure::stream::{TOGETHER_AFTER, is_delayed_ack};
use plimsoll_measure::{LATE_READ, LateRead, Moment, Nanos, Sample, StreamReads};
use plimsoll_protocol::{Decoder, DeltaKind};
use plimsoll_transport::RxTime;

/// The measurement of a turn so far.
#[derive(Debug)]
pub(super) struct TurnMeasurement {
    pub(super) sample: Sample,
    pub(super) gaps: Vec<Nanos>,
    /// Reads whose content events may have arrived before their time stamp. Nearly always empty,
    /// and then without heap.
    pub(super) late_reads: Vec<LateRead>,
    /// When each content event arrived, where the turn's row shall have it.
    pub(super) events: Option<Vec<Moment>>,
    read: CurrentRead,
    /// Bytes of a shared prefix that was sent before, and of the whole text.
    pub(super) repeated: [u32; 2],
    /// Content events by how they shared a read; see [`StreamReads`].
    together: u32,
    together_delayed: u32,
    split_delayed: u32,
    delayed_burst: u32,
}

/// The read that is being processed.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentRead {
    /// Since the read before; `None` for the first one.
    since_last: Option<Nanos>,
    /// Content events so far.
    content: u32,
    /// Which of them is the turn's first one that is not reasoning, counted from 1.
    first_output: Option<u32>,
    /// How much earlier than stamped its first byte may have arrived.
    first_earlier_by: Nanos,
    /// The same for its last byte.
    last_earlier_by: Nanos,
    /// Whether it ends with a content event.
    ends_with_content: bool,
    /// Whether it ends within an event.
    ends_within_event: bool,
    /// Whether the read before, if it was not the first, ended within an event, or brought framing
    /// only: the target had more to send.
    continues: bool,
}

impl TurnMeasurement {
    /// Begins the measurement of a turn that is intended for a moment; `gaps` is empty.
    #[inline]
    pub(super) fn new(intended: Moment, gaps: Vec<Nanos>) -> Self {
        Self {
            sample: Sample::unsent(intended),
            gaps,
            late_reads: Vec::new(),
            events: None,
            read: CurrentRead::default(),
            together: 0,
            together_delayed: 0,
            split_delayed: 0,
            delayed_burst: 0,
            repeated: [0; 2],
        }
    }

    /// Counts a read of `bytes` bytes. Returns whether it has a time of its own.
    #[inline]
    pub(super) fn received(&mut self, bytes: usize, rx_time: RxTime) -> bool {
        let sample = &mut self.sample;
        let RxTime { at, read_lag, first_earlier_by, last_earlier_by } =
            possible(rx_time, sample.timeline.dispatched);
        sample.read_lag = sample.read_lag.max(read_lag);
        sample.bytes_in += bytes as u64;
        // Records of one read share its time stamp, and so one burst.
        let before = sample.timeline.finished.replace(at);
        if before == Some(at) {
            return false;
        }
        // Data of a read arrived after the previous read.
        let since_last = before.map(|before| at.since(before));
        let limit = since_last.unwrap_or(Nanos::new(u64::MAX));
        let first_earlier_by = first_earlier_by.min(limit);
        let last_earlier_by = last_earlier_by.min(limit);
        sample.generator.finished = last_earlier_by;
        if before.is_none() {
            sample.timeline.first_byte = Some(at);
            sample.generator.first_byte = first_earlier_by;
        } else {
            self.next_read(since_last);
        }
        self.read.first_earlier_by = first_earlier_by;
        self.read.last_earlier_by = last_earlier_by;
        true
    }

    fn next_read(&mut self, since_last: Option<Nanos>) {
        self.end_of_read();
        let before = self.read;
        let silent = before.content == 0 && before.since_last.is_some();
        let continues = before.ends_within_event || silent;
        self.read = CurrentRead { since_last, continues, ..CurrentRead::default() };
    }

    /// Notes where in a stream the bytes so far end.
    #[inline]
    pub(super) fn fed(&mut self, decoder: &Decoder) {
        self.read.ends_with_content = decoder.ends_with_content();
        self.read.ends_within_event = decoder.is_within_event();
    }

    /// The same for the messages of a WebSocket.
    pub(super) fn read_messages(&mut self, decoder: &Decoder, ends_within_message: bool) {
        self.read.ends_with_content = decoder.ends_with_content() && !ends_within_message;
        self.read.ends_within_event = ends_within_message;
    }

    /// Counts a content event.
    #[inline]
    pub(super) fn content(&mut self, kind: DeltaKind, at: Moment) {
        let Sample { timeline, gaps, events, .. } = &mut self.sample;
        self.read.content += 1;
        if self.read.content == 1 {
            if let Some(last) = timeline.last_token {
                let gap = at.since(last);
                self.gaps.push(gap);
                gaps.count += 1;
                gaps.sum += gap;
                gaps.max = gaps.max.max(gap);
            }
            timeline.first_token.get_or_insert(at);
            timeline.last_token = Some(at);
        }
        if let Some(events) = &mut self.events {
            events.push(at);
        }
        if kind != DeltaKind::Reasoning && timeline.first_output_token.is_none() {
            timeline.first_output_token = Some(at);
            self.read.first_output = Some(self.read.content);
        }
        *events += 1;
    }

    /// Ends the current read; the next one may come after a gap.
    #[inline]
    fn end_of_read(&mut self) {
        let CurrentRead { content, first_earlier_by, since_last, .. } = self.read;
        if content == 0 {
            return;
        }
        let gaps = &mut self.sample.gaps;
        gaps.largest_burst = gaps.largest_burst.max(content);
        gaps.last_burst = content;
        if gaps.count == 0 {
            gaps.first_burst = content;
        }
        if first_earlier_by > Nanos::ZERO {
            self.late_read();
        } else {
            self.sample.generator.last_token = Nanos::ZERO;
        }
        if since_last.is_some_and(|wait| wait < TOGETHER_AFTER) {
            return;
        }
        self.together += content - 1;
        // A slightly late read does not hide a wait that is much longer.
        if since_last.is_some_and(|wait| {
            is_delayed_ack(wait) && first_earlier_by.as_u64() <= wait.as_u64() / 4
        }) {
            self.together_delayed += content - 1;
            self.split_delayed += u32::from(self.read.continues);
            self.delayed_burst = self.delayed_burst.max(content);
        }
    }

    /// The time stamp belongs to the read's last bytes. Earlier bytes may have arrived at any time
    /// since the worker last polled.
    fn late_read(&mut self) {
        let CurrentRead { content, first_output, first_earlier_by, last_earlier_by, .. } =
            self.read;
        let ends_with_content = self.read.ends_with_content;
        let last = if ends_with_content { last_earlier_by } else { first_earlier_by };
        let first = if content == 1 { last } else { first_earlier_by };
        let own = &mut self.sample.generator;
        own.last_token = last;
        let gap = self.sample.gaps.count.checked_sub(1);
        if gap.is_none() {
            own.first_token = first;
        }
        if let Some(number) = first_output {
            own.first_output_token = if number == content { last } else { first_earlier_by };
        }
        if first > LATE_READ {
            let read = LateRead { gap, events: content, earlier_by: first, last_earlier_by: last };
            self.late_reads.push(read);
        }
    }

    /// Ends the last read: no more bytes come.
    pub(super) fn end(&mut self) {
        self.end_of_read();
        self.read.content = 0;
    }

    /// Determines how the content events of a finished stream arrived.
    pub(super) fn judge_stream(&mut self) {
        let Sample { timeline, gaps, events, generator, .. } = &self.sample;
        let Some((first, last)) = timeline.first_token.zip(timeline.last_token) else { return };
        let mut reads = StreamReads {
            events: *events,
            reads: gaps.count + 1,
            span: last.since(first),
            service_time: timeline.service_time().unwrap_or_default(),
            first_earlier_by: generator.first_token,
            together: self.together,
            together_delayed: self.together_delayed,
            split_delayed: self.split_delayed,
            delayed_burst: self.delayed_burst,
            first_burst: gaps.first_burst,
            late_together: 0,
        };
        if !self.late_reads.is_empty() {
            reads.late_together = self.late_together(reads.pace());
            self.sample.gaps.late_together = reads.late_together;
        }
        self.sample.shape = Some(reads.shape());
    }

    /// Content events that may share their read only because the generator was late. In the time
    /// by which a read was late, at most as many events arrived as the pace of the stream allows.
    fn late_together(&self, pace: Nanos) -> u32 {
        self.late_reads
            .iter()
            .map(|read: &LateRead| {
                let fit = read.earlier_by.as_u64().div_ceil(pace.as_u64().max(1));
                u32::try_from(fit).unwrap_or(u32::MAX).min(read.events - 1)
            })
            .sum()
    }
}

/// The time of a read by the kernel's stamp. The stamp is ignored if bytes would have arrived
/// before their request was dispatched: the kernel's wall clock then differs from this process's.
fn possible(rx_time: RxTime, dispatched: Option<Moment>) -> RxTime {
    match rx_time.read_lag {
        Some(lag) if dispatched.is_some_and(|dispatched| rx_time.at < dispatched) => {
            RxTime { read_lag: None, ..RxTime::exact(rx_time.at + lag) }
        }
        _ => rx_time,
    }
}

#[cfg(test)]
mod tests;
