//! A target that names the parts of its time in `Server-Timing` headers.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use plimsoll_metrics::ServerTiming;
use serde_json::Value;

use crate::support::{FAST, Fixture, pause};

/// Log of the server, response by response: its `db` time in milliseconds, and whether its parts
/// are impossible.
type Log = Arc<Mutex<Vec<(f64, bool)>>>;

/// Answers after 5 ms and states 1, 2 or 3 ms of it as its overhead, as gateways do.
fn stating() -> (SocketAddr, Arc<Mutex<Vec<f64>>>) {
    let (listener, log) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::default());
    let (address, of_server) = (listener.local_addr().unwrap(), Arc::clone(&log));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = Arc::clone(&of_server);
            thread::spawn(move || state(stream, &log));
        }
    });
    (address, log)
}

fn state(mut stream: TcpStream, log: &Mutex<Vec<f64>>) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for _ in lines.map_while(Result::ok).filter(String::is_empty) {
        pause();
        let stated = {
            let mut log = log.lock().unwrap();
            let stated = [1.25, 2.0, 3.0][log.len() % 3];
            log.push(stated);
            stated
        };
        let written = write!(
            stream,
            "HTTP/1.1 200 OK\r\nX-LiteLLM-Overhead-Duration-Ms: {stated}\r\n\
             content-length: 2\r\n\r\nok"
        );
        if written.is_err() {
            return;
        }
    }
}

#[test]
fn what_a_gateway_states_of_its_overhead_stands_beside_what_was_measured() {
    let (fixture, (address, log)) = (Fixture::with(FAST), stating());
    let (direct, target) = (fixture.target() + "/get", format!("a=http://{address}/get"));
    let load = ["--protocol", "http", "--rate", "40", "--for", "12s", "--allow-invalid"];
    let args = ["versus", "--direct", &direct, "--target", &target, "--quiet"];
    fixture.plimsoll(&[&args[..], &load].concat());
    let run = fixture.only_run();
    let versus: Value =
        serde_json::from_slice(&fs::read(run.join("versus.json")).unwrap()).unwrap();
    let stated = &versus["targets"][1]["stated"];
    let mean_ms = stated["mean_ns"]["x-litellm-overhead-duration-ms"].as_f64().unwrap() / 1e6;
    let log = log.lock().unwrap().clone();
    let expected = log.iter().sum::<f64>() / log.len() as f64;
    // The log also has the warm-up and the probe.
    assert!((mean_ms - expected).abs() < 0.05, "{mean_ms} for {expected}");
    assert!(stated["responses"].as_u64().unwrap() > 100, "{stated}");
    assert_eq!(versus["targets"][0]["stated"], Value::Null, "the mock states nothing");
    let report = fs::read_to_string(run.join("report.txt")).unwrap();
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let table = "Times that targets report in headers header mean answers \
                 a x-litellm-overhead-duration-ms ";
    assert!(report.contains(table), "{report}");
}

/// Answers after at least 5 ms, and states at most 3.5 ms of them; every tenth response states an
/// hour.
fn server() -> (SocketAddr, Log) {
    let (listener, log) = (TcpListener::bind("127.0.0.1:0").unwrap(), Log::default());
    let (address, of_server) = (listener.local_addr().unwrap(), Arc::clone(&log));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = Arc::clone(&of_server);
            thread::spawn(move || answer(stream, &log));
        }
    });
    (address, log)
}

fn answer(mut stream: TcpStream, log: &Log) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    // The empty line is the end of a request.
    for _ in lines.map_while(Result::ok).filter(String::is_empty) {
        pause();
        let (db, untrue) = {
            let mut log = log.lock().unwrap();
            let one = ([1.0, 2.0, 3.0][log.len() % 3], log.len() % 10 == 5);
            log.push(one);
            one
        };
        let gateway = if untrue { 3_600_000.0 } else { 0.5 };
        let written = write!(
            stream,
            "HTTP/1.1 200 OK\r\nserver-timing: gw;dur={gateway}, db;desc=\"a, b\";dur={db}\r\n\
             content-length: 2\r\n\r\nok"
        );
        if written.is_err() {
            return;
        }
    }
}

#[test]
fn the_parts_that_a_target_names_are_in_rows_summary_report_and_why() {
    let (fixture, (address, log)) = (Fixture::with(FAST), server());
    let url = format!("http://{address}/");
    let args = ["http", &url, "-c", "3", "-d", "2s", "--no-probe", "--allow-invalid", "-q"];
    fixture.plimsoll(&[&args[..], &["--out", "runs"]].concat()).expect(0);
    let run = fixture.only_run();
    let summary = fixture.summary();
    let log = log.lock().unwrap().clone();
    // The warm-up, too.
    assert_eq!(summary.results.accounting().completed, log.len() as u64);
    let (untrue, told): (Vec<_>, Vec<_>) = log.iter().partition(|(_, untrue)| *untrue);
    let stages = summary.results.by_stage.iter();
    let stages: Vec<_> = stages.filter_map(|stage| stage.server_timing.as_ref()).collect();
    let of = |count: fn(&ServerTiming) -> u64| stages.iter().map(|one| count(one)).sum::<u64>();
    let counted = (of(|timing| timing.responses), of(|timing| timing.refused));
    assert_eq!(counted, (told.len() as u64, untrue.len() as u64));
    let sum = |name: &str| stages.iter().map(|stage| stage.parts[name].raw_sum()).sum::<f64>();
    let db: f64 = told.iter().map(|(db, _)| db).sum();
    assert!((sum("db") - db).abs() < 1e-6, "{} for {db}", sum("db"));
    assert!((sum("gw") - 0.5 * told.len() as f64).abs() < 1e-6, "{}", sum("gw"));
    let timing = summary.results.total.server_timing.as_ref().unwrap();
    // It waits 5 ms, and names 3.5 ms at most.
    assert!(timing.rest_ms() > 1.4, "{}", timing.rest_ms());

    let report = fs::read_to_string(run.join("report.txt")).unwrap();
    assert!(report.contains("Times reported in the target's headers (not measured)"), "{report}");
    assert!(report.contains("responses are left out, because their parts are invalid"), "{report}");
    let rows = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let in_rows = rows.iter().filter_map(|row| row["server_parts_ms"]["db"].as_f64()).sum::<f64>();
    assert!((in_rows - db).abs() < 1e-6, "{in_rows} for {db}");
    // One in ten cannot be true, which discredits the header.
    let shown = fixture.plimsoll(&["why", run.to_str().unwrap()]);
    assert!(!shown.stdout.contains("target's headers"), "{}", shown.stdout);
}
