//! Streams in virtual time, read as scripted. All times are milliseconds.

use plimsoll_measure::{
    ErrorClass, FinishReason, Nanos, Outcome, Sample, StreamShape, TokenSource,
};
use plimsoll_metrics::{Recorder, StreamDiagnosis, StreamWord};

use plimsoll_transport::RxTime;

use crate::simulation_tests::harness::{CHAT, Simulated, at, simulate};
use crate::simulation_tests::{Reply, ScriptedRead, ScriptedTarget};

const CONTENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n";
const REASONING: &str = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"word\"}}]}\n\n";
const ROLE: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// A read `after` ms after the one before, by a generator that is never late.
fn read(after: u64, parts: &[&str]) -> ScriptedRead {
    late_read(after, parts, 0)
}

/// A read whose first byte may have come `earlier` ms before its last one.
fn late_read(after: u64, parts: &[&str], earlier: u64) -> ScriptedRead {
    let text = Box::leak(parts.concat().into_boxed_str());
    ScriptedRead { after: ms(after), text, earlier_by: [ms(earlier), Nanos::ZERO] }
}

/// Number of content events in one read.
fn burst(after: u64, events: usize) -> ScriptedRead {
    read(after, &[&CONTENT.repeat(events)])
}

fn end() -> ScriptedRead {
    read(1, &[STOP, DONE])
}

fn reply(reads: impl IntoIterator<Item = ScriptedRead>) -> Reply {
    Reply::Reads(Box::leak(reads.into_iter().collect::<Vec<_>>().into_boxed_slice()))
}

/// Ten requests, one after another, of which the first are answered by this script.
fn run(first: Vec<Reply>, otherwise: Reply) -> Simulated {
    let target = ScriptedTarget::script(first, otherwise);
    simulate(&format!("{CHAT}stream: true\nstages: '@1:10s'\ntimeout: 4s\n"), target)
}

fn one(reads: impl IntoIterator<Item = ScriptedRead>) -> Sample {
    run(Vec::new(), reply(reads)).samples[0]
}

fn diagnosis(run: &Simulated) -> StreamDiagnosis {
    let mut recorder = Recorder::new(vec![at(60_000)]);
    run.samples.iter().for_each(|sample| recorder.record(sample, &[], &[]));
    recorder.take().total(|_| true).streams().unwrap()
}

#[test]
fn a_stream_whose_events_come_one_by_one_is_intact() {
    let reads = || (0..30).map(|_| burst(20, 1)).chain([end()]);
    let sample = one(reads());
    assert_eq!((sample.outcome, sample.shape), (Outcome::Completed, Some(StreamShape::Intact)));
    assert_eq!(sample.finish_reason, Some(FinishReason::Stop));
    assert_eq!(sample.gaps.late_together, 0);
    // A pace of 40 ms is not a stall, if the events come one by one.
    let slow = one((0..30).map(|_| burst(40, 1)).chain([end()]));
    assert_eq!(slow.shape, Some(StreamShape::Intact));
    let found = diagnosis(&run(Vec::new(), reply(reads())));
    assert_eq!((found.word, found.begun, found.intact), (StreamWord::Intact, 10, 10));
}

/// T-16: 18 events over 170 ms in one piece, read in time.
#[test]
fn a_proxy_that_merges_is_named_and_not_the_generator() {
    let reads = [burst(200, 18)].into_iter().chain((0..9).map(|_| burst(180, 18))).chain([end()]);
    let run = run(Vec::new(), reply(reads));
    let found = diagnosis(&run);
    assert_eq!((found.word, found.merged, found.read_late), (StreamWord::Merged, 10, 0));
    // 10 ms a token.
    assert_eq!((found.events_per_read, found.over_ms), (Some(18.0), Some(170.0)));
}

/// T-16: one late read does not change the word, in either direction.
#[test]
fn one_late_read_does_not_flip_the_word() {
    let merged = |late: bool| {
        let first = late_read(200, &[&CONTENT.repeat(18)], if late { 50 } else { 0 });
        reply([first].into_iter().chain((0..9).map(|_| burst(180, 18))).chain([end()]))
    };
    let intact = |late: bool| {
        let first = if late { late_read(200, &[&CONTENT.repeat(4)], 61) } else { burst(200, 1) };
        reply([first].into_iter().chain((0..30).map(|_| burst(20, 1))).chain([end()]))
    };
    for late in [0, 1, 5, 10] {
        let script = (0..10).map(|n| merged(n < late)).collect();
        assert_eq!(diagnosis(&run(script, Reply::Hang)).word, StreamWord::Merged, "{late}");
        let script = (0..10).map(|n| intact(n < late)).collect();
        assert_eq!(diagnosis(&run(script, Reply::Hang)).word, StreamWord::Intact, "{late}");
    }
}

