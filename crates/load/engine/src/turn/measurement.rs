//! The measurement of a turn: its sample, and the gaps between its content events.

use plimsoll_measure::{LATE_READ, LateRead, Moment, Nanos, Sample};
use plimsoll_protocol::DeltaKind;
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
    /// Content events of the read that is being processed.
    pub(super) burst: u32,
    /// Whether that read came late.
    pub(super) late: bool,
    /// How much earlier than its time stamp its first bytes may have arrived.
    pub(super) earlier_by: Nanos,
}

impl TurnMeasurement {
    /// Nothing measured yet but this sample.
    pub(super) const fn of(sample: &Sample) -> Self {
        Self {
            sample: *sample,
            gaps: Vec::new(),
            late_reads: Vec::new(),
            events: None,
            burst: 0,
            late: false,
            earlier_by: Nanos::ZERO,
        }
    }

    /// Counts a read of `bytes` bytes.
    #[inline]
    pub(super) fn received(&mut self, bytes: usize, rx_time: RxTime) {
        let RxTime { at, read_lag, first_earlier_by, last_earlier_by } = rx_time;
        let sample = &mut self.sample;
        sample.read_lag = sample.read_lag.max(read_lag);
        sample.bytes_in += bytes as u64;
        // Records of one read share its time stamp, and so one burst.
        let before = sample.timeline.finished.replace(at);
        if before == Some(at) {
            return;
        }
        self.end_of_read();
        // What a read brings arrived after the read before it.
        let since_before = before.map_or(Nanos::MAX, |before| at.since(before));
        let sample = &mut self.sample;
        self.late = read_lag.is_some_and(|lag| lag > LATE_READ) || first_earlier_by > LATE_READ;
        self.earlier_by = first_earlier_by.min(since_before);
        sample.generator.finished = last_earlier_by.min(since_before);
        if before.is_none() {
            sample.timeline.first_byte = Some(at);
            sample.generator.first_byte = self.earlier_by;
        }
    }

    /// Ends the burst of the current read; the next one may come after a gap.
    #[inline]
    pub(super) fn end_of_read(&mut self) {
        if self.late && self.burst > 0 {
            let gap = self.gaps.len().checked_sub(1).and_then(|last| u32::try_from(last).ok());
            let (events, earlier_by) = (self.burst, self.earlier_by);
            self.late_reads.push(LateRead { gap, events, earlier_by });
        }
        self.sample.gaps.largest_burst = self.sample.gaps.largest_burst.max(self.burst);
        self.burst = 0;
    }

    /// Counts a content event.
    #[inline]
    pub(super) fn content(&mut self, kind: DeltaKind, at: Moment) {
        let Sample { timeline, gaps, events, generator, .. } = &mut self.sample;
        if self.burst == 0 {
            if let Some(last) = timeline.last_token {
                let gap = at.since(last);
                self.gaps.push(gap);
                gaps.count += 1;
                gaps.sum += gap;
                gaps.max = gaps.max.max(gap);
            }
            if timeline.first_token.is_none() {
                timeline.first_token = Some(at);
                generator.first_token = self.earlier_by;
            }
            timeline.last_token = Some(at);
            generator.last_token = self.earlier_by;
        } else {
            gaps.late_together += u32::from(self.late);
        }
        if let Some(events) = &mut self.events {
            events.push(at);
        }
        if kind != DeltaKind::Reasoning && timeline.first_output_token.is_none() {
            timeline.first_output_token = Some(at);
            generator.first_output_token = self.earlier_by;
        }
        self.burst += 1;
        *events += 1;
    }
}
