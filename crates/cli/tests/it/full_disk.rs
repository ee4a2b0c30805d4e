//! A disk that fills up during the run.

use std::process::Command;

use crate::support::{FAST, Fixture, attempt};

/// The rows fill a disk of 3 MiB; the summary has its space. The disk is a `tmpfs` in a namespace
/// of its own; where that is not allowed, only the unit test of the reservation is left.
#[test]
fn a_full_disk_does_not_lose_the_summary() {
    let fixture = Fixture::with(FAST);
    let (folder, target) = (fixture.folder.path(), fixture.target());
    std::fs::create_dir(folder.join("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=3m tmpfs disk";
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script]).current_dir(folder).output()
    };
    if !unshared(mount).is_ok_and(|output| output.status.success()) {
        return;
    }
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    // One row has about 700 bytes, so 6,000 of them do not fit.
    let script = format!(
        "{mount} && {{ {binary} run minimal --target {target} --key any -q --allow-invalid \
         --out disk --stages @2000:3s; echo ended $?; ls -s disk/*; cp disk/*/* .; }}"
    );
    // A host without time for all rows leaves some out, and the disk may then not fill up.
    attempt(4, || {
        let output = unshared(&script).unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let summary = crate::support::summary(folder);
        assert!(summary.results.accounting().balanced());
        assert!(summary.results.total.counters.completed > 100, "{stdout} {stderr}");
        for file in ["report.txt", "report.csv", "metrics.prom"] {
            assert!(folder.join(file).exists(), "{file}: {stdout} {stderr}");
        }
        let is_full = summary.findings.iter().any(|finding| finding.code == 105);
        if is_full { Ok(()) } else { Err(format!("the disk was not full: {stdout} {stderr}")) }
    });
    // A disk that is full already is an error before any request.
    let sent = fixture.mock.stats().requests;
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs disk && {{ {binary} run minimal --target {target} --key any \
         -q --out disk; echo ended $?; ls -A disk; }}"
    );
    let output = unshared(&script).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("left for the results"), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ended 3");
    assert_eq!(fixture.mock.stats().requests, sent);
}
