//! The shards of a run together send the same load as one process: the same requests to the same
//! targets, at the same instants, with the same ids and texts. The tests use virtual time and the
//! target's log.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_measure::{Nanos, Sample, Stripe};
use plimsoll_plan::Plan;

use crate::control::Control;
use crate::simulation_tests::harness::{Harness, Simulated, comparison, plan};
use crate::simulation_tests::{ReceivedRequest, ScriptedTarget, respond_after};

/// Numbers of shards.
const COUNTS: [u64; 5] = [1, 2, 3, 7, 64];

/// Dialogues of one turn and of three, with pauses of random lengths.
const DIALOGUES: &str = "
cache_mode: bust
max_tokens: 8
drain: 5s
scenarios:
  - {name: short, weight: 3, content: {mode: pool, prompts: [one, two, three, four, five, six]}}
  - name: long
    weight: 2
    turns: 3
    think_time: {lognormal: {median: 50ms, p95: 200ms}}
    content: {mode: sized, approx_input_tokens: {mean: 40, stddev: 10}}
";

/// A request that a target received, and its intended conversation.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    at_ns: u64,
    id: String,
    body: String,
}

/// When a turn was to start, of which conversation, on which target.
type Intended = (u64, u64, u16, u16);

/// All that was sent and intended, in the order of time.
#[derive(Debug, Default, PartialEq, Eq)]
struct Load {
    sent: Vec<Sent>,
    intended: Vec<Intended>,
}

impl Load {
    fn add(&mut self, run: Simulated) {
        let received = run.requests.into_iter().map(|request: ReceivedRequest| Sent {
            at_ns: request.at.as_nanos(),
            id: request.id,
            body: request.body,
        });
        self.sent.extend(received);
        self.intended.extend(run.samples.iter().map(|sample: &Sample| {
            let at = sample.timeline.intended.as_nanos();
            (at, sample.conversation.0, sample.turn, sample.target.0)
        }));
    }

    fn instants(&self) -> Vec<u64> {
        self.sent.iter().map(|sent| sent.at_ns).collect()
    }
}

/// Requests that the given number of shards of a plan send together.
fn carried_by(shards: u64, plan: &Plan) -> Load {
    let mut load = Load::default();
    for index in 0..shards {
        let shard = Stripe::new(index, shards).unwrap();
        let plan = Plan { shard, ..plan.clone() };
        let target = ScriptedTarget::always(respond_after(7));
        load.add(Harness::of_plan(plan, target).run_load(&Control::new()));
    }
    load.sent.sort();
    load.intended.sort_unstable();
    load
}

/// Compares all numbers of shards with the undivided load, and returns that.
fn assert_union(plan: &Plan) -> Load {
    let whole = carried_by(1, plan);
    let ids: BTreeSet<_> = whole.sent.iter().map(|sent| &sent.id).collect();
    assert_eq!(ids.len(), whole.sent.len(), "no id twice");
    for count in COUNTS {
        let parts = carried_by(count, plan);
        assert_eq!(parts.sent.len(), whole.sent.len(), "requests of {count} shards");
        for (part, whole) in parts.sent.iter().zip(&whole.sent) {
            assert_eq!(part, whole, "of {count} shards");
        }
        assert_eq!(parts.intended, whole.intended, "of {count} shards");
    }
    whole
}

/// Milliseconds after the run's start, in nanoseconds.
fn ms(millis: impl IntoIterator<Item = u64>) -> Vec<u64> {
    millis.into_iter().map(|ms| Nanos::from_millis(ms).as_u64()).collect()
}

#[test]
fn arrivals_of_shards_are_those_of_one_process() {
    let one_turn = "content: {mode: sized, approx_input_tokens: 20}\nmax_tokens: 8\ndrain: 5s\n";
    let even = plan(&format!("{one_turn}stages: 'w@10:1s,@100:2s'"));
    // By hand: one each 100 ms, then one each 10 ms.
    let expected = ms((0..1_000).step_by(100).chain((1_000..3_000).step_by(10)));
    assert_eq!(assert_union(&even).instants(), expected);
    let random = plan(&format!("{DIALOGUES}arrivals: poisson\nstages: '@20..80:2s,@40:1s'"));
    // 140 arrivals are expected, two in five of three turns.
    assert!((160..400).contains(&assert_union(&random).sent.len()));
}

