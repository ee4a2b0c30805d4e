//! The diagnosis of streams, by a server that shapes them and by a generator that is stopped.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_metrics::{StreamDiagnosis, StreamWord};

use crate::support::{command, summary};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const WORD: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"word \"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const EVENTS: u32 = 40;
const PACE: Duration = Duration::from_millis(15);
const PROFILE: &str = "model: mock\nkey: test\ncontent: {mode: sized, approx_input_tokens: 8}\n\
                       max_tokens: 64\nstream: true\nstages: '4:2500ms'\ndrain: 5s\n";

/// Change that the server makes to its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Intact,
    /// Sends this many events in one piece.
    Merged(u32),
    Whole,
    /// Writes the size of each chunk separately, with Nagle's algorithm on.
    Nagle,
    /// Stands still for half a second in the middle of every stream.
    Pause,
    /// Closes the connection in the middle of every fifth stream.
    Cut,
    /// Ends every fifth stream in its middle with `[DONE]`.
    HiddenCut,
}

/// The threads end with the process.
fn spawn(shape: Shape) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let count = Arc::new(AtomicU32::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            thread::spawn(move || serve(&stream, shape, &count));
        }
    });
    addr
}

fn serve(mut stream: &TcpStream, shape: Shape, count: &AtomicU32) -> Option<()> {
    stream.set_nodelay(shape != Shape::Nagle).ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        read_request(&mut reader)?;
        // The probe is the first.
        let number = count.fetch_add(1, Ordering::Relaxed);
        let ends_early = matches!(shape, Shape::Cut | Shape::HiddenCut) && number % 5 == 3;
        let start = now() + Duration::from_millis(60);
        let mut held = HEAD.to_owned();
        for event in 0..if ends_early { EVENTS / 2 } else { EVENTS } {
            let pause = if shape == Shape::Pause && event >= EVENTS / 2 { 500 } else { 0 };
            let due = start + PACE * event + Duration::from_millis(pause);
            wait(due.saturating_duration_since(now()));
            if shape == Shape::Nagle {
                held.push_str(&size(WORD));
                stream.write_all(std::mem::take(&mut held).as_bytes()).ok()?;
                held = format!("{WORD}\r\n");
            } else {
                held.push_str(&chunk(WORD));
            }
            let holds = match shape {
                Shape::Whole => true,
                Shape::Merged(events) => event % events != events - 1,
                _ => false,
            };
            if !holds {
                stream.write_all(std::mem::take(&mut held).as_bytes()).ok()?;
            }
        }
        match shape {
            Shape::Cut if ends_early => return None,
            Shape::HiddenCut if ends_early => {}
            _ => held.push_str(&chunk(STOP)),
        }
        held.push_str(&chunk(DONE));
        held.push_str("0\r\n\r\n");
        stream.write_all(held.as_bytes()).ok()?;
    }
}

fn chunk(event: &str) -> String {
    format!("{}{event}\r\n", size(event))
}

/// The line before a chunk.
fn size(event: &str) -> String {
    format!("{:x}\r\n", event.len())
}

fn read_request(reader: &mut impl std::io::BufRead) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()
}

/// Results of one run.
struct Found {
    streams: StreamDiagnosis,
    /// The report, on one line.
    report: String,
    /// Share of the run in which the host kept the generator from looking at its sockets.
    disturbed: f64,
}

/// Runs a load on such a server. This machine may be too busy for a valid run.
#[expect(clippy::print_stdout, reason = "what was found is read in the output of the test")]
fn load(shape: Shape, stops: bool) -> Found {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("streams.yaml"), PROFILE).unwrap();
    let target = format!("http://{}", spawn(shape));
    let args = ["run", "streams.yaml", "--target", &target, "--quiet", "--allow-invalid"];
    let mut child = command(folder.path(), &args).spawn().unwrap();
    if stops {
        stop_again_and_again(child.id());
    }
    child.wait().unwrap();
    let runs = folder.path().join("runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let report = std::fs::read_to_string(run.join("report.txt")).unwrap();
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let summary = summary(&run);
    let streams = summary.results.total.streams.unwrap();
    let windows = &summary.health.disturbed_windows;
    let disturbed = windows.iter().map(|window| window.length_s).sum::<f64>() / 2.5;
    println!("{shape:?}: {streams:?}, disturbed {disturbed:.2}");
    Found { streams, report, disturbed }
}

