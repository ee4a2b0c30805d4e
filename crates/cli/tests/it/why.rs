//! `plimsoll why`: the evidence of a run, and the answer in its reports.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_metrics::ProcessPlace;
use plimsoll_why::{Answer, NoSplit, Suspect, Why};
use serde_json::Value;

use crate::gateway::Gateway;
use crate::support::{FAST, Fixture, attempt, wait_until};

/// A mock in a process of its own.
struct OwnMock {
    child: Child,
    url: String,
}

impl OwnMock {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["mock", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut greeting = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
        let url = greeting.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        Self { url: url.to_owned(), child }
    }

    fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }
}

impl Drop for OwnMock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(run: &Path) -> Why {
    serde_json::from_slice(&fs::read(run.join("why.json")).unwrap()).unwrap()
}

const RUN: [&str; 8] =
    ["run", "minimal", "--key", "any", "--allow-invalid", "--stages", "w1:300ms,2:1s", "--target"];

/// The watched process is seen in the measured stage, by the part that its name gives it.
#[test]
fn a_run_keeps_the_evidence_and_its_reports_have_the_line() {
    let fixture = Fixture::with(FAST);
    let mock = OwnMock::start();
    let watch = format!("provider=:{}", mock.port());
    let output = fixture.plimsoll(&[&RUN[..], &[&mock.url, "--watch", &watch]].concat()).expect(0);
    let run = fixture.only_run();
    let summary = fixture.summary();
    let [stage] = summary.resources.as_slice() else { panic!("{:?}", summary.resources) };
    assert_eq!(stage.stage, "2:1s");
    let [provider, own] = stage.processes.as_slice() else { panic!("{stage:?}") };
    assert_eq!((provider.name.as_str(), provider.pid), ("provider", mock.child.id()));
    let places = [provider.place, own.place];
    assert_eq!(places, [ProcessPlace::Target, ProcessPlace::Plimsoll], "{stage:?}");
    assert!(provider.cores > 0.0 && !provider.gone, "{provider:?}");
    assert!(provider.cpus.unwrap() >= 1 && !provider.threads.is_empty(), "{provider:?}");

    let line = summary.bottleneck.as_ref().map(|found| found.text.clone());
    let report = fs::read_to_string(run.join("report.txt")).unwrap();
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.unwrap_or_else(|| "No bottleneck ".to_owned());
    let is_reported = one_line(&report).contains(&line);
    assert_eq!(is_reported, summary.bottleneck.is_some(), "{line}\n{report}");
    output.expect_screen();

    let shown = fixture.plimsoll(&["why", run.to_str().unwrap()]);
    let why = read(&run);
    assert_eq!(why.bottleneck(), summary.bottleneck);
    let code = if why.answer == Answer::Unknown { 4 } else { 0 };
    let shown = shown.expect(code);
    assert!(one_line(&shown.stdout).starts_with(&line), "{}", shown.stdout);
    assert!(shown.stdout.lines().count() <= 24, "{}", shown.stdout);
    let of = |suspect| why.observed.iter().find(|found| found.suspect == suspect).unwrap();
    let upstream = of(Suspect::Upstream).process.as_ref().unwrap();
    assert_eq!(upstream.name, "provider");
    // The upstream itself answers, without a gateway in front of it.
    let before = [Suspect::Gateway, Suspect::Target];
    assert!(why.observed.iter().all(|found| !before.contains(&found.suspect)), "{why:?}");
    let json = fixture.plimsoll(&["why", run.to_str().unwrap(), "--json"]).expect(code).stdout;
    assert_eq!(json, fs::read_to_string(run.join("why.json")).unwrap());
}

