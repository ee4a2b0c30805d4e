use plimsoll_measure::{FinishReason, GapSummary, Moment, Nanos, Timeline, TokenCount, Usage};

use super::*;

#[expect(clippy::unnecessary_wraps, reason = "the moments of a timeline are optional")]
fn at(ms: u64) -> Option<Moment> {
    Some(Moment::EPOCH + Nanos::from_millis(ms))
}

/// A whole stream of `events` events in `reads` reads, 10 ms apart from 200 ms on.
fn stream(shape: StreamShape, events: u32, reads: u32) -> Sample {
    let last = at(200 + u64::from(events - 1) * 10);
    Sample {
        stream: true,
        status: 200,
        outcome: Outcome::Completed,
        timeline: Timeline {
            dispatched: at(0),
            first_token: at(200),
            last_token: last,
            finished: last,
            ..Timeline::default()
        },
        events,
        gaps: GapSummary { count: reads - 1, ..GapSummary::default() },
        shape: Some(shape),
        finish_reason: Some(FinishReason::Stop),
        ..Sample::unsent(Moment::EPOCH)
    }
}

fn ended(outcome: Outcome) -> Sample {
    Sample { outcome, shape: None, ..stream(StreamShape::Intact, 50, 50) }
}

fn diagnosis<'a>(samples: impl IntoIterator<Item = (usize, &'a Sample)>) -> StreamDiagnosis {
    let mut tally = StreamTally::default();
    for (count, sample) in samples {
        // As two workers count them.
        let mut other = StreamTally::default();
        (0..count).for_each(|_| other.count(sample));
        tally.merge(&other);
    }
    tally.diagnosis().unwrap()
}

#[test]
fn a_merged_stream_tells_how_many_events_a_read_and_over_which_time() {
    // 60 events, sent each 10 ms; 18 a read, and the rest with the end: 18, 18, 18 and 6, read at
    // 370, 550, 730 and 790 ms.
    let merged = stream(StreamShape::Merged, 60, 4);
    let merged = Sample {
        timeline: Timeline { first_token: at(370), last_token: at(790), ..merged.timeline },
        gaps: GapSummary { first_burst: 18, last_burst: 6, ..merged.gaps },
        ..merged
    };
    let found = diagnosis([(20, &merged)]);
    let counts = (found.begun, found.judged, found.merged);
    assert_eq!((found.word, counts), (StreamWord::Merged, (20, 20, 20)));
    // The 18 events of a read were sent over 170 ms.
    assert_eq!((found.events_per_read, found.over_ms), (Some(18.0), Some(170.0)));
    assert!(found.finish_reasons_given);
}

#[test]
fn each_shape_has_its_word_and_a_few_others_do_not_change_it() {
    use {StreamShape as Shape, StreamWord as Word};
    for (shape, word) in [
        (Shape::Intact, Word::Intact),
        (Shape::Merged, Word::Merged),
        (Shape::BufferedWhole, Word::BufferedWhole),
        (Shape::Stalled, Word::Stalled),
        (Shape::ReadLate, Word::ReadLate),
        (Shape::TooShort, Word::Unknown),
    ] {
        let sample = stream(shape, 40, 10);
        assert_eq!(diagnosis([(1, &sample)]).word, word);
        for other in [Shape::Intact, Shape::Merged, Shape::ReadLate] {
            if shape != Shape::TooShort && shape != Shape::ReadLate {
                let few = stream(other, 40, 10);
                assert_eq!(diagnosis([(200, &sample), (15, &few)]).word, word, "{other:?}");
            }
        }
    }
}

#[test]
fn a_true_mixture_is_called_one() {
    use StreamShape as Shape;
    let mixture = |intact: usize, whole: usize, late: usize| {
        let [a, b, c] = [Shape::Intact, Shape::BufferedWhole, Shape::ReadLate]
            .map(|shape| stream(shape, 40, 40));
        diagnosis([(intact, &a), (whole, &b), (late, &c)]).word
    };
    // A gateway that answers a part from its cache, in one piece.
    assert_eq!(mixture(70, 30, 0), StreamWord::Mixed);
    assert_eq!(mixture(97, 3, 0), StreamWord::Intact);
    assert_eq!(mixture(20, 80, 0), StreamWord::BufferedWhole);
    // One odd stream among few decides nothing.
    assert_eq!(mixture(4, 1, 0), StreamWord::Intact);
    // Late reads of ours do not hide what the others show, unless only few are left.
    assert_eq!(mixture(2, 58, 40), StreamWord::BufferedWhole);
    assert_eq!(mixture(60, 0, 40), StreamWord::ReadLate);
    assert_eq!(mixture(90, 0, 10), StreamWord::Intact);
    assert_eq!(mixture(2, 8, 90), StreamWord::ReadLate);
}

