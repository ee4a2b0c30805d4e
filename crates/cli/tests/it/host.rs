//! `plimsoll doctor` and `plimsoll completions`.

use crate::support::{FAST, Fixture};

#[test]
fn the_doctor_looks_at_everything_and_says_what_to_do() {
    let fixture = Fixture::with(FAST);
    let ran = fixture.plimsoll(&["doctor"]);
    let bad = ran.stdout.lines().any(|line| line.starts_with("bad"));
    // The host may be unfit; the code must say so, and only then.
    let ran = ran.expect(if bad { 3 } else { 0 });
    for about in [
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
        assert!(ran.stdout.contains(about), "{about} in:\n{}", ran.stdout);
    }
    let lines: Vec<_> = ran.stdout.lines().collect();
    for pair in
        lines.windows(2).filter(|pair| pair[0].starts_with("warn") || pair[0].starts_with("bad"))
    {
        assert!(pair[1].contains("fix: "), "{pair:?}");
    }
}

#[test]
fn completions_know_the_commands() {
    let fixture = Fixture::with(FAST);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = fixture.plimsoll(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("doctor"), "{shell}");
    }
}