/// The page of the mock tells its CPU time; the same process is read by its id for comparison.
#[test]
fn a_process_behind_a_page_of_metrics_is_seen() {
    let fixture = Fixture::with(FAST);
    let mock = OwnMock::start();
    let page = format!("provider={}/metrics#cpus=4", mock.url);
    let run =
        ["run", "minimal", "--key", "any", "--allow-invalid", "--stages", "4:5s", "--no-html"];
    let watch = ["--target", &mock.url, "--watch", &page];
    fixture.plimsoll(&[&run[..], &watch].concat()).expect(0);
    let summary = fixture.summary();
    let processes = &summary.resources[0].processes;
    let by_name = |name: &str| processes.iter().find(|process| process.name == name).unwrap();
    let (by_page, by_id) = (by_name("provider"), by_name("target"));
    assert_eq!(by_id.pid, mock.child.id());
    let shown = format!("{}/metrics process_cpu_seconds_total", mock.url);
    assert_eq!(by_page.page.as_ref(), Some(&shown));
    // Not the same seconds, and the load may pause with the host.
    assert!(
        by_page.cores > 0.3 * by_id.cores && by_page.cores < 3.0 * by_id.cores,
        "{processes:?}"
    );
    assert_eq!(by_page.quota.as_ref().map(|quota| quota.cpus), Some(4.0));

    let nowhere = ["--target", &mock.url, "--watch", "gateway=http://127.0.0.1:1/metrics"];
    let refused = fixture.plimsoll(&[&run[..], &nowhere].concat()).expect(2);
    assert!(refused.stderr.contains("--watch gateway: cannot read http://127.0.0.1:1/metrics"));
}

/// The process is not watched; the target's address identifies it.
#[test]
fn the_process_at_the_target_is_seen_without_a_flag_and_an_idle_load_has_no_bottleneck() {
    let fixture = Fixture::with(FAST);
    let mock = OwnMock::start();
    let get = ["http", mock.url.as_str(), "--rate", "20", "-d", "1s", "--allow-invalid"];
    fixture.plimsoll(&[&get[..], &["--out", "runs"]].concat());
    let summary = fixture.summary();
    let found = &summary.resources[0].processes;
    let names: Vec<_> = found.iter().map(|process| process.name.as_str()).collect();
    assert_eq!(names, ["target", "plimsoll"]);
    assert_eq!((found[0].pid, found[0].place), (mock.child.id(), ProcessPlace::Target));
    assert!(summary.processes.is_empty(), "it is evidence, and not watched");
    let why = {
        fixture.plimsoll(&["why"]);
        read(&fixture.only_run())
    };
    // A busy host may make the generator late; no other component can be at its limit.
    let allowed = [Answer::None, Answer::Generator];
    assert!(allowed.contains(&why.answer), "{why:?}");
    let seen = why.observed.iter().find(|found| {
        found.process.as_ref().is_some_and(|process| process.place == ProcessPlace::Target)
    });
    assert_eq!(seen.unwrap().suspect, Suspect::Target, "{why:?}");
}

#[test]
fn what_is_no_run_is_one_message_and_leaves_no_file() {
    let fixture = Fixture::with(FAST);
    let stage = ["--stages", "1:200ms", "--no-html"];
    fixture.run(&[&["minimal"], &stage[..]].concat()).expect(0);
    let run = fixture.only_run();
    let path = run.to_str().unwrap();
    let refused = |folder: &str, part: &str| {
        let output = fixture.plimsoll(&["why", folder]).expect(2);
        assert!(output.stderr.contains(part) && output.stdout.is_empty(), "{}", output.stderr);
        assert!(!run.join("why.json").exists());
    };
    refused("nowhere", "is not a run folder");
    let empty = fixture.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    refused("empty", "is not a run folder");
    fs::write(empty.join("suite.json"), "{}").unwrap();
    refused("empty", "is not a run folder");

    // Builds without digests wrote no shard.json for a run of one shard.
    fs::remove_file(run.join("shard.json")).unwrap();
    let summary = run.join("summary.json");
    let whole = fs::read_to_string(&summary).unwrap();
    let mut old: Value = serde_json::from_str(&whole).unwrap();
    old["run"]["tool_version"] = "0.1.0".into();
    fs::write(&summary, old.to_string()).unwrap();
    refused(path, "which recorded no evidence of bottlenecks; repeat the run");
    for broken in [&whole[..whole.len() / 2], "{}", "[1]", ""] {
        fs::write(&summary, broken).unwrap();
        refused(path, "cannot be read");
    }
}

