//! The gaps of a stream as they may have been, where reads were late.
//!
//! A late read gives its events one time stamp, while they may have come one by one since the
//! worker last looked. How they came is not known. Of all possible ways this finds the one whose
//! longest gap is shortest; where that is the measured one, that with every read as early as it may
//! have been. The measured gaps and these are the two limits between which the real ones lie. It
//! works on *runs*: late reads that follow each other, and the gap behind.

use plimsoll_measure::{LateRead, Nanos};

/// Steps of the search for the shortest longest gap: each halves what is left.
const STEPS: u32 = 24;

/// A read of a run: the gap before it, and when its events may have come.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// From the read before it, as measured.
    gap: u64,
    events: u64,
    /// How much earlier than stamped the first and the last event may have come.
    first_earlier_by: u64,
    last_earlier_by: u64,
}

/// Late reads that follow each other, and the read behind them, which was in time.
#[derive(Debug)]
pub(super) struct Run {
    /// The events of a stream's first read have no gap before them.
    opening: Option<Read>,
    reads: Vec<Read>,
    /// The measured gaps that the reads of the run end.
    pub(super) measured: Vec<Nanos>,
}

impl Run {
    /// The runs of a stream.
    pub(super) fn all(gaps: &[Nanos], late_reads: &[LateRead]) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        let mut next = None;
        for late in late_reads {
            let at = late.gap.map(|gap| gap as usize);
            let continues = at.is_some() && at == next;
            if !continues {
                Self::close(&mut runs, gaps, next);
                runs.push(Self { opening: None, reads: Vec::new(), measured: Vec::new() });
            }
            next = Some(at.map_or(0, |at| at + 1));
            let run = runs.last_mut();
            match (run, at.and_then(|at| gaps.get(at))) {
                (Some(run), Some(gap)) => run.push(*gap, late),
                (Some(run), None) if at.is_none() => run.opening = Some(Read::late(0, late)),
                _ => {}
            }
        }
        Self::close(&mut runs, gaps, next);
        runs
    }

    /// Ends the last run with the read behind it.
    fn close(runs: &mut [Self], gaps: &[Nanos], next: Option<usize>) {
        let behind = next.and_then(|next| gaps.get(next));
        if let (Some(run), Some(gap)) = (runs.last_mut(), behind) {
            run.measured.push(*gap);
            let gap = gap.as_u64();
            run.reads.push(Read { gap, events: 1, first_earlier_by: 0, last_earlier_by: 0 });
        }
    }

    fn push(&mut self, gap: Nanos, late: &LateRead) {
        self.measured.push(gap);
        self.reads.push(Read::late(gap.as_u64(), late));
    }

    /// The gaps between all events of the run as they may have been, farthest from the measured
    /// ones.
    pub(super) fn otherwise(&self) -> Vec<u64> {
        let longest = self.reads.iter().map(|read| read.gap).max().unwrap_or_default();
        let (mut low, mut high) = (0, longest);
        for _ in 0..STEPS {
            let middle = u64::midpoint(low, high);
            if self.fits(middle) { high = middle } else { low = middle }
        }
        if high < longest {
            self.gaps(high, 0, |read, whole| read.earlier_by(whole, high))
        } else {
            let first = self.opening.map_or(0, |read| read.last_earlier_by);
            self.gaps(u64::MAX, first, |read, whole| read.last_earlier_by.min(whole))
        }
    }

    /// Whether no gap need be longer than `most`.
    fn fits(&self, most: u64) -> bool {
        let mut earlier = 0;
        self.reads.iter().all(|read| {
            let whole = read.gap + earlier;
            earlier = read.earlier_by(whole, most);
            earlier <= read.last_earlier_by && read.first_gap(whole, earlier) <= most
        })
    }

    /// The gaps where the last event of each read came so much before its stamp as `earlier_by`
    /// says, from the time since the event before; that of the first read came `earlier`.
    fn gaps(
        &self,
        most: u64,
        mut earlier: u64,
        earlier_by: impl Fn(&Read, u64) -> u64,
    ) -> Vec<u64> {
        let mut gaps = self.opening_gaps(most);
        for read in &self.reads {
            let whole = read.gap + earlier;
            earlier = earlier_by(read, whole);
            read.add_gaps(whole, earlier, &mut gaps);
        }
        gaps
    }

    /// The gaps between the events of the first read of a stream.
    fn opening_gaps(&self, most: u64) -> Vec<u64> {
        let Some(Read { events, first_earlier_by, .. }) = self.opening else { return Vec::new() };
        let between = events - 1;
        let span = first_earlier_by.min(between.saturating_mul(most));
        (0..between).map(|_| span / between).collect()
    }
}

impl Read {
    /// How much before its stamp the last event must have come, if no gap is longer than `most` and
    /// `whole` is the time from the event before to the stamp.
    fn earlier_by(&self, whole: u64, most: u64) -> u64 {
        whole.saturating_sub(self.events.saturating_mul(most))
    }

    /// The gap before the first event, where `whole` is the time from the event before to the stamp
    /// and the last event came so much `earlier`.
    fn first_gap(&self, whole: u64, earlier: u64) -> u64 {
        let span = whole - earlier;
        whole.saturating_sub(self.first_earlier_by).min(span).max(span / self.events)
    }

    /// Adds the gap before each event.
    fn add_gaps(&self, whole: u64, earlier: u64, gaps: &mut Vec<u64>) {
        let first = self.first_gap(whole, earlier);
        gaps.push(first);
        let between = self.events - 1;
        gaps.extend((0..between).map(|_| (whole - earlier - first) / between));
    }

    fn late(gap: u64, late: &LateRead) -> Self {
        Self {
            gap,
            events: u64::from(late.events.max(1)),
            first_earlier_by: late.earlier_by.as_u64(),
            last_earlier_by: late.last_earlier_by.as_u64(),
        }
    }
}
