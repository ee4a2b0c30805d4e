//! The generator is stopped while it sends load: what it adds to the requests, against what the
//! mock says. The load runs in a child process, which is this test binary again.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use plimsoll_measure::{Nanos, Sample};
use plimsoll_mock::Mock;

use crate::support::{CHAT, mock, plan, run, url};

/// For how long the child is stopped.
const PAUSE: Duration = Duration::from_millis(150);
const TARGET: &str = "PLIMSOLL_TEST_TARGET";

/// A request of the child, in milliseconds: its measured response time, what the generator added,
/// and how much of that to the dispatch.
#[derive(Clone, Copy, Debug)]
struct Request {
    response: f64,
    added: f64,
    dispatch: f64,
}

fn fault(sample: &Sample) -> Option<String> {
    let measured = sample.timeline.response_time()?;
    let without = sample.timeline_without_generator().response_time()?;
    let ms = Nanos::as_millis_f64;
    let dispatch = ms(sample.pacing_lag());
    Some(format!("request {} {} {dispatch}", ms(measured), ms(measured.saturating_sub(without))))
}

/// The load of the child: not a test of its own.
#[test]
fn load_of_a_child() {
    let Ok(target) = std::env::var(TARGET) else { return };
    println!("begin");
    let ran = run(plan(&target, &format!("{CHAT}stages: '@200:2s'\nworkers: 1\n")));
    ran.samples.iter().filter_map(fault).for_each(|line| println!("{line}"));
    for window in &ran.result.health.disturbed_windows {
        println!("window {} {}", window.start_s, window.length_s);
    }
    println!("reads {:?}", ran.result.health.kernel_timestamps);
}

fn spawn(mock: &Mock) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pauses::load_of_a_child", "--nocapture"])
        .env(TARGET, url(mock))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// The lines of the child, which is stopped once.
fn stopped_once(mock: &Mock) -> Vec<String> {
    let mut child = spawn(mock);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with("begin")));
    thread::sleep(Duration::from_millis(700));
    signal(&child, "STOP");
    thread::sleep(PAUSE);
    signal(&child, "CONT");
    let lines = lines.collect();
    assert!(child.wait().unwrap().success());
    lines
}

fn numbers(lines: &[String], word: &str) -> Vec<Vec<f64>> {
    lines
        .iter()
        .filter_map(|line: &String| {
            let rest = line.strip_prefix(word)?.split_whitespace();
            rest.map(|number| number.parse().ok()).collect()
        })
        .collect()
}

#[test]
fn a_generator_that_was_stopped_knows_what_it_added() {
    let mock = mock("ttft: {constant: 20ms}");
    let lines = stopped_once(&mock);
    let requests: Vec<_> = numbers(&lines, "request")
        .iter()
        .map(|n| Request { response: n[0], added: n[1], dispatch: n[2] })
        .collect();
    assert_eq!(requests.len(), 400);
    let pause = PAUSE.as_secs_f64() * 1e3;
    // About 30 requests of 5 ms each were due in the pause, and sent at its end.
    let late: Vec<_> = requests.iter().filter(|request| request.dispatch > 10.0).collect();
    assert!((20..200).contains(&late.len()), "{} late", late.len());
    let latest = late.iter().map(|request| request.dispatch).fold(0.0, f64::max);
    assert!((pause * 0.8..pause * 4.0).contains(&latest), "{latest} ms");
    // Without its part, they took no longer than the others: how much their burst queued in the
    // target is not known.
    let mut without: Vec<_> = late.iter().map(|request| request.response - request.added).collect();
    without.sort_unstable_by(f64::total_cmp);
    let median = without[without.len() / 2];
    assert!((0.0..60.0).contains(&median), "{median} ms");
    // The longest window is the pause.
    let windows = numbers(&lines, "window");
    let longest = windows.iter().max_by(|a, b| f64::total_cmp(&a[1], &b[1])).unwrap();
    assert!((0.3..2.0).contains(&longest[0]), "{longest:?}");
    assert!((pause * 0.8..pause * 4.0).contains(&(longest[1] * 1e3)), "{longest:?}");
    assert!(lines.contains(&"reads Some(true)".to_owned()));
}
