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
}

impl TurnMeasurement {
    /// Counts a read of `bytes` bytes.
    #[inline]
    pub(super) fn received(&mut self, bytes: usize, rx_time: RxTime) {
        let RxTime { at, read_lag, .. } = rx_time;
        let sample = &mut self.sample;
        sample.read_lag = sample.read_lag.max(read_lag);
        self.late = read_lag.is_some_and(|lag| lag > LATE_READ);
        sample.bytes_in += bytes as u64;
        sample.timeline.first_byte.get_or_insert(at);
        // Records of one read share its time stamp, and so one burst.
        if sample.timeline.finished.replace(at) != Some(at) {
            self.end_of_read();
        }
    }

    /// Ends the burst of the current read; the next one may come after a gap.
    #[inline]
    pub(super) fn end_of_read(&mut self) {
        self.sample.gaps.largest_burst = self.sample.gaps.largest_burst.max(self.burst);
        self.burst = 0;
    }

    /// Counts a content event.
    #[inline]
    pub(super) fn content(&mut self, kind: DeltaKind, at: Moment) {
        let Sample { timeline, gaps, events, .. } = &mut self.sample;
        if self.burst == 0 {
            if let Some(last) = timeline.last_token {
                let gap = at.since(last);
                self.gaps.push(gap);
                gaps.count += 1;
                gaps.sum += gap;
                gaps.max = gaps.max.max(gap);
            }
            timeline.first_token.get_or_insert(at);
            timeline.last_token = Some(at);
        } else {
            gaps.late_together += u32::from(self.late);
        }
        if let Some(events) = &mut self.events {
            events.push(at);
        }
        if kind != DeltaKind::Reasoning {
            timeline.first_output_token.get_or_insert(at);
        }
        self.burst += 1;
        *events += 1;
    }
}