#[test]
fn a_cap_on_requests_is_divided_with_its_remainder() {
    let one_turn = "content: {mode: sized, approx_input_tokens: 20}\nmax_tokens: 8\ndrain: 5s\n";
    let capped = plan(&format!("{one_turn}max_requests: 53\nstages: '@100:2s'"));
    assert_eq!(assert_union(&capped).instants(), ms((0..530).step_by(10)));
}

#[test]
fn users_of_shards_are_those_of_one_process() {
    let load = assert_union(&plan(&format!("{DIALOGUES}stages: 'w2:500ms,9:1s,4:500ms'")));
    // Nine users with answers of 7 ms and pauses; each begins at once.
    assert_eq!(load.sent.iter().filter(|sent| sent.at_ns == 0).count(), 2);
    assert!(load.sent.len() > 200, "{}", load.sent.len());
}

#[test]
fn arrivals_and_users_in_one_run_are_divided_together() {
    let load = assert_union(&plan(&format!("{DIALOGUES}stages: '@30:1s,5:1s,@60:1s'")));
    let beginning = |ms: u64| Nanos::from_millis(ms).as_u64();
    let first = load.sent.iter().filter(|sent| sent.at_ns == beginning(1_000)).count();
    assert!(first >= 5, "five users begin at once: {first}");
}

#[test]
fn rows_of_a_trace_are_those_of_one_process() {
    for format in ["azure", "mooncake"] {
        let end = if format == "azure" { "csv" } else { "jsonl" };
        let file = format!("builtin:traces/{format}-example.{end}");
        let trace = format!("trace: {{file: '{file}', format: {format}, time_scale: 4}}");
        let load = assert_union(&plan(&format!("{DIALOGUES}{trace}\nstages: '@5:1s,trace:4s'")));
        assert!(load.sent.len() > 20, "{format}: {}", load.sent.len());
    }
}

#[test]
fn a_list_of_prompts_is_sent_once_by_all_shards_together() {
    let folder = tempfile::tempdir().unwrap();
    let prompts: Vec<_> = (0..90).map(|n| format!("prompt number {n:02}.")).collect();
    std::fs::write(folder.path().join("prompts.txt"), prompts.join("\n")).unwrap();
    let load = assert_union(&listed(folder.path()));
    // The line of the file that each request has, in the order of time.
    let lines = load.sent.iter().map(|sent| {
        let found: Vec<_> = prompts.iter().filter(|prompt| sent.body.contains(*prompt)).collect();
        assert_eq!(found.len(), 1, "{}", sent.body);
        found[0]
    });
    assert!(lines.eq(&prompts));
}

/// Sends the prompts of a folder, each once.
fn listed(folder: &Path) -> Plan {
    let file = folder.join("prompts.txt");
    let content = format!("content: {{mode: file, file: '{}', order: file}}", file.display());
    plan(&format!("{content}\nmax_tokens: 8\ndrain: 5s\nstages: '@50:10s'"))
}

#[test]
fn pairs_of_shards_are_those_of_one_process() {
    for (schedule, stages) in [
        ("spread", "@20:3s"),
        ("together", "@20:3s"),
        ("turns", "@30:6s"),
        ("spread", "w3:500ms,7:2s"),
        ("turns", "5:6s"),
    ] {
        let versus = format!("versus: {{schedule: {schedule}, window: 300ms, alone: 100ms}}");
        let plan = comparison(&format!("{DIALOGUES}{versus}\nstages: '{stages}'"), 3);
        let load = assert_union(&plan);
        let on = |target: u16| load.intended.iter().filter(move |turn| turn.3 == target).count();
        assert!(on(0) > 30, "{schedule} {stages}: {}", on(0));
    }
}
