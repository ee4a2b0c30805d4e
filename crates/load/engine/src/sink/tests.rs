//! Tests of the sink against a writer that keeps up, stalls or fails.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use plimsoll_measure::{ConversationKey, ErrorClass, Moment, Nanos, Outcome, Sample, Seed};
use plimsoll_workload::conversation_id;

use super::*;

fn ids() -> IdSeed {
    IdSeed::new(Seed(7), "test")
}

fn sample(seq: u64, turn: u16, outcome: Outcome) -> Sample {
    Sample {
        conversation: ConversationKey::arrival(seq),
        turn,
        reused: true,
        status: 200,
        outcome,
        ..Sample::unsent(Moment::EPOCH)
    }
}

/// Conversation, turn, weight.
type Row = (u64, u16, u32);

/// A writer that keeps the rows. It fails while `full` is set, and waits while `gate` is locked.
#[derive(Clone, Default)]
struct FakeWriter {
    rows: Arc<Mutex<Vec<Row>>>,
    full: Arc<AtomicBool>,
    gate: Option<Arc<Mutex<()>>>,
}

impl SampleSink for FakeWriter {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let _open = self.gate.as_ref().map(|gate| gate.lock().unwrap());
        if self.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.rows.lock().unwrap().extend(batch.samples.iter().map(|sample: &Sample| {
            (sample.conversation.0, sample.turn, batch.sampling_rate.weight(sample))
        }));
        Ok(())
    }
}

impl FakeWriter {
    fn written(&self) -> Vec<Row> {
        self.rows.lock().unwrap().clone()
    }
}

fn start(writer: &FakeWriter) -> (Sink, RowBatcher) {
    let sink = Sink::start(Box::new(writer.clone()), ids()).unwrap();
    let rows = sink.row_batcher();
    (sink, rows)
}

fn end(sink: Sink, mut rows: RowBatcher) -> SinkReport {
    rows.flush();
    drop(rows);
    let report = sink.finish();
    assert_eq!(report.offered, report.written + report.left_out + report.overflowed, "{report:?}");
    report
}

#[test]
fn a_writer_that_keeps_up_writes_everything_once_and_in_order() {
    let writer = FakeWriter::default();
    let (sink, mut rows) = start(&writer);
    for seq in 0..10_000 {
        rows.offer(&sample(seq, 0, Outcome::Completed), RowExtras::default());
        if seq % 1_000 == 0 {
            // Sends the batch, as the worker does at each tick, and waits for the writer.
            rows.send();
            while rows.channel.as_ref().unwrap().counters.waiting.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
        }
    }
    let report = end(sink, rows);
    assert_eq!((report.offered, report.written, report.left_out), (10_000, 10_000, 0));
    assert_eq!(report.least_share_one_in, 1);
    let expected: Vec<_> = (0..10_000).map(|seq| (seq, 0, 1)).collect();
    assert_eq!(writer.written(), expected);
}

/// Three million turns, two in each conversation, against a writer that stalls: without
/// the sampling rule all but 65,536 would be lost.
fn flood(outcome: impl Fn(u64) -> Outcome) -> (SinkReport, Vec<Row>) {
    let gate = Arc::new(Mutex::new(()));
    let writer = FakeWriter { gate: Some(Arc::clone(&gate)), ..FakeWriter::default() };
    let (sink, mut rows) = start(&writer);
    let closed = gate.lock().unwrap();
    for seq in 0..1_500_000 {
        for turn in 0..2 {
            rows.offer(&sample(seq, turn, outcome(seq)), RowExtras::default());
        }
    }
    drop(closed);
    let report = end(sink, rows);
    (report, writer.written())
}

