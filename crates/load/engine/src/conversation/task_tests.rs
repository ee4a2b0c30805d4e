//! Tasks of agents in virtual time. All times are milliseconds after the run's start.

use plimsoll_measure::{Nanos, TaskCounts, TaskEnd, TaskPart, TaskSample};

use crate::control::Control;
use crate::simulation_tests::harness::{Harness, Simulated, at, millis, simulate, times};
use crate::simulation_tests::{Reply, ScriptedTarget, respond_after};

/// A human decides on `risky`, after two seconds.
const AGENT: &str = "
content: {mode: pool, prompts: [go]}
max_tokens: 8
agent: {approve: {tools: [risky], think_time: 2s}}
";

/// An answer that calls `safe` and then `risky`.
const CALLS: &str = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"safe","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"risky","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
const RESULT: &str = r#"{"result":{"content":[{"type":"text","text":"r"}]}}"#;
const TOOL_ERROR: &str = r#"{"result":{"content":[],"isError":true}}"#;
const ASKED: &str = r#"{"id":"h1","state":"pending"}"#;
const APPROVED: &str = r#"{"id":"h1","state":"approved"}"#;

fn after(ms: u64, body: &'static str) -> Reply {
    Reply::BodyAfter { after: Nanos::from_millis(ms), body }
}

/// A target that lets a task have all its requests.
fn target() -> ScriptedTarget {
    let script = [
        after(20, CALLS),
        after(5, RESULT),
        after(3, ASKED),
        after(4, APPROVED),
        after(6, TOOL_ERROR),
        respond_after(30),
    ];
    ScriptedTarget::script(script, Reply::Hang)
}

fn the_task(run: &Simulated) -> TaskSample {
    let [task] = run.agent_tasks[..] else { panic!("{} tasks", run.agent_tasks.len()) };
    task
}

/// Time for chat, tools and approvals.
fn parts(task: &TaskSample) -> [u64; TaskPart::COUNT] {
    task.times.map(millis)
}

#[test]
fn the_parts_of_a_task_add_up_to_its_loop_time() {
    let run = simulate(&format!("{AGENT}stages: '1:100ms'\ndrain: 5s\n"), target());
    let expected = [
        (0, 20),
        (20, 25),
        (25, 28),
        // The human thinks before the decision.
        (2_028, 2_032),
        (2_032, 2_038),
        (2_038, 2_068),
    ];
    assert_eq!(times(&run.samples), expected.map(|(start, end)| (start, Some(start), Some(end))));
    let scenarios: Vec<_> = run.samples.iter().map(|sample| sample.scenario.0).collect();
    assert_eq!(scenarios, [0, 1, 2, 2, 1, 0], "each kind of request is counted apart");
    let task = the_task(&run);
    assert_eq!(parts(&task), [20 + 30, 5 + 6, 3 + 2_004]);
    assert_eq!((millis(task.loop_time()), task.finished), (2_068, at(2_068)));
    assert_eq!((task.loop_generator(), task.first_token), (Nanos::ZERO, None));
    let counts = TaskCounts {
        steps: 2,
        tool_calls: 2,
        tool_errors: 1,
        approvals: 1,
        approved: 1,
        rejected: 0,
    };
    assert_eq!((task.end, task.failed_in, task.counts), (TaskEnd::Done, None, counts));
    assert_eq!(run.output.conversations.finished, 1);
    // It went on in the drain time, and the run was over with it.
    assert!(run.end >= at(2_068) && run.end <= at(2_070), "{:?}", run.end);
}

#[test]
fn a_task_that_the_end_of_the_drain_time_cuts_is_unfinished() {
    let run = simulate(&format!("{AGENT}stages: '1:100ms'\ndrain: 1s\n"), target());
    let task = the_task(&run);
    assert_eq!((run.samples.len(), task.end), (3, TaskEnd::Unfinished));
    assert_eq!((parts(&task), task.finished), ([20, 5, 3], at(28)));
    assert_eq!(run.output.conversations.ended_early, 1);
}

#[test]
fn an_interrupt_ends_a_task_between_its_requests() {
    let harness = Harness::new(&format!("{AGENT}stages: '1:10s'\ndrain: 60s\n"), target());
    let control = Control::new();
    let (worker, handle) = (std::rc::Rc::clone(&harness.worker), control.clone());
    let run = {
        let interrupt = async move {
            worker.timer.sleep_until(at(500)).await;
            handle.interrupt();
        };
        harness.run(async { drop(tokio::task::spawn_local(interrupt)) });
        harness.run_load(&control)
    };
    let task = the_task(&run);
    assert_eq!((run.samples.len(), task.end, task.counts.approvals), (3, TaskEnd::Unfinished, 1));
    assert!(run.end < at(3_000), "{:?}", run.end);
}

#[test]
fn a_request_that_does_not_complete_ends_the_task_where_it_is() {
    let rejected = Reply::Respond { after: Nanos::from_millis(9), status: 404 };
    for (script, part, expected) in [
        (vec![rejected], TaskPart::Chat, [9, 0, 0]),
        (vec![after(20, CALLS), rejected], TaskPart::Tools, [20, 9, 0]),
        (vec![after(20, CALLS), after(5, RESULT), rejected], TaskPart::Approvals, [20, 5, 9]),
        // Whole, and of no use.
        (vec![after(20, CALLS), after(5, RESULT), after(3, "{}")], TaskPart::Approvals, [20, 5, 3]),
    ] {
        let target = ScriptedTarget::script(script, Reply::Hang);
        let run = simulate(&format!("{AGENT}stages: '@10:100ms'\ndrain: 5s\n"), target);
        let task = the_task(&run);
        assert_eq!((task.end, task.failed_in), (TaskEnd::Failed, Some(part)));
        assert_eq!(parts(&task), expected);
    }
}

#[test]
fn the_first_token_of_a_task_is_that_of_its_first_answer() {
    let stream =
        Reply::Stream { first: Nanos::from_millis(20), gap: Nanos::from_millis(5), events: 4 };
    let target = ScriptedTarget::always(stream);
    let run = simulate(&format!("{AGENT}stream: true\nstages: '@10:100ms'\ndrain: 5s\n"), target);
    let task = the_task(&run);
    assert_eq!((task.first_token.map(millis), parts(&task)), (Some(20), [35, 0, 0]));
}

/// With one slot, the second task begins while the first has its tool called, and gets the slot
/// before the first asks for its approval.
#[test]
fn a_wait_for_a_slot_is_part_of_a_task() {
    let script = [after(20, CALLS), after(90, RESULT), respond_after(10), after(3, ASKED)];
    let profile = format!("{AGENT}stages: '@10:200ms'\nmax_in_flight: 1\ndrain: 1s\n");
    let run = simulate(&profile, ScriptedTarget::script(script, Reply::Hang));
    let [second, first] = run.agent_tasks[..] else { panic!("{:?}", run.agent_tasks) };
    assert_eq!((second.end, second.intended, parts(&second)), (TaskEnd::Done, at(100), [20, 0, 0]));
    assert_eq!((first.end, parts(&first)), (TaskEnd::Unfinished, [20, 90, 10 + 3]));
}
