//! `--processes N`, `--shard auto` and `--start-at`: one run by several processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_measure::{Moment, MonotonicClock};
use plimsoll_metrics::{RunEnd, ShardState};
use plimsoll_run_files::pairs::read_pairs;
use plimsoll_run_files::{ShardStatus, parse_row, read_shard_progress, read_shard_status};

use crate::support::{FAST, Fixture, ProcessOutput, command, summary, wait_until};

pub(crate) fn ids(run: &Path) -> BTreeSet<String> {
    let rows = fs::read_to_string(run.join("results.jsonl")).unwrap();
    rows.lines().map(|row| parse_row(row.as_bytes()).unwrap().request_id).collect()
}

fn status(shard: &Path) -> ShardStatus {
    read_shard_status(&fs::read(shard.join("shard.json")).unwrap()).unwrap()
}

pub(crate) fn folders(run: &Path) -> Vec<PathBuf> {
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

/// Starts a run of two processes with a long load.
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

pub(crate) fn pid(child: &Child) -> Pid {
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
    assert!(
        output.stderr.contains("lost shard 1/2: it was killed by signal 9"),
        "{}",
        output.stderr
    );
    assert!(output.expect_screen().starts_with("INVALID: 1 of 2 shards completed"));
    assert!(output.stdout.contains("shard 1/2 left counts up to"), "{}", output.stdout);
    assert!(!output.stdout.contains("fault of Plimsoll"), "{}", output.stdout);
}

#[test]
fn a_process_that_gets_sigterm_is_named_and_makes_the_whole_invalid() {
    let fixture = Fixture::with(FAST);
    let child = fixture.start(&["minimal", "--stages", "@60:6s", "--processes", "3"]);
    fixture.wait_for_requests(100);
    kill(children(child.id())[1], Signal::SIGTERM).unwrap();
    let output = ProcessOutput::from(child.wait_with_output().unwrap());
    let words = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("INVALID: 2 of 3 shards completed")
            && words.contains("shard 1/3 got a signal at "),
        "{words}"
    );
    let whole = fixture.only_run();
    let merged = summary(&whole);
    assert_eq!(merged.metadata.run.ended, RunEnd::Unfinished);
    assert_eq!(merged.results.total.counters.arrivals_planned, 360);
    let found = status(&folders(&whole.join("shards"))[1]).interrupted.unwrap();
    assert!((1.0..5.0).contains(&found.at_s) && (found.of_s - 6.0).abs() < 1e-9, "{found:?}");
    // By the mock: the others sent their 240, and three processes probed; the rest is its own.
    let own = fixture.mock.stats().requests - 3 - 240;
    assert_eq!(merged.shards[1].scheduled, own);
    assert!((own as f64 - 20.0 * found.at_s).abs() < 4.0, "{own} in {} s", found.at_s);
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
    // They ended in order: their results are there, marked as incomplete.
    for shard in folders(&fixture.only_run()) {
        let status = status(&shard);
        assert_eq!(status.state, ShardState::Partial);
        assert!(status.interrupted.unwrap().at_s < 59.0, "{status:?}");
    }
}

/// A process that is killed cannot say it.
#[test]
fn the_command_that_merges_the_shards_is_printed_before_the_load() {
    let fixture = Fixture::with(FAST);
    let target = fixture.target();
    let run = ["run", "minimal", "--target", &target, "--key", "x", "--stages", "@40:1s"];
    let said = fixture.plimsoll(&[&run[..], &["--processes", "2"]].concat()).stderr;
    assert!(said.contains("merge them: plimsoll merge runs/"), "{said}");
}

#[test]
fn a_process_that_cannot_begin_ends_the_run_in_its_own_words() {
    let fixture = Fixture::with(FAST);
    let closed = "http://127.0.0.1:1";
    let args = ["run", "minimal", "--target", closed, "--key", "x", "--quiet", "--processes", "2"];
    let refused = fixture.plimsoll(&args).expect(1).stderr;
    assert!(refused.contains("nothing listens on that address"), "{refused}");
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
    assert!(output.stdout.contains("31 requests due in"), "{}", output.stdout);
    assert!(fixture.runs().is_empty());
    let llm = ["llm", &url, "--model", "m", "-c", "2,4", "-d", "1s", "--processes", "2", "-q"];
    let output = fixture.plimsoll(&[&llm[..], &["--allow-invalid"]].concat()).expect(0);
    assert!(output.stdout.contains("4 users"), "{}", output.stdout);
}