/// Stops the generator for 200 of every 450 ms.
fn stop_again_and_again(pid: u32) {
    let signal = |signal: &str| {
        assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
    };
    wait(Duration::from_millis(900));
    for _ in 0..6 {
        signal("-STOP");
        wait(Duration::from_millis(200));
        signal("-CONT");
        wait(Duration::from_millis(250));
    }
}

#[expect(clippy::disallowed_methods, reason = "a server that paces its streams")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a server that paces its streams")]
fn wait(time: Duration) {
    thread::sleep(time);
}

/// Expects this diagnosis. A host that withholds the CPU time of the generator and of the server
/// merges events itself, so a run that it disturbed is repeated. Only a host that disturbs one run
/// after the other leaves it open.
#[track_caller]
#[expect(clippy::print_stdout, reason = "a test that found nothing out says so")]
fn expect(
    shape: Shape,
    word: StreamWord,
    sentence: &str,
    holds: impl Fn(&StreamDiagnosis) -> bool,
) {
    for _ in 0..5 {
        let found = load(shape, false);
        if found.streams.word == word && holds(&found.streams) {
            assert!(found.report.contains(sentence), "{}", found.report);
            return;
        }
        assert!(found.disturbed > 0.05, "{:?}", found.streams);
    }
    println!("{shape:?}: the host disturbed five runs; nothing is known");
}

#[test]
fn a_stream_that_comes_event_by_event_is_intact() {
    expect(Shape::Intact, StreamWord::Intact, "requests ok", |_| true);
}

/// The generator got the blame for this.
#[test]
fn a_proxy_that_merges_is_named() {
    let sentence = "arrived merged, 10.0 events at a time";
    expect(Shape::Merged(10), StreamWord::Merged, sentence, |found| {
        // Ten events, 15 ms apart.
        let (events, over) = (found.events_per_read.unwrap(), found.over_ms.unwrap());
        (events - 10.0).abs() < 0.5 && (110.0..160.0).contains(&over)
    });
}

#[test]
fn a_proxy_that_buffers_the_whole_answer_is_named() {
    let sentence = "buffered whole until their end";
    expect(Shape::Whole, StreamWord::BufferedWhole, sentence, |_| true);
}

#[test]
fn nagles_algorithm_is_named() {
    let sentence = "stalled for 40 ms, the time of a delayed acknowledgment";
    expect(Shape::Nagle, StreamWord::Stalled, sentence, |_| true);
}

#[test]
fn a_pause_in_every_stream_is_said() {
    let sentence = "streams paused, for 5";
    expect(Shape::Pause, StreamWord::Intact, sentence, |found| {
        found.paused == found.judged && (490.0..600.0).contains(&found.pause_ms.unwrap())
    });
}

/// A comparison reports the stalls of each target, and no disturbance by the other one. A busy host
/// may read streams late, which leaves stalls unknown.
#[test]
fn in_a_comparison_nagles_algorithm_is_not_a_disturbance_by_other_targets() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("streams.yaml"), PROFILE).unwrap();
    let ways = [(); 2].map(|()| format!("http://{}", spawn(Shape::Nagle)));
    let target = format!("a={}", ways[1]);
    let args = ["versus", "streams.yaml", "--direct", &ways[0], "--target", &target];
    let load = ["--stages", "4:8s", "-q", "--allow-invalid"];
    let output = command(folder.path(), &[&args[..], &load].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let run =
        std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let report = std::fs::read_to_string(run.join("report.txt")).unwrap();
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!report.contains("disturb each other"), "{report}");
    let groups = summary(&run).results.by_target;
    let stalled = |at: usize| groups[at].streams.unwrap().shape() == StreamWord::Stalled;
    // Targets with equal figures share one line: `PL303 direct, a: ...`.
    let named = |name: &str| {
        report
            .split("PL303 ")
            .skip(1)
            .any(|text| text.split_once(": ").unwrap().0.split(", ").any(|subject| subject == name))
    };
    for (at, name) in ["direct", "a"].into_iter().enumerate() {
        assert_eq!(named(name), stalled(at), "{report}");
    }
}

#[test]
fn streams_that_are_cut_are_counted_even_if_a_gateway_ends_them_properly() {
    let sentence = "cut off";
    expect(Shape::Cut, StreamWord::Cut, sentence, |found| found.cut >= 2);
    let sentence = "without a finish reason";
    expect(Shape::HiddenCut, StreamWord::NoFinishReason, sentence, |found| {
        found.no_finish_reason >= 2
    });
}

#[test]
fn a_generator_that_is_stopped_blames_itself() {
    let found = load(Shape::Intact, true);
    assert_eq!(found.streams.word, StreamWord::ReadLate, "{:?}", found.streams);
}
