//! The values that would be others without the generator's part (`docs/adr/0007`): each as it was
//! measured, and as it would be.

use plimsoll_measure::{LEAST_ONE_IN, LEAST_SHARE, LateRead, Nanos, Outcome, Sample};
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::distribution::Distribution;

/// The moved values of a group of requests, by metric.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MovedValues([Option<Box<Moved>>; Metric::COUNT]);

/// The moved values of one metric.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Moved {
    measured: Distribution,
    /// The same values without the measurement error. For gaps there may be more of them, and these
    /// are their lower bounds.
    without: Distribution,
    /// Upper limits, for gaps.
    most: Distribution,
}

impl MovedValues {
    /// Records a request to which the generator may have added something.
    pub(crate) fn record(&mut self, sample: &Sample, gaps: &[Nanos], late_reads: &[LateRead]) {
        let own = &sample.generator;
        let in_time = !own.received_earlier() && late_reads.is_empty();
        if in_time && own.send < LEAST_SHARE && moves_whole(sample) {
            self.sent_late(sample, own.dispatch + own.send);
        } else {
            self.moved_instants(sample, gaps, late_reads);
        }
    }

    /// A request that was only dispatched late: the times from its intended start are shorter by
    /// that.
    fn sent_late(&mut self, sample: &Sample, by: Nanos) {
        let line = &sample.timeline;
        let metric = match sample.outcome {
            Outcome::Completed => Metric::ResponseTime,
            Outcome::Rejected(_) => Metric::RejectedResponseTime,
            Outcome::Failed(_) | Outcome::TimedOut => Metric::UnsuccessfulResponseTime,
            Outcome::InFlight | Outcome::NeverSent | Outcome::Cancelled => return,
        };
        self.moved(metric, line.response_time(), by);
        if sample.outcome == Outcome::Completed && line.first_token.is_some() {
            self.moved(Metric::ResponseTtft, line.response_ttft(), by);
        }
    }

    #[inline]
    fn moved(&mut self, metric: Metric, measured: Option<Nanos>, by: Nanos) {
        let Some(measured) = measured else { return };
        if matters(measured, by) {
            let values = self.values(metric);
            values.measured.record(measured);
            values.without.record(measured.saturating_sub(by));
        }
    }

    #[cold]
    fn moved_instants(&mut self, sample: &Sample, gaps: &[Nanos], late_reads: &[LateRead]) {
        Metric::each_bounded(
            sample,
            &sample.timeline_without_generator(),
            |metric, measured, moved| {
                let moved = match metric {
                    Metric::Transfer => span(sample, measured, Span::Transfer),
                    Metric::Tpot => span(sample, measured, Span::Tokens),
                    _ => moved,
                };
                if matters(measured, Nanos::new(measured.as_u64().abs_diff(moved.as_u64()))) {
                    let values = self.values(metric);
                    values.measured.record(measured);
                    values.without.record(moved);
                }
            },
        );
        if !late_reads.is_empty() && Metric::Itl.population().covers(sample.outcome) {
            self.gaps(gaps, late_reads);
        }
    }

    /// Records the gaps around late reads, as measured and at both limits.
    fn gaps(&mut self, gaps: &[Nanos], late_reads: &[LateRead]) {
        let values = self.values(Metric::Itl);
        for window in ReadWindow::all(gaps, late_reads) {
            window.measured.iter().for_each(|gap| values.measured.record(*gap));
            window.least().for_each(|gap| values.without.record(gap));
            window.most().for_each(|gap| values.most.record(gap));
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            if let Some(theirs) = theirs {
                let mine = mine.get_or_insert_default();
                mine.measured.merge(&theirs.measured);
                mine.without.merge(&theirs.without);
                mine.most.merge(&theirs.most);
            }
        }
    }

    /// `all` values of a metric without the measurement error, or the lower bounds of gaps; `None`
    /// if none changed.
    pub(crate) fn undisturbed(&self, metric: Metric, all: &Distribution) -> Option<Distribution> {
        let moved = self.0[metric as usize].as_ref()?;
        Some(all.replaced(&moved.measured, &moved.without))
    }

    /// The most that all gaps can be; `None` for another metric, and if none moved.
    pub(crate) fn prolonged(&self, metric: Metric, all: &Distribution) -> Option<Distribution> {
        let moved = self.0[metric as usize].as_ref()?;
        (moved.most.count() > 0).then(|| all.replaced(&moved.measured, &moved.most))
    }

    fn values(&mut self, metric: Metric) -> &mut Moved {
        self.0[metric as usize].get_or_insert_default()
    }
}

/// Whether the request's instants move by the whole of the generator's part before it was sent:
/// nothing would come before the intended start, nor be sent before it was dispatched.
fn moves_whole(sample: &Sample) -> bool {
    let (line, own) = (&sample.timeline, &sample.generator);
    let held = line.sent.zip(line.dispatched).map(|(sent, dispatched)| sent.since(dispatched));
    let held = held.unwrap_or_default();
    line.dispatch_lag().is_none_or(|lag| own.dispatch <= lag) && own.send <= held
}

