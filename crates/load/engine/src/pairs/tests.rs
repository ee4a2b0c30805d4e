//! Comparisons in virtual time. All times are milliseconds after the run's start.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_measure::{AnswerContent, Block, Nanos, Outcome, Sample, TargetId};
use plimsoll_workload::{conversation_id, marked_id};

use super::paired_turn;
use crate::control::Control;
use crate::simulation_tests::harness::{CHAT, Harness, Simulated, at, comparison, millis};
use crate::simulation_tests::{Reply, ScriptedTarget, respond_after};

/// Without the windows in which targets are alone.
const BESIDE: &str = "versus: {alone: 0s}\n";

/// The same, with requests of a block whole milliseconds apart.
const APART: &str = "versus: {alone: 0s, gap: 20ms}\n";

fn compare(profile: &str, targets: u16, target: ScriptedTarget) -> Simulated {
    Harness::of_plan(comparison(&format!("{CHAT}{profile}"), targets), target)
        .run_load(&Control::new())
}

/// The samples of each block, by target.
fn by_block(samples: &[Sample], targets: u16) -> BTreeMap<u64, Vec<Sample>> {
    let mut blocks: BTreeMap<u64, Vec<Sample>> = BTreeMap::new();
    for sample in samples {
        let (block, target) = sample.conversation.block(targets);
        assert_eq!(target, sample.target);
        blocks.entry(block.number()).or_default().push(*sample);
    }
    for block in blocks.values_mut() {
        block.sort_by_key(|sample| sample.target);
    }
    blocks
}

fn targets_of(block: &[Sample]) -> Vec<u16> {
    block.iter().map(|sample| sample.target.0).collect()
}

fn intended(sample: &Sample) -> u64 {
    millis(sample.timeline.intended.since(at(0)))
}

#[test]
fn every_request_goes_to_every_target_at_its_own_time_and_counts_from_there() {
    let profile = format!("{BESIDE}stages: '@10:3s'\n");
    let run = compare(&profile, 4, ScriptedTarget::always(respond_after(15)));
    let blocks = by_block(&run.samples, 4);
    assert_eq!((run.samples.len(), blocks.len()), (120, 30));
    for (number, block) in &blocks {
        assert_eq!(targets_of(block), [0, 1, 2, 3]);
        for sample in block {
            // 10 per second, 4 targets: a request every 25 ms, in the order of their places.
            assert_eq!(intended(sample), number * 100 + u64::from(sample.position) * 25);
            assert_eq!(sample.timeline.dispatched, Some(sample.timeline.intended));
            assert_eq!(sample.timeline.response_time(), Some(Nanos::from_millis(15)));
        }
        let places: BTreeSet<_> = block.iter().map(|sample| sample.position).collect();
        assert_eq!(places.len(), 4);
    }
    // Each of four targets is in each place of four consecutive blocks once.
    let in_place = |target: usize, place: u8| {
        blocks.values().take(28).filter(|block| block[target].position == place).count()
    };
    for target in 0..4 {
        assert_eq!([0, 1, 2, 3].map(|place| in_place(target, place)), [7; 4]);
    }
    assert_eq!(run.output.blocks.len(), 30);
    for (block, number) in run.output.blocks.iter().zip(0..) {
        assert_eq!(
            (block.index, block.start, block.window),
            (number, Nanos::from_millis(number * 100), None)
        );
        for (turn, sample) in block.turns.iter().zip(&blocks[&number]) {
            let turn = turn.unwrap();
            assert_eq!((turn.position, turn.outcome), (sample.position, Outcome::Completed));
            assert_eq!(turn.response, Some(Nanos::from_millis(15)));
            assert_eq!((turn.input_tokens, turn.output_tokens), (8, 1));
        }
    }
}

#[test]
fn at_the_same_instant_the_random_order_decides_who_is_first() {
    let profile = "versus: {alone: 0s, schedule: together}\nstages: '@10:3s'\n";
    let run = compare(profile, 2, ScriptedTarget::always(respond_after(15)));
    let mut first = [0, 0];
    for block in by_block(&run.samples, 2).values() {
        let sent = |sample: &Sample| sample.timeline.dispatched.unwrap();
        let early = usize::from(sent(&block[1]) < sent(&block[0]));
        assert_eq!(sent(&block[1 - early]).since(sent(&block[early])), Nanos::new(1));
        assert_eq!(block[early].position, 0);
        first[early] += 1;
    }
    assert_eq!(first, [15, 15]);
}

