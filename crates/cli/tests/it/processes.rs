//! `--processes N`, `--shard auto` and `--start-at`: one run by several processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_metrics::{RunEnd, ShardState};
use plimsoll_run_files::{ShardStatus, parse_row, read_shard_status};

use crate::support::{FAST, Fixture, ProcessOutput, command, summary, wait_until};

fn ids(run: &Path) -> BTreeSet<String> {
    let rows = fs::read_to_string(run.join("results.jsonl")).unwrap();
    rows.lines().map(|row| parse_row(row.as_bytes()).unwrap().request_id).collect()
}

fn status(shard: &Path) -> ShardStatus {
    read_shard_status(&fs::read(shard.join("shard.json")).unwrap()).unwrap()
}

fn folders(run: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(run)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    all.sort();
    all
}

#[test]
fn processes_together_send_what_one_would_and_begin_at_the_same_instant() {
    let (one, three) = (Fixture::with(FAST), Fixture::with(FAST));
    let args = ["minimal", "--stages", "@60:1s", "--run-id", "same"];
    one.run(&args).expect(0);
    three.run(&[&args[..], &["--processes", "3"]].concat()).expect(0);
    let whole = three.only_run();
    assert_eq!(ids(&whole), ids(&one.only_run()));
    assert_eq!(ids(&whole).len(), 60);
    // The mock saw them, and a probe of each process.
    assert_eq!(three.mock.stats().requests, 63);
    let shards = folders(&whole.join("shards"));
    let starts: BTreeSet<_> =
        shards.iter().map(|shard| status(shard).start_at_unix_ns.unwrap()).collect();
    assert_eq!((shards.len(), starts.len()), (3, 1));
    let merged = summary(&whole);
    assert_eq!(merged.results.accounting().scheduled, 60);
    let states: Vec<_> = merged.shards.iter().map(|shard| shard.state).collect();
    assert_eq!(states, [ShardState::Done; 3]);
    // The whole can be run again, as the whole.
    let profile = fs::read_to_string(whole.join("profile.yaml")).unwrap();
    assert!(profile.contains("@60:1s") && !profile.contains("--shard"), "{profile}");
}

/// Starts a run of two processes whose load goes on for long.
fn start_long(fixture: &Fixture) -> Child {
    let child = fixture.start(&["minimal", "--stages", "4:60s", "--processes", "2"]);
    fixture.wait_for_requests(20);
    child
}

fn children(parent: u32) -> Vec<Pid> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(path).unwrap();
    text.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap())
}

#[test]
fn ctrl_c_ends_all_processes_and_what_they_measured_is_merged() {
    let fixture = Fixture::with(FAST);
    let child = start_long(&fixture);
    kill(pid(&child), Signal::SIGINT).unwrap();
    let output = ProcessOutput::from(child.wait_with_output().unwrap()).expect(130);
    assert!(output.expect_screen().starts_with("INTERRUPTED"), "{}", output.stdout);
    let merged = summary(&fixture.only_run());
    assert_eq!(merged.metadata.run.ended, RunEnd::Interrupted);
    let accounting = merged.results.accounting();
    assert_eq!(accounting.scheduled, accounting.accounted());
    assert!(accounting.completed >= 18, "{accounting:?}");
}

#[test]
fn a_process_that_is_killed_is_named_and_makes_the_whole_invalid() {
    let fixture = Fixture::with(FAST);
    let child = fixture.start(&["minimal", "--stages", "4:4s", "--processes", "2"]);
    fixture.wait_for_requests(20);
    let counted = || {
        let found = fixture.runs().into_iter().flat_map(|run| folders(&run)).collect::<Vec<_>>();
        found.len() == 2 && found.iter().all(|shard| shard.join("counts.bin").exists())
    };
    assert!(wait_until(counted));
    let second = children(child.id())[1];
    kill(second, Signal::SIGKILL).unwrap();
    let output = ProcessOutput::from(child.wait_with_output().unwrap());
    assert!(output.stderr.contains("shard 1/2 was killed by signal 9"), "{}", output.stderr);
    assert!(output.expect_screen().starts_with("INVALID: shards: 1 of 2 ended"));
    assert!(output.stdout.contains("shard 1/2 was cut off, counted for"), "{}", output.stdout);
    assert!(!output.stdout.contains("fault of Plimsoll"), "{}", output.stdout);
}