/// Linux acknowledges at once on a new connection, so not every stream of such a target stalls.
#[test]
fn stalls_in_a_quarter_of_the_streams_give_the_word() {
    let [intact, stalled, merged] =
        [StreamShape::Intact, StreamShape::Stalled, StreamShape::Merged]
            .map(|shape| stream(shape, 40, 37));
    assert_eq!(diagnosis([(11, &intact), (15, &stalled), (4, &merged)]).word, StreamWord::Stalled);
    assert_eq!(diagnosis([(90, &intact), (15, &stalled)]).word, StreamWord::Mixed);
    assert_eq!(diagnosis([(97, &intact), (3, &stalled)]).word, StreamWord::Intact);
}

#[test]
fn bad_ends_are_counted_and_one_in_a_hundred_gives_the_word() {
    let intact = stream(StreamShape::Intact, 50, 50);
    let cut = ended(Outcome::Failed(ErrorClass::StreamTruncated));
    let found = diagnosis([(388, &intact), (12, &cut)]);
    assert_eq!((found.word, found.begun, found.cut), (StreamWord::Cut, 400, 12));
    assert_eq!(found.shape(), StreamWord::Intact);
    let rare = diagnosis([(1_000, &intact), (2, &cut)]);
    assert_eq!((rare.word, rare.cut), (StreamWord::Intact, 2));

    for (outcome, word) in [
        (Outcome::Failed(ErrorClass::BodyTruncated), StreamWord::Cut),
        (Outcome::Failed(ErrorClass::Reset), StreamWord::Cut),
        (Outcome::Failed(ErrorClass::NoFinishReason), StreamWord::NoFinishReason),
        (Outcome::TimedOut, StreamWord::NoEnd),
    ] {
        assert_eq!(diagnosis([(30, &intact), (3, &ended(outcome))]).word, word, "{outcome:?}");
    }
    let completion = TokenCount::reported(500);
    let fewer = Sample { usage: Usage { completion, ..Usage::default() }, ..intact };
    assert_eq!(diagnosis([(30, &intact), (3, &fewer)]).word, StreamWord::FewerTokens);
    assert_eq!(diagnosis([(7, &cut)]).word, StreamWord::Cut);
}

#[test]
fn only_streams_that_began_count() {
    let mut tally = StreamTally::default();
    let intact = stream(StreamShape::Intact, 50, 50);
    for other in [
        Sample { stream: false, ..intact },
        Sample { status: 429, ..ended(Outcome::Rejected(429)) },
        Sample { status: 503, ..ended(Outcome::Failed(ErrorClass::ServerError)) },
        Sample { status: 0, events: 0, ..ended(Outcome::TimedOut) },
        Sample { events: 0, ..ended(Outcome::Failed(ErrorClass::Reset)) },
        ended(Outcome::InFlight),
    ] {
        tally.count(&other);
    }
    assert_eq!(tally.diagnosis(), None);
    // A whole stream without content is one, but shows nothing.
    tally.count(&Sample { events: 0, shape: None, finish_reason: None, ..intact });
    let found = tally.diagnosis().unwrap();
    assert_eq!((found.begun, found.judged, found.word), (1, 0, StreamWord::Unknown));
    assert!(!found.finish_reasons_given);
}

#[test]
fn a_stream_that_stood_still_is_counted_with_its_pause() {
    // 50 events: 48 gaps of 10 ms, and one.
    let with_longest = |longest: u64, read_lag: u64| {
        let max = Nanos::from_millis(longest);
        let sum = max + Nanos::from_millis(480);
        Sample {
            gaps: GapSummary { count: 49, sum, max, ..GapSummary::default() },
            read_lag: Some(Nanos::from_millis(read_lag)),
            ..stream(StreamShape::Intact, 50, 50)
        }
    };
    let (still, other) = (with_longest(500, 0), with_longest(700, 0));
    let found = diagnosis([(3, &still), (1, &other), (4, &with_longest(10, 0))]);
    assert_eq!((found.word, found.paused, found.pause_ms), (StreamWord::Intact, 4, Some(550.0)));
    assert!(found.stand_still());
    // Too short; late reads of the generator; one in five.
    for (longest, lag) in [(199, 0), (500, 250)] {
        assert_eq!(diagnosis([(1, &with_longest(longest, lag))]).paused, 0);
    }
    let few = diagnosis([(1, &still), (4, &with_longest(10, 0))]);
    assert!(few.paused == 1 && !few.stand_still());
    // Slow all the way: the other gaps are 100 ms.
    let slow = GapSummary { sum: Nanos::from_millis(5_300), ..still.gaps };
    assert_eq!(diagnosis([(1, &Sample { gaps: slow, ..still })]).paused, 0);
}