/// Starts a shard as an engine would.
pub(crate) fn shard(fixture: &Fixture, variables: &[(&str, &str)], more: &[&str]) -> Child {
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
    // The first is ready, and sends only its probe until the second is ready, too.
    assert_eq!(fixture.mock.stats().requests, 1);
    let second = shard(&fixture, &[("PMI_RANK", "1"), ("PMI_SIZE", "2")], &ready);
    for child in [first, second] {
        ProcessOutput::from(child.wait_with_output().unwrap()).expect(0);
    }
    let merged = fixture.plimsoll(&["merge", "runs/both", "--out", "whole", "--allow-invalid"]);
    merged.expect(0);
    let whole = folders(&fixture.folder.path().join("whole")).remove(0);
    assert_eq!(summary(&whole).results.accounting().scheduled, 60);
    let starts: Vec<_> = summary(&whole).shards.iter().map(|part| part.start_s).collect();
    assert!(starts.iter().all(Option::is_some), "{starts:?}");
}

#[test]
fn a_second_launch_with_the_same_run_id_does_not_show_the_result_of_the_first() {
    let fixture = Fixture::with(FAST);
    let launch = |id: &str, index: &str| {
        let of = [("PLIMSOLL_SHARD_INDEX", index), ("PLIMSOLL_SHARD_COUNT", "2")];
        let child = shard(&fixture, &of, &["--launch", id, "--no-probe"]);
        ProcessOutput::from(child.wait_with_output().unwrap())
    };
    let merge = |id: &str| {
        let expect = ["merge", "runs/both", "--expect", "2", "--launch", id];
        fixture.plimsoll(&[&expect[..], &["--out", "whole", "--allow-invalid"]].concat())
    };
    for index in ["0", "1"] {
        launch("job-7", index).expect(0);
    }
    for folder in folders(&fixture.folder.path().join("runs/both")) {
        assert_eq!(status(&folder).launch, "job-7");
    }
    let sent = fixture.mock.stats().requests;
    for index in ["0", "1"] {
        let again = launch("job-8", index).expect(2).stderr;
        assert!(again.contains("this run id was used before"), "{again}");
    }
    assert_eq!((sent, fixture.mock.stats().requests), (60, 60));
    let stale = merge("job-8").expect(2);
    assert!(stale.stderr.contains("no shard belongs to launch `job-8`"), "{}", stale.stderr);
    assert_eq!(stale.stdout, "");
    assert!(merge("job-7").expect(0).stdout.contains("60 requests"));
}

