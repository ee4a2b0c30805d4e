//! `plimsoll doctor`, `plimsoll completions` and `plimsoll man`.

use crate::support::{FAST, Fixture};

#[test]
fn the_doctor_checks_everything_and_prints_fixes() {
    let fixture = Fixture::with(FAST);
    let output = fixture.plimsoll(&["doctor"]);
    let bad = output.stdout.lines().any(|line| line.starts_with("bad"));
    // This host may be unfit. The exit code is 3 exactly then.
    let output = output.expect(if bad { 3 } else { 0 });
    for subject in [
        "open files",
        "local ports",
        "TIME_WAIT",
        "backlog",
        "kernel",
        "processors",
        "quota",
        "governor",
        "load average",
        "steal",
        "memory",
        "timer lateness",
        "clock",
        "loopback",
        "build",
    ] {
        assert!(output.stdout.contains(subject), "{subject} in:\n{}", output.stdout);
    }
    let lines: Vec<_> = output.stdout.lines().collect();
    for pair in
        lines.windows(2).filter(|pair| pair[0].starts_with("warn") || pair[0].starts_with("bad"))
    {
        assert!(pair[1].contains("fix: "), "{pair:?}");
    }
}

#[test]
fn manual_pages_have_the_flags_of_their_command() {
    let fixture = Fixture::with(FAST);
    let page = fixture.plimsoll(&["man", "run"]).expect(0).stdout;
    assert!(page.contains(".TH plimsoll-run 1"), "{page}");
    assert!(page.contains(r"\fB\-\-stages\fR"), "{page}");
    let refused = fixture.plimsoll(&["man", "rum"]).expect(2).stderr;
    assert!(refused.contains("`rum` is not a command"), "{refused}");
}
