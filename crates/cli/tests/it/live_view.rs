//! The live view in a pseudo-terminal: keys, sizes, signals, and the terminal afterwards.

use std::fs;

use nix::sys::signal::Signal;
use plimsoll_metrics::RunEnd;

use crate::support::{FAST, Fixture};
use crate::terminal::Terminal;

const LARGE: (u16, u16) = (120, 40);

#[test]
fn keys_work_and_q_ends_the_run_with_a_report() {
    let fixture = Fixture::with(FAST);
    let mut terminal = Terminal::run(&fixture, LARGE, &["--stages", "4:60s"]);
    terminal.wait_for("verdict if it ended now");
    terminal.wait_for("▶ 4:1m");
    assert!(!terminal.is_restored());
    terminal.press("?");
    terminal.wait_for("this help");
    terminal.press("?p");
    terminal.wait_for("PAUSED");
    terminal.wait_without("this help");
    terminal.press("\x1b[A\x1bOPxyzp");
    terminal.wait_without("PAUSED");
    for (size, text) in
        [((60, 20), "outcomes so far"), ((20, 5), "stage 1 of 1"), ((100, 30), "processes")]
    {
        terminal.resize(size);
        terminal.wait_for(text);
    }
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(130));
    terminal.expect_restored();
    let text = terminal.text();
    assert!(text.contains("files: runs/"), "{text}");
    let summary = fixture.summary();
    assert_eq!(summary.metadata.run.ended, RunEnd::Interrupted);
    assert!(summary.results.accounting().balanced());
    assert!(fixture.only_run().join("report.html").exists());
}

#[test]
fn signals_restore_the_terminal() {
    // Responses never come, so that an orderly end would take long.
    let fixture = Fixture::with("other_models: {ttft: 10m}");
    for signals in [1, 2] {
        let mut terminal = Terminal::run(
            &fixture,
            LARGE,
            &["--stages", "4:60s", "--no-probe", "--set", "drain=200ms"],
        );
        terminal.wait_for("▶ 4:1m");
        if signals == 1 {
            terminal.signal(Signal::SIGTERM);
        } else {
            // The byte that a terminal sends.
            terminal.press("\x03");
            terminal.wait_for("press Ctrl-C again");
            terminal.press("\x03");
        }
        assert_eq!(terminal.wait().code(), Some(130), "{signals}");
        terminal.expect_restored();
    }
}

#[test]
fn the_terminal_is_lent_while_the_run_is_suspended() {
    let fixture = Fixture::with(FAST);
    let mut terminal = Terminal::run(&fixture, LARGE, &["--stages", "2:60s"]);
    terminal.wait_for("▶ 2:1m");
    terminal.press("\x1a");
    terminal.wait_until_stopped();
    terminal.expect_restored();
    terminal.signal(Signal::SIGCONT);
    terminal.wait_for("verdict if it ended now");
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(130));
    terminal.expect_restored();
}

#[test]
fn a_terminal_that_is_closed_or_takes_nothing_does_not_stop_the_load() {
    for closes in [true, false] {
        let fixture = Fixture::with(FAST);
        let args = ["--stages", "2:2s", "--ui", "full"];
        let mut terminal = Terminal::run(&fixture, (500, 200), &args);
        fixture.wait_for_requests(20);
        if closes {
            terminal.close();
        }
        // Not read from: the terminal's buffer fills up. The report waits for it, the load did not.
        let path = || fixture.runs().pop().map(|run| run.join("results.jsonl"));
        let rows = || path().and_then(|path| fs::read(path).ok()).map_or(0, |rows| rows.len());
        assert!(crate::support::wait_until(|| rows() > 0), "no rows");
        if closes {
            let code = terminal.wait().code();
            assert!(matches!(code, Some(0 | 3)), "{code:?}");
        } else {
            let code = terminal.wait().code();
            assert!(matches!(code, Some(0 | 3)), "{code:?}");
            terminal.expect_restored();
        }
        let summary = fixture.summary();
        assert_eq!(summary.metadata.run.ended, RunEnd::Complete);
        let accounting = summary.results.accounting();
        assert!(accounting.balanced() && accounting.completed > 20, "{accounting}");
        for file in ["report.txt", "report.html", "timeline.json"] {
            assert!(fixture.only_run().join(file).exists(), "{file}");
        }
    }
}

#[test]
fn a_small_terminal_gets_the_bar_and_its_lines_fit() {
    let fixture = Fixture::with(FAST);
    let mut terminal = Terminal::run(&fixture, (60, 20), &["--stages", "2:2s"]);
    terminal.wait_for("stage 1/1");
    assert!(!terminal.text().contains("verdict if it ended now"));
    terminal.wait();
    terminal.expect_restored();
    // Asked for, the view is shown on the smallest terminal, too.
    let mut terminal = Terminal::run(&fixture, (20, 5), &["--stages", "2:2s", "--ui", "full"]);
    terminal.wait_for("stage 1 of 1");
    terminal.wait();
    terminal.expect_restored();
}