#[test]
fn rows_of_another_shard_are_found_by_merge_and_join() {
    let fixture = Fixture::with("{log: memory}");
    fixture.run(&["minimal", "--stages", "@40:1s", "--processes", "2"]).expect(0);
    let run = fixture.only_run().join("shards");
    let rows = [0, 1].map(|index: usize| folders(&run)[index].join("results.jsonl"));
    let log = fixture.folder.path().join("log.jsonl");
    fs::copy(&rows[1], &log).unwrap();
    let run = run.display().to_string();
    let merge = ["merge", &run, "--expect", "2", "--out", "again"];
    let own = fs::read(&rows[1]).unwrap();
    for (content, words) in [
        (fs::read(&rows[0]).unwrap(), "results.jsonl has "),
        (own[..own.len() / 2].to_vec(), "results.jsonl has "),
        (vec![b'x'; own.len()], "results.jsonl has other content than the run wrote"),
    ] {
        fs::write(&rows[1], content).unwrap();
        let merged = fixture.plimsoll(&merge).expect(3).stdout;
        let merged = merged.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(merged.contains("shard 1/2 has damaged files (results.jsonl "), "{merged}");
        assert!(merged.contains(words), "{merged}");
        let shard = rows[1].parent().unwrap().display().to_string();
        let log = log.display().to_string();
        let map = ["--map", "id=request_id,at=,total=,status="];
        let joined = fixture.plimsoll(&[&["join", &shard, "--log", &log][..], &map].concat());
        assert!(joined.expect(3).stderr.contains(words));
    }
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
    // Not even its probe: that the start has passed is known before.
    assert_eq!(fixture.mock.stats().requests, probed);
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

/// Where Debian's package `faketime` has the library.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// Shard 1 of two, on a host whose wall clock is ahead by so much; its monotonic clock is right.
fn with_clock(ahead: &str) -> [(&str, &str); 5] {
    assert!(Path::new(FAKETIME).exists(), "apt-get install faketime");
    [
        ("LD_PRELOAD", FAKETIME),
        ("FAKETIME", ahead),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("PLIMSOLL_SHARD_INDEX", "1"),
        ("PLIMSOLL_SHARD_COUNT", "2"),
    ]
}

/// Seconds since 1970.
fn in_six_seconds() -> String {
    let now = MonotonicClock::start().unix_nanos(Moment::EPOCH);
    (now / 1_000_000_000 + 6).to_string()
}

/// The first of the requests of a shard that the mock received, by the mock's clock.
fn first_arrival(folder: &Path, log: &[plimsoll_mock::LogRecord]) -> i128 {
    let own = ids(folder);
    let own = log
        .iter()
        .filter(|record| record.request_id.as_ref().is_some_and(|id| own.contains(id.as_str())));
    i128::from(own.map(|record| record.arrived).min().unwrap())
}

#[test]
#[ignore = "needs libfaketime"]
fn a_wrong_clock_begins_as_much_too_early_or_late_and_its_times_are_right() {
    for (wrong, early_ms) in [("+0.8s", 800), ("-0.8s", -800)] {
        begins_too_early(wrong, early_ms);
    }
}

/// Two shards, the second with a wrong clock: by the mock's log it begins too early by that error.
fn begins_too_early(wrong: &str, early_ms: i128) {
    let fixture = Fixture::with("{log: memory, other_models: {ttft: 20ms}}");
    let soon = in_six_seconds();
    let start = ["--start-at", soon.as_str()];
    let right = [("PLIMSOLL_SHARD_INDEX", "0"), ("PLIMSOLL_SHARD_COUNT", "2")];
    let shards = [shard(&fixture, &right, &start), shard(&fixture, &with_clock(wrong), &start)];
    for child in shards {
        ProcessOutput::from(child.wait_with_output().unwrap()).expect(0);
    }
    let all = folders(&fixture.folder.path().join("runs/both"));
    let log = fixture.mock.take_log();
    let [first, second] = [&all[0], &all[1]].map(|folder| first_arrival(folder, &log));
    // Request 0 is due at once, request 1 a sixtieth of a second later.
    let skew_ms = (first - second) / 1_000_000 + 16;
    assert!((early_ms - 40..=early_ms + 50).contains(&skew_ms), "{wrong}: {skew_ms} ms");
    let service = |folder: &Path| {
        let total = summary(folder).results.total;
        total.distribution(plimsoll_metrics::Metric::ServiceTime).unwrap().raw_mean_min_max()[1]
    };
    for folder in &all {
        assert!(service(folder) >= 20.0, "{} ms in {}", service(folder), folder.display());
    }
    let merged = fixture.plimsoll(&["merge", "runs/both", "--allow-invalid", "--full"]).expect(0);
    let said = merged.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("by their hosts' clocks, which nobody compared"), "{said}");
}

#[test]
#[ignore = "needs libfaketime"]
fn clocks_an_hour_apart_send_nothing_and_say_why() {
    let fixture = Fixture::with(FAST);
    let soon = in_six_seconds();
    let start = ["--start-at", soon.as_str()];
    let wait = |child: Child| ProcessOutput::from(child.wait_with_output().unwrap());
    let ahead = wait(shard(&fixture, &with_clock("+1h"), &start)).expect(3).stderr;
    assert!(ahead.contains("shard 1/2 was ready") && ahead.contains("sent nothing"), "{ahead}");
    let start = [&start[..], &["--out", "others"]].concat();
    let behind = wait(shard(&fixture, &with_clock("-1h"), &start)).expect(3).stderr;
    assert!(behind.contains("ahead by this host's clock"), "{behind}");
    // Two probes.
    assert!(fixture.mock.stats().requests <= 2, "{:?}", fixture.mock.stats());
}

#[test]
fn a_run_id_that_has_run_with_another_number_of_shards_is_refused() {
    let fixture = Fixture::with(FAST);
    let shard = |part: &str| {
        let load = ["--stages", "@10:500ms", "--run-id", "both", "--shard", part];
        fixture.run(&[&["minimal"], &load[..]].concat())
    };
    shard("0/2").expect(0);
    let sent = fixture.mock.stats().requests;
    let other = shard("1/3").expect(2).stderr;
    assert!(other.contains("shard-00000-of-00002 already exists"), "{other}");
    assert_eq!(fixture.mock.stats().requests, sent);
}