#[test]
fn a_generator_that_stops_again_and_again_blames_itself() {
    // Stopped for 200 of every 400 ms; a token each 20 ms.
    let period = || {
        let stopped = late_read(200, &[&CONTENT.repeat(10)], 190);
        [stopped].into_iter().chain((0..10).map(|_| burst(20, 1)))
    };
    let reads = (0..4).flat_map(|_| period()).chain([end()]);
    let run = run(Vec::new(), reply(reads));
    let found = diagnosis(&run);
    assert_eq!((found.word, found.read_late, found.merged), (StreamWord::ReadLate, 10, 0));
    // 9 of the 10 events of each stop.
    assert_eq!(run.samples[0].gaps.late_together, 36);
}

#[test]
fn a_late_read_explains_no_more_events_than_fit_into_its_lateness() {
    // 20 events each 200 ms; the generator was late by 25 ms: three tokens of 10 ms at most.
    let read = || late_read(200, &[&CONTENT.repeat(20)], 25);
    let sample = one((0..10).map(|_| read()).chain([end()]));
    assert_eq!(sample.shape, Some(StreamShape::Merged));
    assert_eq!(sample.gaps.late_together, 10 * 3);
}

#[test]
fn content_that_comes_in_one_piece_at_the_end_is_buffered_whole() {
    let whole = CONTENT.repeat(50);
    let sample = one([read(20, &[ROLE]), read(980, &[&whole, STOP, DONE])]);
    assert_eq!((sample.shape, sample.gaps.count), (Some(StreamShape::BufferedWhole), 0));
    // T-14: no time between tokens that came together.
    assert_eq!((sample.usage.completion.count, sample.tpot()), (50, None));
    // In several reads, as the pieces of a large body come.
    let piece = |after| burst(after, 20);
    let large = one([piece(1_000), piece(1), piece(0), read(1, &[&whole, STOP, DONE])]);
    assert_eq!((large.shape, large.tpot()), (Some(StreamShape::BufferedWhole), None));
    // Read so late that it may have come piece by piece.
    let unsure = one([read(20, &[ROLE]), late_read(980, &[&whole, STOP, DONE], 700)]);
    assert_eq!(unsure.shape, Some(StreamShape::ReadLate));
}

#[test]
fn stalls_of_a_delayed_acknowledgement_are_named() {
    // Four tokens of 10 ms wait for the acknowledgement of the piece before.
    let merged = one((0..20).map(|n| burst(if n % 2 == 0 { 40 } else { 44 }, 4)).chain([end()]));
    assert_eq!(merged.shape, Some(StreamShape::Stalled));
    // Linux delays one acknowledgement and then none for a while: one stall in each stream.
    let once = [read(30, &[ROLE]), burst(41, 4)].into_iter();
    let once = one(once.chain((0..32).map(|_| burst(10, 1))).chain([end()]));
    assert_eq!(once.shape, Some(StreamShape::Stalled));
    // The server writes each event in two parts; the second waits.
    let (begin, rest) = CONTENT.split_at(20);
    let parts = (0..20).flat_map(|_| [read(60, &[begin]), read(40, &[rest])]).chain([end()]);
    assert_eq!(one(parts).shape, Some(StreamShape::Stalled));
    // Or the size of the chunk, and then its bytes.
    let framing = (0..20).flat_map(|_| [read(60, &[]), burst(40, 1)]);
    let framing = [read(5, &[ROLE])].into_iter().chain(framing).chain([end()]);
    assert_eq!(one(framing).shape, Some(StreamShape::Stalled));
    let found = diagnosis(&run(Vec::new(), reply((0..20).map(|_| burst(41, 4)).chain([end()]))));
    assert_eq!(found.word, StreamWord::Stalled);
}

