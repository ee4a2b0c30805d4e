//! A process that is killed while it writes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_gateway_audit::{Audit, Offered, Settings, Target};

use crate::support::{id_of, row};

/// Rows that may be lost: as many as the queue holds.
const QUEUE: u32 = 512;
/// The test's own process as the child: it carries the path of the file.
const FILE: &str = "PLIMSOLL_AUDIT_TEST_FILE";

/// Not a test of its own: the child of the next one. Offers numbered rows and says how many, until
/// it is killed.
#[test]
#[ignore = "started by a_kill_loses_no_more_than_the_queue"]
fn child() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let base = Settings::new(Target::File(path.into()));
    let settings = Settings {
        queue: usize::try_from(QUEUE).unwrap(),
        flush: Duration::from_millis(20),
        ..base
    };
    let audit = Audit::open(&settings, |_| ()).unwrap();
    let mut out = std::io::stdout();
    for id in 0_u64.. {
        assert_eq!(audit.offer_blocking(&row(&id.to_string())), Offered::Queued);
        if id % 100 == 99 {
            writeln!(out, "\noffered {}", id + 1).unwrap();
        }
    }
}

#[test]
fn a_kill_loses_no_more_than_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--ignored", "--nocapture"])
        .env(FILE, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let counts = |line: String| line.strip_prefix("offered ")?.parse::<u64>().ok();
    assert!(told.by_ref().filter_map(counts).any(|offered| offered >= 20_000));
    child.kill().unwrap();
    // Its last output is still in the pipe.
    let offered = told.filter_map(counts).last().unwrap_or(20_000);
    child.wait().unwrap();

    let text = std::fs::read_to_string(&path).unwrap();
    let whole = text.rsplit_once('\n').unwrap().0;
    let mut written = 0;
    for line in whole.lines() {
        assert_eq!(id_of(line), written.to_string(), "rows come in order and none is torn");
        assert!(line.starts_with("{\"timestamp\":") && line.ends_with('}'), "{line}");
        written += 1;
    }
    assert!(written + u64::from(QUEUE) >= offered, "{written} of {offered} rows are there");
}
