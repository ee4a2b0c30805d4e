//! A shard that is killed between its last row and its last file. The next file is a pipe without a
//! reader, so the shard blocks as it would on a disk that does not respond.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use plimsoll_metrics::ShardState;
use plimsoll_run_files::read_counts;
use serde_json::Value;

use crate::processes::{folders, ids, pid, shard};
use crate::support::{Fixture, ProcessOutput, summary, wait_until};

#[test]
fn a_shard_that_is_killed_while_it_writes_its_files_has_sent_and_counted_everything() {
    for (file, before) in [
        ("summary.json", "counts.bin"),
        ("timeline.json", "metrics.prom"),
        ("shard.json", "profile.yaml"),
    ] {
        is_killed_before(file, before);
    }
}

fn is_killed_before(file: &str, before: &str) {
    let fixture = Fixture::with("{log: memory}");
    let of = |index| [("PLIMSOLL_SHARD_INDEX", index), ("PLIMSOLL_SHARD_COUNT", "2")];
    let [first, second] =
        ["0", "1"].map(|index| shard(&fixture, &of(index), &["--start-at", "ready+1s"]));
    let run = fixture.folder.path().join("runs/both");
    let folder = run.join("shard-00001-of-00002");
    assert!(wait_until(|| folder.join("ready.json").exists()));
    mkfifo(&folder.join(format!(".{file}.new")), Mode::S_IRWXU).unwrap();
    ProcessOutput::from(first.wait_with_output().unwrap()).expect(0);
    assert!(wait_until(|| folder.join(before).exists() && has_counted_all(&folder)), "{before}");
    kill(pid(&second), Signal::SIGKILL).unwrap();
    second.wait_with_output().unwrap();
    assert!(!folder.join(file).exists(), "{file} is there");

    let merged = fixture.plimsoll(&["merge", "runs/both", "--expect", "2", "--out", "whole"]);
    let merged = merged.expect(3);
    let said = merged.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let lost = "1 of 2 shards completed: shard 1/2 sent its whole load, but not all of its files are there";
    assert!(said.contains(lost), "{file}: {}", merged.stdout);
    let whole = folders(&fixture.folder.path().join("whole")).remove(0);
    let result = summary(&whole);
    let states: Vec<_> = result.shards.iter().map(|part| part.state).collect();
    assert_eq!(states, [ShardState::Done, ShardState::Partial], "{file}");
    // By the mock's log: every request of both, each with its row, beside the two probes.
    let log = fixture.mock.take_log();
    let answered = log.iter().filter_map(|record| record.request_id.clone());
    let rows = ids(&whole);
    assert_eq!(answered.filter(|id| rows.contains(id.as_str())).count(), 60, "{file}");
    assert_eq!((rows.len(), log.len()), (60, 62), "{file}");
    let counted = result.results.accounting();
    assert_eq!((counted.scheduled, counted.completed), (60, 60), "{file}");
    assert_eq!(result.shards[1].scheduled, ids(&folder).len() as u64, "{file}");
}

/// Whether the counts of a shard are its last ones.
fn has_counted_all(folder: &Path) -> bool {
    let plan: Value = serde_json::from_slice(&fs::read(folder.join("plan.json")).unwrap()).unwrap();
    let version = plan["metadata"]["run"]["tool_version"].as_str().unwrap();
    let counts = fs::read(folder.join("counts.bin")).unwrap_or_default();
    read_counts(&counts, version).is_ok_and(|counts| counts.complete)
}