/// Whether a part of a time is large enough: less than 0.5 % does not matter.
#[inline]
fn matters(measured: Nanos, added: Nanos) -> bool {
    added >= LEAST_SHARE && added.as_u64().saturating_mul(LEAST_ONE_IN) > measured.as_u64()
}

#[derive(Clone, Copy)]
enum Span {
    Transfer,
    Tokens,
}

/// A time between two instants of receipt, with the one moved that may be farther off: moving both
/// would cancel out a doubt.
fn span(sample: &Sample, measured: Nanos, span: Span) -> Nanos {
    let own = &sample.generator;
    let (first, last, parts) = match span {
        Span::Transfer => (own.first_byte, own.finished, 1),
        Span::Tokens => {
            let tokens = sample.usage.after_first.unwrap_or(1).max(1);
            (own.first_token, own.last_token, u64::from(tokens))
        }
    };
    let by = Nanos::new(first.max(last).as_u64() / parts);
    if first > last { measured + by } else { measured.saturating_sub(by) }
}

/// Consecutive late reads, between two reads in time or the ends of the stream.
///
/// Bounds of the gaps of a stream around late reads.
///
/// A late read gives its events one time stamp, although they may have arrived at any time since
/// the worker last polled. From the last event that was read in time to the next one, a *window*,
/// only its length `W` and its number of gaps `m` are certain. At least one gap is longer than `x`
/// if `W > m x`, and at most `k` gaps are while `k x < W`. These counts equal the counts of one gap
/// of `W / m` beside empty ones, and of gaps of `W`, `W / 2`, ... `W / m`, so percentiles of all
/// gaps lie between the percentiles of these two.
#[derive(Debug, PartialEq, Eq)]
struct ReadWindow<'g> {
    /// The measured gaps in it.
    measured: &'g [Nanos],
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
    fn all(gaps: &'g [Nanos], late_reads: &[LateRead]) -> Vec<Self> {
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
    fn least(&self) -> impl Iterator<Item = Nanos> {
        let longest = if self.is_closed { self.length() / self.gaps.max(1) } else { 0 };
        (0..self.gaps).map(move |gap| Nanos::new(if gap == 0 { longest } else { 0 }))
    }

    /// The same as often as possible.
    fn most(&self) -> impl Iterator<Item = Nanos> {
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
    use plimsoll_measure::{ErrorClass, GeneratorShare, Moment, Timeline, TokenCount, Usage};
    use proptest::prelude::*;

    use super::*;

    /// The values that a way of recording finds moved, by metric.
    fn recorded(record: impl FnOnce(&mut MovedValues)) -> Vec<(Metric, [(u64, u128); 2])> {
        let mut moved = MovedValues::default();
        record(&mut moved);
        Metric::ALL
            .iter()
            .filter_map(|metric: &Metric| {
                let values = moved.0[*metric as usize].as_ref()?;
                let sums = [&values.measured, &values.without].map(|d| (d.count(), d.sum()));
                Some((*metric, sums))
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_short_way_finds_what_moving_every_instant_finds(
            steps in proptest::array::uniform7(0u64..3_000_000),
            of_lag in 0u64..=100,
            send in 0u64..200_000,
            tokens in proptest::option::of(0u32..20),
            outcome in 0usize..5,
        ) {
            let mut at = Moment::EPOCH;
            let mut after = |step: u64| { at = at + Nanos::new(step); at };
            let timeline = Timeline {
                intended: after(1_000_000),
                dispatched: Some(after(steps[0])),
                connected: Some(after(steps[1] % 2 * steps[1])),
                sent: Some(after(steps[2] / 10)),
                first_byte: Some(after(steps[3])),
                first_token: (steps[4] % 2 == 0).then(|| after(steps[4])),
                first_output_token: (steps[5] % 2 == 0).then(|| after(steps[5])),
                last_token: (steps[6] % 2 == 0).then(|| after(steps[6])),
                finished: Some(after(steps[6])),
            };
            let failed = Outcome::Failed(ErrorClass::Reset);
            let outcomes =
                [Outcome::Completed, Outcome::Rejected(429), failed, Outcome::TimedOut, Outcome::InFlight];
            // A retried request may have waited for its second connection after its dispatch.
            let dispatch = Nanos::new(steps[0] * of_lag / 90);
            let generator = GeneratorShare { dispatch, send: Nanos::new(send), ..GeneratorShare::default() };
            let outcome = outcomes[outcome];
            let completion = tokens.map_or_else(TokenCount::default, TokenCount::reported);
            let after_first = tokens.and_then(|tokens| tokens.checked_sub(1));
            let usage = Usage { completion, after_first, ..Usage::default() };
            let sample = Sample { timeline, generator, outcome, usage, ..Sample::unsent(timeline.intended) };
            prop_assert_eq!(
                recorded(|moved| moved.record(&sample, &[], &[])),
                recorded(|moved| moved.moved_instants(&sample, &[], &[]))
            );
        }
    }

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
