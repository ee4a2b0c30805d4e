//! Tasks of agents: the lines of `tasks.jsonl`, the report and the screen.

use plimsoll_measure::{
    ConversationKey, Moment, Nanos, ScenarioId, StageId, TargetId, TaskCounts, TaskEnd, TaskPart,
    TaskSample,
};
use plimsoll_metrics::TaskTally;
use plimsoll_report::screen::Rest;
use plimsoll_report::{Style, run_screen, text};
use plimsoll_run_files::{read_summary, rebuild_tasks, write_task_row};
use serde_json::{Value, json};

use crate::support::{health, metadata, summary};

fn task(ms: u64) -> TaskSample {
    let times = [ms, 20, 5].map(Nanos::from_millis);
    let intended = Moment::EPOCH + Nanos::from_secs(2);
    TaskSample {
        stage: StageId(1),
        scenario: ScenarioId(0),
        target: TargetId(0),
        conversation: ConversationKey::arrival(7),
        warmup: false,
        intended,
        finished: intended + times.into_iter().sum(),
        first_token: Some(Nanos::from_micros(1_500)),
        times,
        generator: [Nanos::from_micros(3), Nanos::ZERO, Nanos::ZERO],
        first_token_generator: Nanos::ZERO,
        counts: TaskCounts {
            steps: 3,
            tool_calls: 4,
            tool_errors: 1,
            approvals: 2,
            approved: 1,
            rejected: 1,
        },
        end: TaskEnd::Done,
        failed_in: None,
    }
}

#[test]
fn a_row_says_what_happened_in_its_task() {
    let metadata = metadata();
    let mut out = Vec::new();
    write_task_row(&task(100), "c-1", &metadata, &mut out);
    let failed = TaskSample {
        end: TaskEnd::Failed,
        failed_in: Some(TaskPart::Tools),
        first_token: None,
        warmup: true,
        ..task(100)
    };
    write_task_row(&failed, "c-2", &metadata, &mut out);
    let lines: Vec<Value> = std::str::from_utf8(&out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = json!({
        "conversation": "c-1", "scenario": metadata.scenarios[0], "target": metadata.targets[0].name,
        "stage": metadata.stages[1].name, "warmup": false,
        "intended_unix_ns": metadata.run.started_unix_ns + 2_000_000_000,
        "ended": "done", "steps": 3, "tool_calls": 4, "tool_errors": 1,
        "approvals": 2, "approved": 1, "rejected": 1, "first_token_ms": 1.5,
        "chat_ms": 100.0, "tools_ms": 20.0, "approvals_ms": 5.0, "loop_ms": 125.0,
        "generator_ms": [0.003, 0.0, 0.0],
    });
    assert_eq!(lines[0], expected);
    assert_eq!((&lines[1]["ended"], &lines[1]["failed_in"]), (&json!("failed"), &json!("tools")));
    assert!(lines[1].get("first_token_ms").is_none() && lines[1]["warmup"] == true);
}

#[test]
fn the_tasks_of_a_killed_run_are_those_of_its_rows() {
    let (metadata, mut tally, mut out) = (metadata(), TaskTally::default(), Vec::new());
    let ends = [TaskEnd::Done, TaskEnd::Bound, TaskEnd::Failed, TaskEnd::Unfinished];
    for (ms, end) in (1..=40).zip(ends.into_iter().cycle()) {
        let failed_in = (end == TaskEnd::Failed).then_some(TaskPart::Approvals);
        let generator = [Nanos::from_micros(3), Nanos::ZERO, Nanos::ZERO];
        let first_token_generator = generator[0];
        let task = TaskSample { end, failed_in, first_token_generator, generator, ..task(ms) };
        tally.record(&task);
        write_task_row(&task, "c", &metadata, &mut out);
    }
    let cut = [out.as_slice(), &out[..100]].concat();
    let lines = || cut.split(|byte| *byte == b'\n');
    let rebuilt = rebuild_tasks(lines(), [""; 0], &metadata);
    let groups = tally.groups(&metadata).unwrap();
    assert_eq!(rebuilt.tally.groups(&metadata).unwrap(), groups);
    assert_eq!((rebuilt.unreadable, rebuilt.under_way), (1, 0));
    // Of the conversation `d` there is a first answer and no task: it was under way. That of `c`
    // ended, a second turn begins nothing, and other scenarios have no tasks.
    let mut metadata = metadata;
    metadata.scenarios.push(format!("{}/tools", metadata.scenarios[0]));
    let [agent, tools] = [&metadata.scenarios[0], metadata.scenarios.last().unwrap()];
    let rows = [
        row(&metadata, "c", 0, agent),
        row(&metadata, "d", 0, agent),
        row(&metadata, "d", 1, tools),
        row(&metadata, "e", 0, tools),
    ];
    let rebuilt = rebuild_tasks(lines(), rows, &metadata);
    let totals = &rebuilt.tally.groups(&metadata).unwrap()[0].totals;
    assert_eq!(rebuilt.under_way, 1);
    assert_eq!(totals.unfinished, groups[0].totals.unfinished + 1);
    assert_eq!(totals.started, groups[0].totals.started + 1);
    assert_eq!(totals.steps, groups[0].totals.steps);
}

fn row(
    metadata: &plimsoll_metrics::RunMetadata,
    conversation: &str,
    turn: u32,
    scenario: &str,
) -> String {
    json!({
        "conversation": conversation, "request_id": "x", "turn": turn, "scenario": scenario,
        "target": metadata.targets[0].name, "stage": metadata.stages[1].name,
        "stream": true, "warmup": false, "reused": false, "events": 0,
        "intended_unix_ns": metadata.run.started_unix_ns + 2_000_000_000,
        "dispatch_lag_ms": 1.0, "response_time_ms": 9.0, "service_time_ms": 8.0,
        "ttfb_ms": 2.0, "ttft_ms": 2.0, "status": 200, "outcome": "completed",
        "bytes_out": 1, "bytes_in": 1,
    })
    .to_string()
}

#[test]
fn report_and_screen_show_tasks_and_a_summary_keeps_them() {
    let mut tally = TaskTally::default();
    (1..=100).for_each(|n| tally.record(&task(10 * n)));
    let cut = TaskSample { end: TaskEnd::Bound, ..task(1) };
    tally.record(&cut);
    let failed = TaskSample { end: TaskEnd::Failed, failed_in: Some(TaskPart::Chat), ..task(1) };
    tally.record(&failed);
    let summary = summary(metadata(), health()).with_tasks(&tally).unwrap();
    let name = &summary.metadata.scenarios[0];
    let counts = "102 tasks: 100 done, 1 at the bound, 1 failed (failed: 1 in chat)";
    let page = text(&summary, Style::plain(200));
    for part in ["Agent tasks", counts, "loop time", "tool calls", "approvals"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let screen = run_screen(&summary, Rest::Flag).text(Style::plain(80));
    assert!(screen.contains(&format!("{name}: loop p50 525ms")), "{screen}");
    assert!(screen.contains("100 done, 1 at the bound"), "{screen}");
    let stored = plimsoll_run_files::summary_json(&summary).unwrap();
    assert_eq!(read_summary(stored.as_bytes()).unwrap().agent_tasks, summary.agent_tasks);
    let plain =
        plimsoll_run_files::summary_json(&crate::support::summary(metadata(), health())).unwrap();
    assert!(!plain.contains("agent_tasks"), "a run without agents has no key for them");
}