/// The start of an earlier launch does not apply to this one.
#[test]
fn a_start_of_another_launch_is_ignored() {
    let fixture = Fixture::with(FAST);
    let run = fixture.folder.path().join("runs/both");
    fs::create_dir_all(&run).unwrap();
    let stale = |launch: &str| {
        format!("{{\"schema\":\"plimsoll.start/1\",\"launch\":\"{launch}\",\"unix_ns\":99}}\n")
    };
    fs::write(run.join("start.json"), stale("first")).unwrap();
    let shards = ["0", "1"].map(|index| {
        let place = [("PLIMSOLL_SHARD_INDEX", index), ("PLIMSOLL_SHARD_COUNT", "2")];
        shard(&fixture, &place, &["--start-at", "ready", "--launch", "second"])
    });
    for shard in shards {
        ProcessOutput::from(shard.wait_with_output().unwrap()).expect(0);
    }
    assert!(folders(&run).iter().all(|shard| status(shard).state == ShardState::Done));
}

#[test]
fn a_loss_that_is_accepted_is_stated_and_the_rest_is_judged() {
    let fixture = Fixture::with("other_models: {ttft: 100ms, gap: 1ms, output: 4}");
    let load = ["minimal", "--stages", "@60:4s", "--processes", "3", "--lost-at-most", "40%"];
    let child = fixture.start(&load);
    fixture.wait_for_requests(60);
    kill(children(child.id())[1], Signal::SIGKILL).unwrap();
    let output = ProcessOutput::from(child.wait_with_output().unwrap()).expect(0);
    let words = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("(PL109; measurement: valid)") || words.contains("measurement: valid)"),
        "{words}"
    );
    assert!(words.contains("2 of 3 shards completed: shard 1/3 "), "{words}");
}

#[test]
fn a_shard_that_gets_a_signal_stops_the_others_if_asked() {
    let fixture = Fixture::with(FAST);
    let load = ["minimal", "--stages", "@60:60s", "--processes", "3", "--on-loss", "stop"];
    let child = fixture.start(&load);
    fixture.wait_for_requests(60);
    kill(children(child.id())[1], Signal::SIGTERM).unwrap();
    let output = ProcessOutput::from(child.wait_with_output().unwrap());
    assert!(output.expect_screen().starts_with("INTERRUPTED"), "{}", output.stdout);
    let merged = summary(&fixture.only_run());
    let states: Vec<_> = merged.shards.iter().map(|shard| shard.state).collect();
    assert_eq!(states, [ShardState::Partial; 3]);
}

/// They may share a file system, where each replaced file costs metadata operations.
#[test]
fn shards_of_a_large_run_seldom_replace_files() {
    let fixture = Fixture::with(FAST);
    let load = ["minimal", "--stages", "@600:60s", "--shard", "0/2000", "--run-id", "large"];
    let child = fixture.start(&load);
    let folder = fixture.folder.path().join("runs/large/shard-00000-of-02000");
    assert!(wait_until(|| folder.join("counts.bin").exists()));
    let inodes = || {
        ["counts.bin", "progress.json"].map(|name| fs::metadata(folder.join(name)).unwrap().ino())
    };
    let elapsed_s = || {
        let told = fs::read(folder.join("progress.json")).unwrap();
        read_shard_progress(&told).map_or(0.0, |told| told.elapsed_s)
    };
    let (before, began_s) = (inodes(), elapsed_s());
    assert!(wait_until(|| elapsed_s() > began_s + 1.5));
    assert_eq!(inodes(), before);
    kill(pid(&child), Signal::SIGINT).unwrap();
    ProcessOutput::from(child.wait_with_output().unwrap()).expect(130);
    assert_eq!(status(&folder).state, ShardState::Partial);
}

/// The start that shard 0 writes once all are ready is an hour off for a shard with such a clock.
#[test]
#[ignore = "needs libfaketime"]
fn a_clock_an_hour_off_is_found_at_a_common_start_too() {
    for (wrong, words) in [("-1h", "ahead by this host's clock"), ("+1h", "sent nothing")] {
        let fixture = Fixture::with(FAST);
        let ready = ["--start-at", "ready", "--start-timeout", "20s"];
        let right = [("PLIMSOLL_SHARD_INDEX", "0"), ("PLIMSOLL_SHARD_COUNT", "2")];
        let shards = [shard(&fixture, &right, &ready), shard(&fixture, &with_clock(wrong), &ready)];
        let [right, other] =
            shards.map(|child| ProcessOutput::from(child.wait_with_output().unwrap()));
        right.expect(0);
        let other = other.expect(3).stderr;
        assert!(other.contains(words), "{wrong}: {other}");
        let merged = fixture.plimsoll(&["merge", "runs/both", "--expect", "2"]).expect(3).stdout;
        let said = merged.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("INVALID: PL109: 1 of 2 shards completed") && said.contains("shard 1/2"),
            "{wrong}: {merged}"
        );
    }
}

