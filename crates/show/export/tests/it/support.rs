//! A run of two stages, a reader of pages, and connections.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_export::LiveMetrics;
use plimsoll_measure::{
    ErrorClass, Moment, Nanos, Outcome, Sample, ScenarioId, StageId, TargetId, Timeline,
};
use plimsoll_metrics::{
    IntervalUpdate, Recorder, RunInfo, RunMetadata, Snapshot, StageInfo, TargetInfo,
};

/// A warm-up of a second and a stage of nine, with two scenarios.
pub(crate) fn run() -> RunMetadata {
    let stage = |name: &str, warmup| StageInfo {
        name: name.to_owned(),
        warmup,
        duration_s: if warmup { 1.0 } else { 9.0 },
        ..StageInfo::default()
    };
    let target = TargetInfo { name: "gateway".to_owned(), ..TargetInfo::default() };
    RunMetadata {
        run: RunInfo { name: "chat".to_owned(), ..RunInfo::default() },
        stages: vec![stage("w@5:1s", true), stage("@5:9s", false)],
        scenarios: vec!["short".to_owned(), "a \"long\"\none".to_owned()],
        targets: vec![target],
        labels: [("environment".to_owned(), "test".to_owned())].into(),
        ..RunMetadata::default()
    }
}

/// A request of a stage and a scenario that took so long, or failed.
pub(crate) fn request(stage: u16, scenario: u16, took: Result<Nanos, ErrorClass>) -> Sample {
    let begin = Moment::EPOCH + Nanos::from_secs(stage.into());
    let finished = Some(begin + took.unwrap_or(Nanos::from_millis(1)));
    Sample {
        stage: StageId(stage),
        scenario: ScenarioId(scenario),
        target: TargetId(0),
        warmup: stage == 0,
        timeline: Timeline {
            dispatched: Some(begin),
            connected: Some(begin),
            sent: Some(begin),
            first_byte: finished,
            finished,
            ..Timeline::intended(begin)
        },
        status: if took.is_ok() { 200 } else { 503 },
        outcome: took.map_or_else(Outcome::Failed, |_| Outcome::Completed),
        ..Sample::unsent(begin)
    }
}

/// The counts of these requests.
pub(crate) fn snapshot(requests: &[Sample]) -> Snapshot {
    let ends = [1, 10].map(|second| Moment::EPOCH + Nanos::from_secs(second));
    let mut recorder = Recorder::new(ends.to_vec());
    for request in requests {
        recorder.scheduled(request.stage, request.scenario, request.target);
        recorder.record(request, &[], &[]);
    }
    recorder.take()
}

/// Hands a snapshot over.
pub(crate) fn update(live: &LiveMetrics, stage: usize, cells: &Snapshot) {
    live.update(IntervalUpdate {
        elapsed: Nanos::from_secs(2),
        stage,
        length: Nanos::from_secs(1),
        cells,
        in_flight: 3,
        ended: 0,
        ending: false,
        taken_out: &[None],
        processes: Vec::new(),
        own_cpu: Some(Nanos::from_millis(250)),
        own_cores: None,
    });
}

/// The values of a page by what stands before them. Checks what the text format demands: one HELP
/// and one TYPE line before the lines of a family, which stand together, and no line twice.
pub(crate) fn read(page: &str) -> BTreeMap<String, f64> {
    let (mut lines, mut families) = (BTreeMap::new(), BTreeMap::new());
    let mut present = String::new();
    assert!(page.ends_with('\n'));
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            rest.split_once(' ').unwrap().0.clone_into(&mut present);
            assert!(families.insert(present.clone(), String::new()).is_none(), "second {line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, present, "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            families.insert(name.to_owned(), kind.to_owned());
        } else {
            let (series, value) = line.rsplit_once("} ").unwrap();
            let name = series.split_once('{').unwrap().0;
            let of_family = match families[&present].as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|end| name.strip_suffix(end) == Some(&present)),
                _ => name == present,
            };
            assert!(of_family, "{line} below {present}");
            let series = format!("{series}}}");
            assert!(lines.insert(series, value.parse().unwrap()).is_none(), "twice: {line}");
        }
    }
    lines
}

/// Sends bytes, and reads until the connection ends.
pub(crate) fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A reset after the answer does not matter.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The head and the body of `GET /metrics`.
pub(crate) fn scrape(address: SocketAddr) -> (String, String) {
    let answer = exchange(address, "GET /metrics HTTP/1.1\r\nhost: h\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}
