//! `plimsoll mock`: it serves until a signal stops it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{FAST, Fixture, command};

#[test]
fn it_serves_until_a_signal_and_then_prints_what_it_served() {
    let fixture = Fixture::with(FAST);
    let args = [
        "mock",
        "--listen",
        "127.0.0.1:0",
        "--ttft",
        "2ms",
        "--tokens",
        "3",
        "--log",
        "truth.jsonl",
    ];
    let mut mock = command(fixture.folder.path(), &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(mock.stdout.take().unwrap());
    let mut greeting = String::new();
    stdout.read_line(&mut greeting).unwrap();
    let target = greeting.split_whitespace().find(|word| word.starts_with("http://")).unwrap();

    let run = ["run", "minimal", "--target", target, "--key", "any", "-q", "--stages", "2:300ms"];
    fixture.run_as_its_summary_says(&run);
    let requests = fixture.summary().results.accounting().completed + 1;
    kill(Pid::from_raw(mock.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(mock.wait().unwrap().code(), Some(0));
    let mut output = String::new();
    stdout.read_to_string(&mut output).unwrap();
    assert!(output.contains(&format!("{requests} requests: {requests} answered")), "{output}");
    assert!(output.contains(&format!("200 x {requests}")), "{output}");
    let log = fs::read_to_string(fixture.folder.path().join("truth.jsonl")).unwrap();
    assert_eq!(log.lines().count() as u64, requests);
}

#[test]
fn wrong_usage_prints_the_cause_and_the_fix() {
    let fixture = Fixture::with(FAST);
    let used = fixture.mock.addr().to_string();
    fs::write(fixture.folder.path().join("bad.yaml"), "models: {m: {tfft: 1ms}}").unwrap();
    for (args, code, part) in [
        (&["mock", "--ttft", "soon"][..], 2, "write a duration"),
        (&["mock", "--listen", "nowhere"], 2, "nowhere"),
        (&["mock", "--config", "absent.yaml"], 2, "cannot read absent.yaml"),
        (&["mock", "--config", "bad.yaml"], 2, "tfft"),
        (&["mock", "--workers", "0"], 2, "workers"),
        (&["mock", "--listen", &used], 3, "choose a free port"),
        (&["mock", "--listen", "127.0.0.1:0", "--log", "no/such/folder"], 3, "writable folder"),
    ] {
        let output = fixture.plimsoll(args).expect(code);
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
    }
}