/// The blocks of the open stage of a comparison, and the targets on which each block ran.
fn open_blocks(run: &Path) -> Vec<(u64, [bool; 2])> {
    let file = fs::read(run.join("pairs.bin")).unwrap();
    let blocks = read_pairs(&mut file.as_slice()).unwrap().blocks.into_iter();
    blocks
        .filter(|block| block.stage.index() == 0)
        .map(|block| (block.index, [0, 1].map(|target: usize| block.turns[target].is_some())))
        .collect()
}

/// Compares the mock with itself, all of the load or a part of it.
fn compare(fixture: &Fixture, more: &[&str]) -> ProcessOutput {
    let url = fixture.target();
    let targets = [format!("a={url}"), format!("b={url},model=other")];
    let fixed = ["versus", "--target", &targets[0], "--target", &targets[1], "--run-id", "pairs"];
    let load = ["--stages", "@25:4s,3:2s", "-q", "--allow-invalid"];
    fixture.plimsoll(&[&fixed[..], &load, more].concat())
}

/// Requests at the mock with an id of the run: each id, and the hash of its prompt.
fn received(fixture: &Fixture, ids: &BTreeSet<String>) -> BTreeMap<String, u64> {
    let log = fixture.mock.take_log().into_iter();
    let log = log.filter_map(|record| Some((record.request_id?, record.prompt_hash)));
    log.filter(|record| ids.contains(&record.0)).collect()
}

#[test]
fn a_comparison_of_shards_has_the_pairs_of_one() {
    let [one, two, parts] = [(); 3].map(|()| Fixture::with("{log: memory}"));
    compare(&one, &[]).expect(0);
    compare(&two, &["--processes", "2"]).expect(0);
    let soon = in_six_seconds();
    std::thread::scope(|threads| {
        for shard in ["0/2", "1/2"] {
            let (parts, soon) = (&parts, &soon);
            let part = ["--shard", shard, "--out", "shards", "--start-at", soon];
            threads.spawn(move || compare(parts, &part).expect(0));
        }
    });
    parts.plimsoll(&["merge", "shards/pairs", "--expect", "2", "--allow-invalid"]).expect(0);
    let whole = one.only_run();
    let expected = open_blocks(&whole);
    // 25 a second for 4 s, a third of it with each target alone.
    assert!((60..=100).contains(&expected.len()), "{} blocks", expected.len());
    assert!(expected.iter().all(|block| block.1 == [true; 2]), "{expected:?}");
    let of_one = received(&one, &ids(&whole));
    for fixture in [&two, &parts] {
        let run = fixture.only_run();
        assert_eq!(open_blocks(&run), expected, "{}", run.display());
        let text = fs::read(run.join("versus.json")).unwrap();
        let versus: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let recorded = versus["blocks"]["recorded"].as_u64().unwrap();
        assert!(recorded > 40 && versus["differences"].is_array(), "{}", versus["blocks"]);
        assert!(run.join("report.html").exists() && run.join("versus.csv").exists());
        // By the mock's log: the same ids with the same texts.
        let received = received(fixture, &ids(&run));
        let common = of_one.iter().filter(|sent| received.get(sent.0) == Some(sent.1)).count();
        let known = of_one.keys().filter(|id| received.contains_key(*id)).count();
        assert!(common >= 2 * expected.len() && common == known, "{common} of {known}");
    }
}

#[test]
fn a_merge_that_cannot_be_written_is_printed_and_can_be_repeated() {
    let fixture = Fixture::with(FAST);
    fixture.run(&["minimal", "--stages", "@40:1s", "--processes", "2"]).expect(0);
    let shards = fixture.only_run().join("shards").display().to_string();
    fs::write(fixture.folder.path().join("taken"), "").unwrap();
    let merge = ["merge", &shards, "--expect", "2", "--allow-invalid", "--out"];
    let failed = fixture.plimsoll(&[&merge[..], &["taken/runs"]].concat()).expect(3);
    assert!(failed.stdout.contains("40 requests"), "{}", failed.stdout);
    assert!(failed.stderr.contains("merge them again"), "{}", failed.stderr);
    fixture.plimsoll(&[&merge[..], &["elsewhere"]].concat()).expect(0);
    let absent = fixture.plimsoll(&["merge", "nowhere"]).expect(2).stderr;
    assert!(absent.contains("no folder nowhere"), "{absent}");
}
