//! Tests of the suites: in this file the lengths, in those below whole suites on planned hosts.

mod false_verdicts;
mod planned_host;
mod planted;

use super::*;

fn options(short: bool, duration: Option<Nanos>) -> SuiteOptions {
    SuiteOptions {
        exe: "plimsoll".into(),
        short,
        duration,
        folder: ".".into(),
        ..SuiteOptions::default()
    }
}

#[test]
fn the_users_duration_wins_over_short_and_short_over_the_suites_own() {
    for (short, duration, warmup, measured) in [
        (false, None, 2_000, 30_000),
        (true, None, 300, 1_000),
        (true, Some(7_000), 300, 7_000),
        (false, Some(7_000), 2_000, 7_000),
    ] {
        let options = options(short, duration.map(Nanos::from_millis));
        let expected = Length::new(Nanos::from_millis(warmup), Nanos::from_millis(measured));
        assert_eq!(length(&options, 30), expected, "{short} {duration:?}");
    }
    let warmup = Some(Nanos::from_secs(60));
    for short in [true, false] {
        let own = SuiteOptions { warmup, ..options(short, None) };
        assert_eq!(length(&own, 30).warmup, Nanos::from_secs(60), "{short}");
        assert_eq!(comparison_length(&own, 30, 9).warmup, Nanos::from_secs(60), "{short}");
    }
    assert_eq!(passes(&options(false, None), 3, 2), 3);
    assert_eq!(passes(&options(true, None), 3, 2), 2);
}

#[test]
fn only_request_logs_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["audit.jsonl", "suite.json", "process-1.log"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    remove_rows(folder.path());
    let left = std::fs::read_dir(folder.path()).unwrap();
    let mut left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["process-1.log", "suite.json"]);
}
