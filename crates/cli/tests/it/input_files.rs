//! Malformed files: every reader reports an error, and neither hangs nor fills the memory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{FAST, Fixture, command};

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The files of a run that commands read of its folder.
const OF_A_RUN: [(&str, &[&str]); 3] = [
    ("summary.json", &["report", "RUN"]),
    ("summary.json", &["report", "RUN", "--html"]),
    ("summary.json", &["compare", "RUN", "--new", "RUN"]),
];

/// Files named by a user.
const NAMED: [&[&str]; 10] = [
    &["run", "FILE", "--target", "http://127.0.0.1:1"],
    &["profile", "check", "FILE"],
    &["mock", "--config", "FILE"],
    &["gateway", "--config", "FILE"],
    &["join", "RUN", "--log", "FILE"],
    &["why", "RUN", "--join", "FILE"],
    &["http", "http://127.0.0.1:1", "--body", "@FILE"],
    &["http", "--urls", "FILE"],
    &["llm", "http://127.0.0.1:1", "--model", "m", "--prompts", "FILE"],
    &["run", "minimal", "--target", "https://127.0.0.1:1", "--ca-file", "FILE"],
];

#[test]
fn a_pipe_and_a_device_are_refused_by_whoever_would_read_them() {
    let fixture = Fixture::with(FAST);
    fixture.run(&["minimal", "--stages", "1:300ms"]).expect(0);
    let run = fixture.only_run();
    let folder = fixture.folder.path();
    make_pipe(&folder.join("pipe"));
    symlink("/dev/zero", folder.join("zeros")).unwrap();
    for name in ["pipe", "zeros"] {
        for args in NAMED {
            refused(folder, args, &run, name);
        }
    }
    for (file, args) in OF_A_RUN {
        let (path, kept) = (run.join(file), run.join("kept"));
        fs::rename(&path, &kept).unwrap();
        make_pipe(&path);
        let output = ended(folder, args, &run, "");
        assert!(output.contains("it is a pipe"), "{args:?}: {output}");
        fs::rename(&kept, &path).unwrap();
    }
}

fn refused(folder: &Path, args: &[&str], run: &Path, name: &str) {
    let output = ended(folder, args, run, name);
    let what = if name == "pipe" { "a pipe" } else { "a device" };
    assert!(output.contains(&format!("it is {what}")), "{args:?}: {output}");
}

/// The error output of a command that must fail, within ten seconds and 500 MB.
fn ended(folder: &Path, args: &[&str], run: &Path, name: &str) -> String {
    let args: Vec<String> = args
        .iter()
        .map(|arg| arg.replace("FILE", name).replace("RUN", &run.to_string_lossy()))
        .collect();
    let own: Vec<&str> = args.iter().map(String::as_str).collect();
    let program = command(folder, &own);
    let mut bounded = Command::new("timeout");
    bounded.args(["10", "sh", "-c", "ulimit -v 2000000; exec \"$@\"", "sh"]);
    bounded.arg(program.get_program()).args(program.get_args());
    bounded.current_dir(folder).stdin(Stdio::null());
    let output = bounded.output().unwrap();
    let code = output.status.code();
    assert!(matches!(code, Some(2 | 3)), "{args:?}: {code:?} {output:?}");
    String::from_utf8(output.stderr).unwrap()
}