/// T-8: the instants of events that came in a late read are bounded.
#[test]
fn the_events_of_a_late_read_may_have_come_earlier() {
    // Two events and the end, read together 220 ms after the request; the first may have come at
    // 20 ms.
    let sample = one([late_read(220, &[CONTENT, CONTENT, STOP, DONE], 200)]);
    let own = sample.generator;
    assert_eq!(sample.timeline.first_token, Some(at(220)));
    assert_eq!([own.first_byte, own.first_token, own.first_output_token], [ms(200); 3]);
    // The stream ends with its end marker, not with content.
    assert_eq!((own.last_token, own.finished), (ms(200), Nanos::ZERO));

    // Reasoning first: the output began with the last event, whose bytes are the read's last.
    let reads = [late_read(100, &[REASONING, CONTENT], 80), read(20, &[CONTENT]), end()];
    let own = one(reads).generator;
    assert_eq!([own.first_token, own.first_output_token], [ms(80), Nanos::ZERO]);
    assert_eq!([own.last_token, own.finished], [Nanos::ZERO; 2]);

    // One event alone in a late read: its stamp is exact.
    let own = one([late_read(100, &[CONTENT], 80), burst(20, 1), end()]).generator;
    assert_eq!(
        [own.first_byte, own.first_token, own.last_token],
        [ms(80), Nanos::ZERO, Nanos::ZERO]
    );

    // Without the kernel's stamps not even the last byte is.
    let unknown = ScriptedRead { earlier_by: [ms(9), ms(7)], ..burst(30, 2) };
    let own = one([
        burst(10, 1),
        unknown,
        ScriptedRead { after: ms(6), earlier_by: [ms(5); 2], ..end() },
    ])
    .generator;
    assert_eq!([own.first_token, own.last_token, own.finished], [Nanos::ZERO, ms(7), ms(5)]);
}

/// T-13: a gateway appended `[DONE]` to a stream that was cut.
#[test]
fn a_stream_without_a_finish_reason_fails_where_the_target_gives_one() {
    let whole = || reply((0..5).map(|_| burst(20, 1)).chain([end()]));
    let hidden_cut = || reply((0..3).map(|_| burst(20, 1)).chain([read(0, &[DONE])]));
    let script = vec![whole(), hidden_cut(), whole(), hidden_cut()];
    let mixed = run(script, whole());
    let outcomes: Vec<_> = mixed.samples[..4].iter().map(|sample| sample.outcome).collect();
    let cut = Outcome::Failed(ErrorClass::NoFinishReason);
    assert_eq!(outcomes, [Outcome::Completed, cut, Outcome::Completed, cut]);
    let found = diagnosis(&mixed);
    assert_eq!((found.word, found.no_finish_reason), (StreamWord::NoFinishReason, 2));

    // A target that never gives one: it cannot be held against it.
    let never = run(Vec::new(), hidden_cut());
    assert!(never.samples.iter().all(|sample| sample.outcome == Outcome::Completed));
    assert!(!diagnosis(&never).finish_reasons_given);
}

/// T-13 and T-12.
#[test]
fn usage_is_compared_with_what_came_and_refused_where_it_cannot_be_true() {
    let with_usage = |tokens: &str| {
        let usage =
            format!("data: {{\"choices\":[],\"usage\":{{\"completion_tokens\":{tokens}}}}}\n\n");
        let reads = (0..3).map(|_| burst(20, 1)).chain([read(0, &[STOP, &usage, DONE])]);
        run(Vec::new(), reply(reads))
    };
    // The profile asks for 8 tokens.
    let fewer = with_usage("200");
    assert!(fewer.samples[0].hides_tokens() && !fewer.samples[0].usage_refused);
    assert_eq!(fewer.samples[0].outcome, Outcome::Completed);
    assert_eq!(diagnosis(&fewer).word, StreamWord::FewerTokens);
    for tokens in ["18446744073709551615", "4000000000", "-1", "2.5"] {
        let refused = with_usage(tokens);
        let sample = refused.samples[0];
        assert_eq!((sample.outcome, sample.usage_refused), (Outcome::Completed, true), "{tokens}");
        assert_eq!(sample.usage.completion.source, TokenSource::Estimated);
        assert_eq!(sample.usage.completion.count, 3);
        let usage = &refused.output.causes["usage"];
        assert_eq!(usage.count, 10);
        assert!(usage.first[0].1.contains(tokens), "{usage:?}");
    }
}

/// A wall clock of this process that is 800 ms ahead of the kernel's makes its stamps that much
/// older than they are.
#[test]
fn bytes_do_not_arrive_before_their_request_was_dispatched() {
    let stamped = |arrived, lag| RxTime { read_lag: Some(ms(lag)), ..RxTime::exact(at(arrived)) };
    let told = |time| super::possible(time, Some(at(1_000)));
    assert_eq!(told(stamped(205, 800)), RxTime::exact(at(1_005)), "the read alone is known");
    assert_eq!(told(stamped(1_005, 3)), stamped(1_005, 3));
    assert_eq!(told(RxTime::exact(at(205))), RxTime::exact(at(205)), "there is nothing else");
}
