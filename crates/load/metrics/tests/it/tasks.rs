//! Tasks of agents, from their records to what a summary holds.

use plimsoll_measure::{
    ConversationKey, Moment, Nanos, ScenarioId, StageId, TargetId, TaskCounts, TaskEnd, TaskPart,
    TaskSample,
};
use plimsoll_metrics::{QUANTILES, RunMetadata, TargetInfo, TaskGroup, TaskTally, TaskTime};

/// A task with one tool call, that took `ms` for the chat and `tools` for the tool.
fn task(chat: u64, tools: u64, end: TaskEnd) -> TaskSample {
    let times = [Nanos::from_millis(chat), Nanos::from_millis(tools), Nanos::ZERO];
    let intended = Moment::EPOCH + Nanos::from_secs(1);
    TaskSample {
        stage: StageId(0),
        scenario: ScenarioId(0),
        target: TargetId(0),
        conversation: ConversationKey::arrival(0),
        warmup: false,
        intended,
        finished: intended + times[0] + times[1],
        first_token: Some(Nanos::from_millis(chat / 2)),
        times,
        generator: [Nanos::ZERO; TaskPart::COUNT],
        first_token_generator: Nanos::ZERO,
        counts: TaskCounts { steps: 2, tool_calls: 1, ..TaskCounts::default() },
        end,
        failed_in: None,
    }
}

fn metadata(targets: usize) -> RunMetadata {
    RunMetadata {
        scenarios: vec!["agent".to_owned(), "other".to_owned()],
        targets: (0..targets)
            .map(|n: usize| TargetInfo { name: format!("t{n}"), ..TargetInfo::default() })
            .collect(),
        ..RunMetadata::default()
    }
}

fn groups(tasks: &[TaskSample]) -> Vec<TaskGroup> {
    let mut tally = TaskTally::default();
    for task in tasks {
        tally.record(task);
    }
    tally.groups(&metadata(1)).unwrap()
}

/// The median of a time in milliseconds, and whether it may be used.
fn median(group: &TaskGroup, time: TaskTime) -> (f64, bool) {
    let figure = group.time(time).unwrap().figure(&QUANTILES[0]).unwrap();
    (figure.value, figure.refused.is_none())
}

#[test]
fn counts_are_those_of_all_tasks_and_times_those_of_tasks_that_are_done() {
    let mut tasks: Vec<_> = (1..=99).map(|ms| task(10 * ms, ms, TaskEnd::Done)).collect();
    tasks.push(TaskSample {
        failed_in: Some(TaskPart::Tools),
        ..task(90_000, 90_000, TaskEnd::Failed)
    });
    tasks.push(TaskSample { warmup: true, ..task(1, 1, TaskEnd::Done) });
    tasks[0].counts = TaskCounts {
        steps: 9,
        tool_calls: 8,
        tool_errors: 3,
        approvals: 5,
        approved: 4,
        rejected: 1,
    };
    let groups = groups(&tasks);
    let [group] = groups.as_slice() else { panic!("{}", groups.len()) };
    let totals = group.totals;
    assert_eq!((group.scenario.as_str(), group.target.as_deref()), ("agent", None));
    assert_eq!((totals.started, totals.done, totals.failed, group.warmup), (100, 99, 1, 1));
    assert_eq!((totals.steps, totals.tool_calls, totals.tool_errors), (9 + 99 * 2, 8 + 99, 3));
    assert_eq!((totals.approvals, totals.approved, totals.rejected), (5, 4, 1));
    assert_eq!(group.failed_in.get("tools"), Some(&1));
    let steps = group.steps_per_task.unwrap();
    assert_eq!((steps.p50, steps.p95, steps.max), (2, 2, 9));
    assert!((steps.mean - (9.0 + 98.0 * 2.0) / 99.0).abs() < 1e-9);
    // The middle of 99 tasks is the 50th: 500 ms of chat, 50 ms of tools, 550 ms together.
    for (time, expected) in
        [(TaskTime::Chat, 500.0), (TaskTime::Tools, 50.0), (TaskTime::Loop, 550.0)]
    {
        let (value, usable) = median(group, time);
        assert!((value - expected).abs() < expected * 0.002 && usable, "{time:?}: {value}");
        assert_eq!(group.time(time).unwrap().count, 99);
    }
    assert_eq!(group.time(TaskTime::FirstToken).unwrap().count, 100, "also of tasks that fail");
    assert_eq!(group.time(TaskTime::Approvals).map(|times| times.count), Some(1));
}

#[test]
fn a_time_that_cut_tasks_could_change_is_unknown() {
    let done = (1..=100).map(|ms| task(10 * ms, 0, TaskEnd::Done));
    let cut = |end, count| (0..count).map(move |_| task(1, 0, end));
    for (bound, unfinished, usable) in [(0, 0, true), (60, 41, false), (101, 0, false)] {
        let bound = cut(TaskEnd::Bound, bound);
        let tasks: Vec<_> =
            done.clone().chain(bound).chain(cut(TaskEnd::Unfinished, unfinished)).collect();
        let groups = groups(&tasks);
        assert_eq!(median(&groups[0], TaskTime::Loop).1, usable);
        let max = groups[0].time(TaskTime::Loop).unwrap().max_figure();
        assert_eq!(max.refused.is_none(), usable);
    }
}

#[test]
fn what_the_generator_may_have_added_is_the_bound_of_a_figure() {
    let generator = [Nanos::from_millis(100), Nanos::from_millis(2), Nanos::ZERO];
    let late = (0..100).map(|_| TaskSample { generator, ..task(500, 20, TaskEnd::Done) });
    let groups = groups(&late.collect::<Vec<_>>());
    let figure = |time| groups[0].time(time).unwrap().figure(&QUANTILES[0]).unwrap();
    let within = |value: f64, expected: f64| (value - expected).abs() < expected * 0.01;
    assert!(within(figure(TaskTime::Chat).bound, 100.0));
    assert!(within(figure(TaskTime::Loop).bound, 102.0));
    assert!(figure(TaskTime::Loop).refused.is_some(), "a fifth of it may be ours");
}

#[test]
fn parts_of_a_run_add_up_in_any_order_and_targets_are_apart() {
    let of = |target| TaskSample { target: TargetId(target), ..task(10, 1, TaskEnd::Done) };
    let tally = |tasks: &[TaskSample]| {
        let mut tally = TaskTally::default();
        for task in tasks {
            tally.record(task);
        }
        tally
    };
    let (one, other) = (tally(&[of(0), of(1)]), tally(&[of(1), of(1)]));
    let merged = |mut first: TaskTally, second: &TaskTally| {
        first.merge(second);
        first.groups(&metadata(2)).unwrap()
    };
    let groups = merged(one.clone(), &other);
    assert_eq!(groups, merged(other, &one));
    let counts: Vec<_> =
        groups.iter().map(|group| (group.target.as_deref(), group.totals.done)).collect();
    assert_eq!(counts, [(Some("t0"), 1), (Some("t1"), 3)]);
}