#[test]
fn processes_end_with_the_one_that_started_them() {
    let fixture = Fixture::with(FAST);
    let mut child = start_long(&fixture);
    let all = children(child.id());
    assert_eq!(all.len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = |pid: &Pid| !Path::new(&format!("/proc/{pid}/fd/0")).exists();
    assert!(wait_until(|| all.iter().all(gone)), "they go on without their parent");
    // They ended in order: what they measured is there.
    let shards = folders(&fixture.only_run());
    assert_eq!(
        shards.iter().map(|shard| status(shard).state).collect::<Vec<_>>(),
        [ShardState::Done; 2]
    );
}

#[test]
fn a_process_that_cannot_begin_ends_the_run_in_its_own_words() {
    let fixture = Fixture::with(FAST);
    let closed = "http://127.0.0.1:1";
    let args = ["run", "minimal", "--target", closed, "--key", "x", "--quiet", "--processes", "2"];
    let refused = fixture.plimsoll(&args).expect(3).stderr;
    assert!(refused.contains("nothing listens there"), "{refused}");
    assert!(!refused.contains("error: error:"), "{refused}");
    assert!(fixture.runs().is_empty(), "{:?}", fixture.runs());
    for (args, words) in [
        (&["http", "a:1", "b:1", "--processes", "2"][..], "give one URL"),
        (&["llm", "a:1", "--model", "m", "--sweep", "--processes", "2"], "--sweep"),
        (&["http", "a:1", "--body", "@-", "--processes", "2"], "standard input"),
        (&["http", "a:1", "--shard", "0/2"], "--out"),
        (&["run", "minimal", "--processes", "2", "--shard", "0/2"], "cannot be used with"),
        (&["run", "minimal", "--start-at", "ready"], "--shard"),
        (&["run", "minimal", "--shard", "auto"], "SLURM_PROCID"),
    ] {
        let refused = fixture.plimsoll(args).expect(2).stderr;
        assert!(refused.contains(words), "{args:?}: {refused}");
    }
}

#[test]
fn http_without_a_folder_leaves_none_and_llm_shows_its_curve() {
    let fixture = Fixture::with(FAST);
    let url = fixture.target();
    let http = ["http", &url, "-n", "31", "-c", "4", "--processes", "2", "-q", "--allow-invalid"];
    let output = fixture.plimsoll(&http).expect(0);
    assert!(output.stdout.contains("31 requests in"), "{}", output.stdout);
    assert!(fixture.runs().is_empty());
    let llm = ["llm", &url, "--model", "m", "-c", "2,4", "-d", "1s", "--processes", "2", "-q"];
    let output = fixture.plimsoll(&[&llm[..], &["--allow-invalid"]].concat()).expect(0);
    assert!(output.stdout.contains("4 users"), "{}", output.stdout);
}

/// Starts a shard as an engine would.
fn shard(fixture: &Fixture, variables: &[(&str, &str)], more: &[&str]) -> Child {
    let target = fixture.target();
    let fixed = ["run", "minimal", "--target", &target, "--key", "x", "-q", "--allow-invalid"];
    let own = ["--stages", "@60:1s", "--run-id", "both", "--shard", "auto"];
    let mut command: Command = command(fixture.folder.path(), &[&fixed[..], &own, more].concat());
    command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn shards_with_a_common_folder_wait_for_each_other() {
    let fixture = Fixture::with(FAST);
    let ready = ["--start-at", "ready+500ms"];
    let first = shard(&fixture, &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")], &ready);
    let waits = fixture.folder.path().join("runs/both/shard-00000-of-00002/ready.json");
    assert!(wait_until(|| waits.exists()));
    // The first is ready, and sends nothing but its probe until the second is, too.
    assert_eq!(fixture.mock.stats().requests, 1);
    let second = shard(&fixture, &[("PMI_RANK", "1"), ("PMI_SIZE", "2")], &ready);
    for child in [first, second] {
        ProcessOutput::from(child.wait_with_output().unwrap()).expect(0);
    }
    let merged = fixture.plimsoll(&["merge", "runs/both", "--out", "whole", "--allow-invalid"]);
    merged.expect(0);
    let whole = folders(&fixture.folder.path().join("whole")).remove(0);
    assert_eq!(summary(&whole).results.accounting().scheduled, 60);
    let notes = summary(&whole).metadata.notes;
    assert!(notes.iter().any(|note| note.starts_with("the shards began within")), "{notes:?}");
}

#[test]
fn a_shard_that_is_late_sends_nothing_and_the_merge_says_so() {
    let fixture = Fixture::with(FAST);
    let of = |index| [("PLIMSOLL_SHARD_INDEX", index), ("PLIMSOLL_SHARD_COUNT", "2")];
    let wait = |child: Child| ProcessOutput::from(child.wait_with_output().unwrap());
    wait(shard(&fixture, &of("0"), &["--start-at", "+1s"])).expect(0);
    let probed = fixture.mock.stats().requests;
    let late = wait(shard(&fixture, &of("1"), &["--start-at", "2026-01-01T00:00:00Z"])).expect(3);
    assert!(late.stderr.contains("shard 1/2 was ready"), "{}", late.stderr);
    assert!(late.stderr.contains("sent nothing"), "{}", late.stderr);
    assert_eq!(fixture.mock.stats().requests, probed + 1);
    let folder = fixture.folder.path().join("runs/both/shard-00001-of-00002");
    let status = status(&folder);
    assert_eq!(status.state, ShardState::Late);
    assert!(status.late_by_ns.unwrap() > 1_000_000_000);
    let merged = fixture.plimsoll(&["merge", "runs/both", "--expect", "2"]).expect(3);
    assert!(merged.stdout.contains("1/2 was ready"), "{}", merged.stdout);
}

#[test]
fn every_wait_for_a_start_has_an_end() {
    let fixture = Fixture::with(FAST);
    let of = [("PLIMSOLL_SHARD_INDEX", "0"), ("PLIMSOLL_SHARD_COUNT", "3")];
    let wait = |child: Child| ProcessOutput::from(child.wait_with_output().unwrap());
    let alone = ["--start-at", "ready", "--start-timeout", "300ms"];
    let lonely = wait(shard(&fixture, &of, &alone)).expect(3).stderr;
    assert!(lonely.contains("1/3, 2/3 missing"), "{lonely}");
    let far = ["--start-at", "2100-01-01T00:00:00Z"];
    let far = wait(shard(&fixture, &of, &far)).expect(3).stderr;
    assert!(far.contains("ahead by this host's clock"), "{far}");
    let child = shard(&fixture, &of, &["--start-at", "ready"]);
    let waits = fixture.folder.path().join("runs/both/shard-00000-of-00003/ready.json");
    assert!(wait_until(|| waits.exists()));
    kill(pid(&child), Signal::SIGINT).unwrap();
    wait(child).expect(130);
    // None of them left a folder that would look like a shard.
    assert!(folders(&fixture.folder.path().join("runs/both")).is_empty());
}
