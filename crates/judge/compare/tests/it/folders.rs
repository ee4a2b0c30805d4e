//! Paths that are not run folders.

use std::fs;

use plimsoll_compare::{CompareError, StoredRun};
use plimsoll_run_files::summary_json;

use crate::support::{PLAIN, plan, run};

#[test]
fn what_is_no_run_gets_one_clear_message() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let whole = summary_json(&run(1, PLAIN).summary).unwrap();
    write("torn/summary.json", &whole[..whole.len() / 2]);
    write("later/summary.json", r#"{"schema": "plimsoll.summary/99"}"#);
    write("plan/summary.json", &whole);
    write("plan/plan.json", "{\"plan\": ");
    write("killed/plan.json", "{}");
    write("suite/suite.json", "{}");
    write("text/summary.json/x", "a folder in place of the file");
    for (name, is_usage, says) in [
        ("absent", true, "is not a run folder"),
        (".", true, "or all runs in this folder as"),
        ("suite", true, "--against"),
        ("killed", false, "did not finish"),
        ("torn", false, "torn/summary.json"),
        ("later", false, "plimsoll.summary/99"),
        ("plan", false, "plan/plan.json"),
        ("text", false, "cannot read"),
    ] {
        let error = StoredRun::read(&folder.path().join(name)).unwrap_err();
        assert_eq!(error.is_usage(), is_usage, "{error}");
        let message = error.to_string();
        assert!(message.contains(says) && !message.contains('\n'), "{name}: {message}");
    }
    assert!(matches!(StoredRun::read(&folder.path().join("killed")), Err(CompareError::Killed(_))));
}

#[test]
fn a_run_is_read_with_its_plan_or_without() {
    let folder = tempfile::tempdir().unwrap();
    let stored = run(1, PLAIN);
    fs::write(folder.path().join("summary.json"), summary_json(&stored.summary).unwrap()).unwrap();
    let alone = StoredRun::read(folder.path()).unwrap();
    assert_eq!((alone.plan_hash(), alone.summary == stored.summary), (None, true));
    let mut plan = plan();
    plan["gate"] = serde_json::json!({"ttft.p99": "10%"});
    let file = serde_json::json!({"schema": "plimsoll.plan/1", "plan": plan, "metadata": {}});
    fs::write(folder.path().join("plan.json"), file.to_string()).unwrap();
    for path in [folder.path().to_owned(), folder.path().join("summary.json")] {
        let whole = StoredRun::read(&path).unwrap();
        assert_eq!(whole.plan_hash(), stored.plan_hash());
        assert_eq!(whole.gates, [("ttft.p99".to_owned(), "10%".to_owned())]);
    }
}
