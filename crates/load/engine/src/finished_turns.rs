//! Turns that are over and not yet recorded.

use plimsoll_measure::{LateRead, Moment, Nanos, Sample, ServerParts};

use crate::sink::RowExtras;

/// Turns that are recorded together. The counts and histograms that a turn changes are in several
/// KiB of memory, which then come into the processor's cache once for all of them.
const TOGETHER: usize = 16;

/// Additional data of a turn besides its sample; most turns have none.
#[derive(Debug, Default)]
pub(crate) struct TurnExtras {
    /// The gaps of its stream.
    pub(crate) gaps: Vec<Nanos>,
    /// The late reads of its stream.
    pub(crate) late_reads: Vec<LateRead>,
    /// Parts of the target's time, if the response names any.
    pub(crate) parts: Option<Box<ServerParts>>,
    /// Additional data of its row.
    pub(crate) row: RowExtras,
}

impl TurnExtras {
    fn is_empty(&self) -> bool {
        let Self { gaps, late_reads, parts, row } = self;
        // Reuses the allocation even when there are no gaps.
        let has_time = gaps.capacity() > 0 || !late_reads.is_empty() || parts.is_some();
        !has_time && row.is_empty()
    }
}

/// Turns that wait to be recorded, in the order in which they ended.
#[derive(Debug, Default)]
pub(crate) struct FinishedTurns {
    /// Each with the moment at which its end was noticed.
    samples: Vec<(Sample, Moment)>,
    /// Data of some samples, by index in `samples`, ascending.
    extras: Vec<(usize, TurnExtras)>,
}

impl FinishedTurns {
    /// Adds a turn whose end was noticed at `at`. Whether there are enough of them to be recorded.
    pub(crate) fn push(&mut self, sample: &Sample, at: Moment, extras: TurnExtras) -> bool {
        if !extras.is_empty() {
            self.extras.push((self.samples.len(), extras));
        }
        self.samples.push((*sample, at));
        self.samples.len() >= TOGETHER
    }

    /// Takes every turn, the oldest first.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(&mut Sample, Moment, TurnExtras)) {
        let mut extras = self.extras.drain(..).peekable();
        for (index, (sample, at)) in self.samples.iter_mut().enumerate() {
            let of_turn = extras.next_if(|(of, _)| *of == index).map(|(_, extras)| extras);
            take(sample, *at, of_turn.unwrap_or_default());
        }
        drop(extras);
        self.samples.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64) -> Sample {
        Sample { bytes_out: number, ..Sample::unsent(Moment::EPOCH) }
    }

    #[test]
    fn turns_come_back_in_their_order_each_with_its_own_extras() {
        let mut turns = FinishedTurns::default();
        for round in 0..2 {
            for number in 0..TOGETHER as u64 {
                let error_detail = (number % 5 == 3).then(|| format!("{round} {number}"));
                let at = Moment::from_nanos(number);
                let row = RowExtras { error_detail, ..RowExtras::default() };
                let extras = TurnExtras { row, ..TurnExtras::default() };
                let enough = turns.push(&sample(number), at, extras);
                assert_eq!(enough, number + 1 == TOGETHER as u64);
            }
            let mut seen = Vec::new();
            turns.drain(|sample, at, extras| {
                seen.push((sample.bytes_out, at.as_nanos(), extras.row.error_detail));
            });
            assert_eq!(
                seen,
                (0..TOGETHER as u64)
                    .map(|number: u64| {
                        let detail =
                            [3, 8, 13].contains(&number).then(|| format!("{round} {number}"));
                        (number, number, detail)
                    })
                    .collect::<Vec<_>>()
            );
            turns.drain(|_, _, _| panic!("each once"));
        }
    }
}