/// Bytes of the words of a marker.
const MARKER: usize = 20;

#[test]
fn bodies_of_a_block_are_equal_but_for_an_id_of_equal_length() {
    let profile = format!("{BESIDE}turns: 2\nstages: '@5:2s'\n").replace('8', "40");
    let harness = Harness::of_plan(
        comparison(&format!("content: {{mode: sized, approx_input_tokens: 60}}\n{profile}"), 3),
        ScriptedTarget::always(respond_after(15)),
    );
    let ids = harness.worker.run.ids;
    let run = harness.run_load(&Control::new());
    let mut bodies: BTreeMap<(u64, u16), Vec<String>> = BTreeMap::new();
    for sample in &run.samples {
        let id = conversation_id(ids, sample.conversation);
        let name = format!("{id}-{}", sample.turn);
        let mut sent = run.requests.iter().filter(|request| request.id == name);
        let body = &sent.next().unwrap().body;
        assert!(sent.next().is_none(), "sent once");
        let (marker, text) = body.split_once("--- ").unwrap();
        assert!(marked_id(body).is_some_and(|start| name.starts_with(&start)), "{body}");
        let (block, _) = sample.conversation.block(3);
        let without = format!("{}{text}", &marker[..marker.len() - MARKER]);
        bodies.entry((block.number(), sample.turn)).or_default().push(without);
    }
    assert_eq!(bodies.len(), 20, "ten blocks of two turns");
    for all in bodies.values() {
        assert_eq!(all.len(), 3);
        assert!(all.iter().all(|body| *body == all[0]), "{all:?}");
    }
    let different: BTreeSet<_> = bodies.values().map(|all| &all[0]).collect();
    assert_eq!(different.len(), 20);
}

#[test]
fn a_target_that_is_full_holds_up_no_other() {
    // The first request of all hangs, and takes the only slot of its target for good.
    let target = ScriptedTarget::script([Reply::Hang], respond_after(5));
    let profile = format!("{APART}max_in_flight: 1\nstages: '@10:2s'\n");
    let run = compare(&profile, 3, target);
    let stuck =
        run.samples.iter().find(|sample| sample.outcome == Outcome::InFlight).unwrap().target;
    for sample in &run.samples {
        if sample.target != stuck {
            assert_eq!(sample.timeline.dispatched, Some(sample.timeline.intended));
            assert_eq!(sample.outcome, Outcome::Completed);
        } else if intended(sample) > 100 {
            assert_eq!(sample.outcome, Outcome::NeverSent);
        }
    }
    assert_eq!(run.samples.len(), 60);
    assert_eq!(run.output.blocks.len(), 20);
    assert_eq!(
        run.output
            .blocks
            .iter()
            .filter(|block: &&Block| block.turns[stuck.index()].unwrap().response.is_none())
            .count(),
        20
    );
}

#[test]
fn a_target_that_is_taken_out_gets_nothing_more_and_the_others_go_on() {
    // None of its requests is under way then.
    assert_eq!(blocks_without_a_target_that_is_taken_out(5), 10);
    // Three blocks have begun; those whose other turns end first are over without it.
    let gone = blocks_without_a_target_that_is_taken_out(300);
    assert!((11..=13).contains(&gone), "{gone}");
}

/// A gateway that dropped only the reasoning was said to drop a third of the content.
#[test]
fn reasoning_and_tool_calls_are_not_content() {
    let parts = AnswerContent { text: 108, reasoning: 54, tool_calls: 9, ..Default::default() };
    let turn = paired_turn(&Sample { content: parts, ..Sample::default() });
    assert_eq!((turn.content_bytes, turn.reasoning, turn.tool_calls), (108, true, true));
}