#[test]
fn with_a_stalled_writer_rows_are_left_out_by_the_sampling_rule_and_none_is_lost() {
    let (report, rows) = flood(|seq| match seq % 1_000 {
        0 => Outcome::Failed(ErrorClass::Reset),
        _ => Outcome::Completed,
    });
    assert_eq!((report.offered, report.overflowed), (3_000_000, 0));
    assert!(report.written <= 65_536 && report.left_out > 2_900_000, "{report:?}");
    assert_eq!(report.written, rows.len() as u64);
    let one_in = report.least_share_one_in;
    assert!((64..=4_096).contains(&one_in) && one_in.is_power_of_two(), "{one_in}");
    // Weighted rows estimate all of them. The standard deviations are 2 % and 6 %.
    let sum = |rows: &[Row]| rows.iter().map(|row| f64::from(row.2)).sum::<f64>();
    assert!((sum(&rows) / 3e6 - 1.0).abs() < 0.1, "{}", sum(&rows));
    let failed: Vec<_> = rows.iter().copied().filter(|row| row.0 % 1_000 == 0).collect();
    assert!(failed.len() > 600, "unexpected ends are exempt: {}", failed.len());
    assert!((sum(&failed) / 3e3 - 1.0).abs() < 0.3, "{}", sum(&failed));
    // The id of a conversation ranks it. Those below the lowest sampling rate are complete.
    let rank = |seq| {
        let id = conversation_id(ids(), ConversationKey::arrival(seq));
        u64::from(u32::from_str_radix(&id.as_str()[..8], 16).unwrap())
    };
    let complete: std::collections::HashSet<_> = rows.iter().map(|row| (row.0, row.1)).collect();
    for seq in (0..1_500_000).filter(|seq: &u64| rank(*seq) * u64::from(one_in) < 1 << 32) {
        assert!(complete.contains(&(seq, 0)) && complete.contains(&(seq, 1)), "{seq}");
    }
}

#[test]
fn unexpected_ends_are_thinned_as_well_when_there_is_nothing_else() {
    let (report, rows) = flood(|_| Outcome::Rejected(503));
    assert_eq!(report.offered, 3_000_000);
    assert!(report.overflowed < 300_000 && report.left_out > 2_500_000, "{report:?}");
    assert!(rows.iter().any(|row| row.2 > 1));
}

#[test]
fn after_the_load_a_flood_waits_for_the_writer() {
    let writer = FakeWriter::default();
    let (sink, mut rows) = start(&writer);
    rows.flush();
    (0..300_000)
        .for_each(|seq| rows.offer(&sample(seq, 0, Outcome::NeverSent), RowExtras::default()));
    let report = end(sink, rows);
    assert_eq!((report.written, report.left_out, report.overflowed), (300_000, 0, 0));
}

#[test]
fn after_an_error_of_the_writer_every_row_is_counted_as_lost() {
    let writer = FakeWriter::default();
    let (sink, mut rows) = start(&writer);
    (0..512).for_each(|seq| rows.offer(&sample(seq, 0, Outcome::Completed), RowExtras::default()));
    while writer.written().len() < 512 {
        std::thread::yield_now();
    }
    writer.full.store(true, Ordering::Relaxed);
    (0..5_000)
        .for_each(|seq| rows.offer(&sample(seq, 0, Outcome::Completed), RowExtras::default()));
    let report = end(sink, rows);
    assert_eq!((report.offered, report.written, report.overflowed), (5_512, 512, 5_000));
    assert!(report.error.unwrap().contains("storage"));
}

#[test]
fn event_times_and_headers_stay_with_their_turn() {
    let of_headers = RowExtras {
        headers: vec![("x-node".into(), "7".to_owned())],
        error_detail: Some("no room".to_owned()),
        ..RowExtras::default()
    };
    let of_events = RowExtras {
        events: Some(vec![Moment::from_nanos(5)]),
        decoded_bytes: Some(80),
        ..RowExtras::default()
    };
    let batch = SampleBatch {
        samples: (0..4).map(|seq| sample(seq, 0, Outcome::Completed)).collect(),
        extras: vec![
            (0, RowExtras { parts: vec![("db".into(), Nanos::new(7))], ..RowExtras::default() }),
            (2, of_headers),
            (3, of_events),
        ],
        ..SampleBatch::default()
    };
    let headers: Vec<_> = batch.rows().map(|(_, row)| row.headers.len()).collect();
    assert_eq!(headers, [0, 0, 1, 0]);
    let parts: Vec<_> = batch.rows().map(|(_, row)| row.parts.len()).collect();
    assert_eq!(parts, [1, 0, 0, 0]);
    let events: Vec<_> = batch.rows().map(|(_, row)| row.events.as_ref().map(Vec::len)).collect();
    assert_eq!(events, [None, None, None, Some(1)]);
    let errors: Vec<_> = batch.rows().map(|(_, row)| row.error_detail.as_deref()).collect();
    assert_eq!(errors, [None, None, Some("no room"), None]);
    let decoded: Vec<_> = batch.rows().map(|(_, row)| row.decoded_bytes).collect();
    assert_eq!(decoded, [None, None, None, Some(80)]);
}