/// Our gateway before the mock, whose answers take at least 20 ms: its audit rows show how long it
/// waited for them.
#[test]
fn a_join_splits_what_was_in_flight_between_gateway_and_provider() {
    attempt(3, || {
        let fixture = Fixture::with("{other_models: {ttft: 20ms}, log: memory}");
        let audit = fixture.folder.path().join("audit.jsonl");
        let config = format!(
            "listen: 127.0.0.1:0\nrequest_id: {{}}\naudit: {{path: '{}'}}\n\
             upstreams: {{p: {{addresses: ['{}']}}}}\n\
             routes:\n  - {{name: chat, path: /v1/chat/completions, upstream: p, llm: true}}\n",
            audit.display(),
            fixture.mock.addr()
        );
        fs::write(fixture.folder.path().join("g.yaml"), config).unwrap();
        let gateway = Gateway::start(&fixture, &["--config", "g.yaml"]);
        let target = format!("http://{}", gateway.address);
        // Long enough to make the requests at its ends negligible, however slow the host.
        let stages = ["--stages", "4:6s", "--target", &target];
        let args = ["run", "minimal", "--key", "any", "-q", "--allow-invalid", "--no-html"];
        fixture.plimsoll(&[&args[..], &stages].concat()).expect(0);
        let run = fixture.only_run();
        let summary = fixture.summary();
        let all = summary.results.accounting().completed;
        let rows = || fs::read_to_string(&audit).unwrap_or_default().lines().count() as u64;
        // The probe has a row, too.
        assert!(wait_until(|| rows() > all), "{} of {all}", rows());
        let (run, log) = (run.to_str().unwrap(), audit.to_str().unwrap());
        fixture.plimsoll(&["why", run]);
        assert_eq!(read(Path::new(run)).no_split, Some(NoSplit::NoSource));
        fixture.plimsoll(&["join", run, "--log", log, "-q"]).expect(0);
        let shown = fixture.plimsoll(&["why", run]).stdout;
        let why = read(Path::new(run));
        let Some(split) = why.split else { return Err(format!("{:?}", why.no_split)) };
        assert!(shown.contains("  in flight "), "{shown}");
        assert_eq!(split.matched, Some(all));
        // By the mock's own log: rate x time of its answers, of the run's requests.
        let truth: Vec<_> = fixture.mock.take_log();
        let took_s = |n: u64| n as f64 / 1e9;
        let spent: f64 = truth.iter().skip(1).map(|one| took_s(one.finished - one.arrived)).sum();
        let provider = split.parts.iter().find(|part| part.place == "upstream").unwrap();
        let least = spent / summary.metadata.stages[0].duration_s;
        // The gateway sees the provider's time with the way there and back; all are four users.
        if least < 0.5 || provider.in_flight < 0.97 * least || provider.in_flight > 4.0 {
            return Err(format!("{provider:?}, and the mock was busy with {least}"));
        }
        a_join_that_disagrees_is_not_used(&fixture, run, &audit);
        Ok(())
    });
}

fn a_join_that_disagrees_is_not_used(fixture: &Fixture, run: &str, audit: &Path) {
    let rows = fs::read_to_string(audit).unwrap();
    let less = rows.lines().step_by(2).collect::<Vec<_>>().join("\n");
    let log = audit.with_file_name("less.jsonl");
    fs::write(&log, less).unwrap();
    fixture.plimsoll(&["join", run, "--log", log.to_str().unwrap(), "-q"]).expect(1);
    let own = Path::new(run).join("join.json");
    let other = audit.with_file_name("other.json");
    fs::rename(&own, &other).unwrap();
    fixture.plimsoll(&["why", run, "--join", other.to_str().unwrap()]);
    let why = read(Path::new(run));
    assert_eq!(why.no_split, Some(NoSplit::JoinRefused));
    for broken in ["", "{}", "[1]"] {
        fs::write(&own, broken).unwrap();
        let output = fixture.plimsoll(&["why", run]).expect(2);
        assert!(output.stderr.contains("join.json cannot be read as"), "{}", output.stderr);
    }
}