/// Blocks out of 20 without a turn of the target that is dropped after 990 ms, if every response
/// takes the given number of milliseconds.
fn blocks_without_a_target_that_is_taken_out(response_ms: u64) -> usize {
    let plan = comparison(&format!("{CHAT}{APART}stages: '@10:2s'\n"), 3);
    let harness = Harness::of_plan(plan, ScriptedTarget::always(respond_after(response_ms)));
    let worker = std::rc::Rc::clone(&harness.worker);
    let out = TargetId(1);
    let (sender, intervals) = std::sync::mpsc::channel();
    let control = Control::new();
    let end = harness.run(async {
        let of_task = std::rc::Rc::clone(&worker);
        tokio::task::spawn_local(async move {
            of_task.timer.sleep_until(at(990)).await;
            of_task.run.take_out(out.index(), Nanos::from_millis(990));
        });
        let part = crate::worker_share::WorkerShare::WHOLE;
        crate::worker_thread::run_load(&worker, part, &control, sender).await
    });
    drop(worker);
    let run = harness.finish(end);
    let last = |target| {
        let of = run.samples.iter().filter(|sample| sample.target == target);
        of.map(intended).max().unwrap()
    };
    // The worker looks every 50 ms.
    assert!(last(out) < 1_000, "{}", last(out));
    assert!(last(TargetId(0)) >= 1_900 && last(TargetId(2)) >= 1_900);
    let mut blocks: Vec<_> = intervals.try_iter().flat_map(|interval| interval.blocks).collect();
    blocks.extend(run.output.blocks);
    assert_eq!(blocks.len(), 20);
    assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Completed));
    blocks.iter().filter(|block| block.turns[out.index()].is_none()).count()
}

#[test]
fn in_turns_users_have_one_target_at_a_time_and_repeat_the_same_conversations() {
    let profile = "versus: {schedule: turns, window: 2s}\nstages: '3:8s'\n";
    let run = compare(profile, 2, ScriptedTarget::always(respond_after(100)));
    // Two rounds of two windows of 2 s, 20 conversations for each of 3 users.
    let mut windows: BTreeMap<u64, BTreeSet<u16>> = BTreeMap::new();
    for sample in &run.samples {
        windows.entry(intended(sample) / 2_000).or_default().insert(sample.target.0);
    }
    assert!(windows.values().all(|targets| targets.len() == 1), "{windows:?}");
    assert_eq!(windows.len(), 4);
    assert_ne!((&windows[&0], &windows[&2]), (&windows[&1], &windows[&3]));
    let blocks = by_block(&run.samples, 2);
    assert_eq!((run.samples.len(), blocks.len()), (4 * 3 * 20, 2 * 3 * 20));
    assert!(blocks.values().all(|block| targets_of(block) == [0, 1]));
    // The first 400 ms of a window do not count.
    assert_eq!(run.output.blocks.len(), 2 * 3 * 16);
    for block in &run.output.blocks {
        let window = block.window.unwrap();
        assert_eq!(u64::from(window), millis(block.start) / 4_000);
        assert!(millis(block.start) % 2_000 >= 400);
        assert!(block.turns.iter().all(Option::is_some));
    }
}

#[test]
fn the_faster_target_has_more_of_the_same_conversations_in_a_round() {
    // Whichever target is first answers in 50 ms, for the time of one window, and then all in 100.
    let target = ScriptedTarget::script([respond_after(50); 40], respond_after(100));
    let run = compare("versus: {schedule: turns, window: 2s}\nstages: '1:8s'\n", 2, target);
    let counts = by_block(&run.samples, 2).into_values().fold([0, 0], |[both, one], block| {
        if block.len() == 2 { [both + 1, one] } else { [both, one + 1] }
    });
    // 40 and 20 in the first round, of which 20 are the same; then 20 and 20.
    assert_eq!(counts, [40, 20]);
}

#[test]
fn open_conversations_end_with_the_window_of_their_target() {
    let profile = "versus: {schedule: turns, window: 1s}\nturns: 50\nstages: '@2:4s'\n";
    let run = compare(profile, 2, ScriptedTarget::always(respond_after(100)));
    let mut owner: BTreeMap<u64, TargetId> = BTreeMap::new();
    for sample in &run.samples {
        let window = intended(sample) / 1_000;
        assert_eq!(*owner.entry(window).or_insert(sample.target), sample.target, "window {window}");
    }
    assert_eq!(owner.len(), 4);
}
