//! `timeline.json` of a run: what happened when.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_metrics::{Counters, RunTimeline, TimelineGroup, TimelineInterval};
use plimsoll_run_files::read_timeline;

use crate::support::{Fixture, attempt, command, pause, wait_until};

fn timeline(fixture: &Fixture) -> RunTimeline {
    let run = fixture.runs().pop().unwrap();
    read_timeline(&fs::read(run.join("timeline.json")).unwrap()).unwrap()
}

fn groups(timeline: &RunTimeline) -> impl Iterator<Item = &TimelineGroup> {
    timeline.intervals.iter().flat_map(|interval| &interval.groups)
}

#[test]
fn its_counters_add_up_to_those_of_the_summary() {
    let fixture = Fixture::with("other_models: {ttft: 40ms, gap: 2ms, output: 4}");
    // A warm-up, stages of both models, and a limit that leaves requests waiting.
    let stages = "w2:400ms,4:900ms,@80:1200ms";
    fixture.run(&["minimal", "--stages", stages, "--set", "max_in_flight=2"]).expect(0);
    let (summary, timeline) = (fixture.summary(), timeline(&fixture));
    for stage in &summary.results.by_stage {
        let name = stage.stage.as_deref().unwrap();
        let mut counters = Counters::default();
        let of_stage = || groups(&timeline).filter(|group| group.stage == name);
        of_stage().for_each(|group| counters.merge(&group.counters));
        assert_eq!(counters, stage.counters, "{name}");
        let sum = |of: fn(&TimelineGroup) -> u64| of_stage().map(of).sum::<u64>();
        assert_eq!(sum(|group| group.due), stage.counters.scheduled, "{name}");
        assert_eq!(sum(|group| group.sent), counters.scheduled - counters.never_sent, "{name}");
        let times = |key: &str| {
            of_stage()
                .filter_map(|group| group.times.get(key))
                .map(|times| times.count)
                .sum::<u64>()
        };
        for key in ["response_time_ms", "service_time_ms", "ttft_ms", "itl_ms"] {
            let all: u64 = stage.distributions.get(key).map_or(0, |all| all.count);
            assert_eq!(all, times(key), "{name} {key}");
        }
    }
    assert_eq!(timeline.intervals.last().map(|last| last.in_flight.clone()), Some(vec![0]));
}

#[expect(clippy::disallowed_methods, reason = "a test compares with the wall clock of the file")]
fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// A mock in a process of its own stands still for more than a second.
#[test]
fn a_pause_of_the_target_is_in_the_right_seconds() {
    attempt(3, || {
        let fixture = Fixture::with("{}");
        let mut mock = command(fixture.folder.path(), &["mock", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut greeting = String::new();
        BufReader::new(mock.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
        let target = greeting.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        let args = ["run", "minimal", "--target", target, "--key", "any", "-q", "--allow-invalid"];
        let args = [&args[..], &["--stages", "@50:4s"]].concat();
        let mut load = command(fixture.folder.path(), &args).stdout(Stdio::null()).spawn().unwrap();
        // The rows begin with the load.
        assert!(wait_until(|| fixture.runs().first().is_some_and(|run: &std::path::PathBuf| {
            fs::metadata(run.join("results.jsonl")).is_ok_and(|rows| rows.len() > 0)
        })));
        let pid = Pid::from_raw(mock.id().try_into().unwrap());
        let wait = |seconds: f64| {
            let begun = unix_s();
            while unix_s() < begun + seconds {
                pause();
            }
        };
        wait(0.4);
        kill(pid, Signal::SIGSTOP).unwrap();
        let stopped = unix_s();
        wait(1.8);
        kill(pid, Signal::SIGCONT).unwrap();
        let went_on = unix_s();
        load.wait().unwrap();
        mock.kill().unwrap();
        mock.wait().unwrap();
        let timeline = timeline(&fixture);
        let started = timeline.started_unix_ns as f64 / 1e9;
        shows_pause(&timeline, stopped - started, went_on - started)
    });
}

/// Whether no request ended during the pause of the target, and the long times are where it
/// continued.
fn shows_pause(timeline: &RunTimeline, stopped: f64, went_on: f64) -> Result<(), String> {
    let ended = |interval: &TimelineInterval| {
        interval.groups.iter().map(|group| group.counters.completed).sum::<u64>()
    };
    let longest = |interval: &TimelineInterval| {
        let max = |group: &TimelineGroup| group.times.get("service_time_ms")?.max;
        interval.groups.iter().filter_map(max).fold(0.0, f64::max)
    };
    let within = |at: f64| {
        let end = |interval: &TimelineInterval| interval.start_s + interval.length_s;
        timeline.intervals.iter().find(|interval| at < end(interval)).unwrap()
    };
    let told = format!("{stopped} to {went_on}: {:?}", timeline.intervals);
    // A second that lies in the pause, but for its edges.
    let still: Vec<_> = timeline
        .intervals
        .iter()
        .filter(|i| i.start_s > stopped + 0.02 && i.start_s + i.length_s < went_on - 0.02)
        .collect();
    for interval in &still {
        let sent: u64 = interval.groups.iter().map(|group| group.sent).sum();
        let open = interval.in_flight[0];
        if ended(interval) != 0 || sent == 0 || open < sent {
            return Err(format!("{} ended, {sent} sent, {open} open: {told}", ended(interval)));
        }
    }
    // Waiting requests ended when the target continued, or just after.
    let (at, after) = (longest(within(went_on)), longest(within(went_on + 0.2)));
    if at.max(after) < 1_000.0 * (went_on - stopped) - 100.0 {
        return Err(format!("longest {at} and {after}: {told}"));
    }
    let before = timeline.intervals.iter().filter(|i| i.start_s + i.length_s < stopped);
    if still.is_empty() || before.map(longest).any(|ms| ms > 500.0) {
        return Err(told);
    }
    Ok(())
}
