//! Times of events, stages and progress.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use plimsoll_engine::Control;
use plimsoll_measure::{Moment, Nanos};
use plimsoll_metrics::Metric;

use crate::support::{CHAT, joined, mock, plan, run, run_under, url};

#[test]
fn times_agree_with_the_mocks_own_log() {
    let mock = mock("preamble: {constant: 20ms}, ttft: {constant: 60ms}, gap: {constant: 5ms}");
    let profile = "content: {mode: sized, approx_input_tokens: 32}\nmax_tokens: 20\nstream: true\nstages: '@20:2s'\n";
    let ran = run(plan(&url(&mock), profile));
    let log = mock.take_log();
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let (mut times_to_first_byte, mut few_gaps) = (Vec::new(), 0);
    for (sample, record) in joined(&ran, &log) {
        let wall = |moment: Option<Moment>| {
            (ran.started_unix_ns + moment.unwrap().as_nanos()) as f64 / 1e6
        };
        let line = sample.timeline;
        let content: Vec<f64> =
            record.chunks.iter().filter(|c| c.tokens > 0).map(|c| c.written as f64 / 1e6).collect();
        let mut note = |what, error: f64| errors.entry(what).or_default().push(error.abs());
        note("first byte", wall(line.first_byte) - record.chunks[0].written as f64 / 1e6);
        note("first token", wall(line.first_token) - content[0]);
        note("last token", wall(line.last_token) - content[content.len() - 1]);
        note("longest gap", sample.gaps.max.as_millis_f64() - longest_gap(&content));
        assert_eq!((content.len(), sample.events), (20, 20));
        // A thread that is held up finds several events in one read: a burst, and no invented gaps.
        let (gaps, largest_burst) = (sample.gaps.count, sample.gaps.largest_burst);
        assert!(gaps < 20 && (gaps + 1) * largest_burst >= 20, "{gaps} gaps, {largest_burst}");
        // Where every event was written on time and read at once, each came in a read of its own.
        // The mock notes a write when it is done, which may be late.
        let undelayed = sample.read_lag.is_some_and(|lag| lag < Nanos::from_millis(2))
            && content.windows(2).all(|pair| pair[1] - pair[0] > 3.0);
        few_gaps += usize::from(undelayed && gaps < 17);
        assert!(line.ttft().unwrap() >= Nanos::from_millis(60));
        times_to_first_byte.push(line.ttfb().unwrap());
    }
    // A thread may also be held up between two reads of one stream.
    assert!(few_gaps * 4 <= ran.samples.len(), "{few_gaps} streams with too few gaps");
    for (what, mut errors) in errors {
        errors.sort_unstable_by(f64::total_cmp);
        // The mock notes a time when it has written; a busy machine may hold it up before that.
        let quartile = errors[errors.len() / 4];
        assert!(quartile < 2.0, "{what}: a quarter of the errors is below {quartile} ms");
    }
    times_to_first_byte.sort_unstable();
    let ttfb = times_to_first_byte[10];
    assert!(ttfb < Nanos::from_millis(55), "the role chunk is no token: {ttfb}");
    let itl = ran.result.snapshot.total(|_| true).distribution(Metric::Itl).unwrap().count();
    assert_eq!(itl, ran.samples.iter().map(|sample| u64::from(sample.gaps.count)).sum::<u64>());
}

fn longest_gap(times: &[f64]) -> f64 {
    times.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max)
}

#[test]
fn warm_up_is_recorded_apart_and_stages_get_their_own() {
    let mock = mock("");
    let ran = run(plan(&url(&mock), &format!("{CHAT}stages: 'w@100:500ms,@200:500ms,4:500ms'\n")));
    let of_stage =
        |stage: u16| ran.samples.iter().filter(|s| s.stage.0 == stage).collect::<Vec<_>>();
    assert_eq!((of_stage(0).len(), of_stage(1).len()), (50, 100));
    assert!(of_stage(0).iter().all(|s| s.warmup) && of_stage(1).iter().all(|s| !s.warmup));
    assert!(!of_stage(2).is_empty());
    assert_eq!(mock.stats().requests as usize, ran.samples.len());
}

#[test]
fn progress_is_reported_about_once_a_second() {
    let mock = mock("");
    let mut reported = Vec::new();
    run_under(
        plan(&url(&mock), &format!("{CHAT}stages: '@100:2500ms'\n")),
        &Control::new(),
        &mut |progress| {
            let length = progress.interval_length.as_secs_f64();
            reported.push((length, progress.interval.counters().completed));
        },
    );
    assert!((2..=3).contains(&reported.len()), "{reported:?}");
    // 100 per second, however long the interval really was.
    for (length, completed) in reported.iter().take(2) {
        assert!((0.8..=1.2).contains(&(*completed as f64 / (100.0 * length))), "{reported:?}");
    }
}

/// The report describes the actual reads, not the requested mode.
#[test]
fn receive_times_by_the_kernel_are_counted_read_by_read() {
    let mock = mock("ttft: {constant: 5ms}");
    for (stamps, all) in [("true", Some(0)), ("false", None)] {
        let profile = format!("{CHAT}stages: '@100:500ms'\nkernel_timestamps: {stamps}\n");
        let ran = run(plan(&url(&mock), &profile));
        let health = &ran.result.health;
        assert!(health.reads >= Some(50), "{:?}", health.reads);
        assert_eq!(health.unstamped_reads, all.or(health.reads));
        assert_eq!(health.kernel_timestamps, Some(all.is_some()));
        // Without them, every read may have come a little earlier, and none much.
        let earlier = ran.samples.iter().map(|sample| sample.generator.finished);
        let none = earlier.clone().filter(|by| *by == Nanos::ZERO).count();
        assert_eq!(none, if all.is_some() { 50 } else { 0 });
        let mut earlier: Vec<_> = earlier.collect();
        earlier.sort_unstable();
        assert!(earlier[12] < Nanos::from_millis(5), "{}", earlier[12]);
    }
}

/// A target that reads the large body of its first request only after a while. The socket is full
/// meanwhile, which is not the generator's doing.
fn slow_reader(wait: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        thread::sleep(wait);
        // Responds while the body is still coming; the rest of it is read until the end.
        let mut buffer = vec![0; 1 << 20];
        let mut read = 0;
        while read < LARGE {
            read += stream.read(&mut buffer).unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    address
}

/// More than the buffers of a socket on loopback take.
const LARGE: usize = 12_000_000;

#[test]
fn a_full_socket_is_not_the_generators_part_of_sending() {
    let target = format!("http://{}", slow_reader(Duration::from_millis(300)));
    let body = "x".repeat(LARGE);
    let profile = format!(
        "protocol: http\nhttp: {{method: PUT, path: /, body: {body}}}\nstages: '@1:500ms'\nworkers: 1\n"
    );
    let ran = run(plan(&target, &profile));
    let sample = ran.samples[0];
    let line = sample.timeline;
    let sending = line.sent.unwrap().since(line.dispatched.unwrap());
    assert!(sending > Nanos::from_millis(250), "{sending}");
    let own = sample.generator.send;
    assert!(own < Nanos::from_millis(100), "{own} of {sending}");
}
