//! Bounds of the gaps of a stream around late reads.
//!
//! A late read gives its events one time stamp, although they may have come at any moment since the
//! worker last looked. From the last event that was read in time to the next one, a *window*, only
//! its length `W` and its number of gaps `m` are certain. More than `x` long is at least one gap if
//! `W > m x`, and at most `k` of them are while `k x < W`. These counts are those of one gap of
//! `W / m` beside empty ones, and of gaps of `W`, `W / 2`, ... `W / m`: percentiles of all gaps lie
//! between the percentiles that either gives.

use plimsoll_measure::{LateRead, Nanos};

/// Late reads that follow each other, between two reads in time or the ends of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadWindow<'g> {
    /// The measured gaps in it.
    pub(super) measured: &'g [Nanos],
    /// How much earlier than its stamp the first event of the stream may have come, where the
    /// window begins with it.
    earlier_by: Nanos,
    /// Gaps between events.
    gaps: u64,
    /// Whether a read in time ends it.
    is_closed: bool,
}

impl<'g> ReadWindow<'g> {
    /// The windows of a stream.
    pub(super) fn all(gaps: &'g [Nanos], late_reads: &[LateRead]) -> Vec<Self> {
        late_reads
            .chunk_by(|one, next| position(one) + 1 == position(next))
            .filter_map(|run| {
                let (first, last) = (position(run.first()?), position(run.last()?));
                let events: u64 = run.iter().map(|late| u64::from(late.events.max(1))).sum();
                let is_closed = last < gaps.len();
                let end = if is_closed { last + 1 } else { gaps.len() };
                Some(Self {
                    measured: gaps.get(first.saturating_sub(1)..end)?,
                    earlier_by: if first == 0 { run[0].earlier_by } else { Nanos::ZERO },
                    gaps: events - u64::from(first == 0) + u64::from(is_closed),
                    is_closed,
                })
            })
            .collect()
    }

    fn length(&self) -> u64 {
        self.measured.iter().map(|gap| gap.as_u64()).sum()
    }

    /// Gaps that are too long as seldom as possible. The last events of a stream may have come
    /// together, and before their stamp.
    pub(super) fn least(&self) -> impl Iterator<Item = Nanos> {
        let longest = if self.is_closed { self.length() / self.gaps.max(1) } else { 0 };
        (0..self.gaps).map(move |gap| Nanos::new(if gap == 0 { longest } else { 0 }))
    }

    /// The same as often as possible.
    pub(super) fn most(&self) -> impl Iterator<Item = Nanos> {
        let length = self.length() + self.earlier_by.as_u64();
        (1..=self.gaps).map(move |part| Nanos::new(length / part))
    }
}

/// The place of a read; the first one of a stream ends no gap.
fn position(late: &LateRead) -> usize {
    late.gap.map_or(0, |gap| gap as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps in milliseconds, and late reads as position among the gaps, events and earliness.
    type Stream = (&'static [u64], &'static [(Option<u32>, u32, u64)]);

    #[test]
    fn gaps_around_late_reads_have_bounds() {
        let table: [(&str, Stream, &[u64], &[u64]); 7] = [
            ("in time", (&[10, 10], &[]), &[], &[]),
            (
                "five events at once",
                (&[10, 50, 10], &[(Some(1), 5, 40)]),
                &[10, 0, 0, 0, 0, 0],
                &[60, 30, 20, 15, 12, 10],
            ),
            ("one event", (&[10, 18, 2, 10], &[(Some(1), 1, 8)]), &[10, 0], &[20, 10]),
            (
                "two late reads in a row",
                (&[10, 18, 10, 2, 9], &[(Some(1), 1, 8), (Some(2), 1, 8)]),
                &[10, 0, 0],
                &[30, 15, 10],
            ),
            ("the first read", (&[12, 10], &[(None, 4, 30)]), &[3, 0, 0, 0], &[42, 21, 14, 10]),
            ("the last read", (&[10, 30], &[(Some(1), 3, 20)]), &[0, 0, 0], &[30, 15, 10]),
            ("the only read", (&[], &[(None, 3, 20)]), &[0, 0], &[20, 10]),
        ];
        for (name, (gaps, late), least, most) in table {
            let gaps: Vec<_> = gaps.iter().map(|ms| Nanos::from_millis(*ms)).collect();
            let read = |&(gap, events, ms): &(Option<u32>, u32, u64)| {
                let earlier_by = Nanos::from_millis(ms);
                LateRead { gap, events, earlier_by, last_earlier_by: Nanos::ZERO }
            };
            let late: Vec<_> = late.iter().map(read).collect();
            let windows = ReadWindow::all(&gaps, &late);
            let ms = |values: Vec<Nanos>| -> Vec<u64> {
                values.iter().map(|value| value.as_u64() / 1_000_000).collect()
            };
            assert_eq!(ms(windows.iter().flat_map(ReadWindow::least).collect()), least, "{name}");
            assert_eq!(ms(windows.iter().flat_map(ReadWindow::most).collect()), most, "{name}");
        }
    }

    /// Streams whose events came at known moments: both counts bound the true one.
    #[test]
    fn the_counts_hold_for_any_way_in_which_the_events_came() {
        let arrivals = [0, 3, 4, 19, 22, 40, 41, 55, 90];
        for (asleep, awake) in [(2, 20), (4, 45), (1, 60), (10, 56), (0, 23)] {
            // Asleep between these moments: what came is read at the second one.
            let reads: Vec<_> = arrivals
                .iter()
                .map(|&at| if at > asleep && at <= awake { awake } else { at })
                .collect();
            let mut stamps = reads.clone();
            stamps.dedup();
            let gaps: Vec<_> = stamps.windows(2).map(|two| Nanos::new(two[1] - two[0])).collect();
            let at = stamps.iter().position(|stamp| *stamp == awake).unwrap();
            let events = reads.iter().filter(|read| **read == awake).count();
            let late = LateRead {
                gap: at.checked_sub(1).map(|gap| u32::try_from(gap).unwrap()),
                events: u32::try_from(events).unwrap(),
                earlier_by: Nanos::new(awake - asleep),
                last_earlier_by: Nanos::ZERO,
            };
            let windows = ReadWindow::all(&gaps, &[late]);
            let [window] = windows.as_slice() else { panic!("one window") };
            for longer_than in 0..90 {
                let longer =
                    |gaps: &[Nanos]| gaps.iter().filter(|gap| gap.as_u64() > longer_than).count();
                let gaps_sent: Vec<_> =
                    arrivals.windows(2).map(|two| Nanos::new(two[1] - two[0])).collect();
                let clean = longer(&gaps) - longer(window.measured);
                let low = clean + longer(&window.least().collect::<Vec<_>>());
                let high = clean + longer(&window.most().collect::<Vec<_>>());
                let truth = longer(&gaps_sent);
                assert!((low..=high).contains(&truth), "{asleep}: {low} {truth} {high}");
            }
        }
    }
}
