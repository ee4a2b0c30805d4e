//! Comparisons over sockets: what the mock's log says of every block.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};

use plimsoll_engine::{BlockSink, Control, Run, SampleBatch, SampleSink};
use plimsoll_measure::{Block, Outcome, Sample, TargetId};
use plimsoll_metrics::RunEnd;
use plimsoll_mock::{LogRecord, Mock, MockConfig};
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use plimsoll_workload::{conversation_id, request_id};

use crate::support::CHAT;

#[derive(Clone, Default)]
struct Kept {
    samples: Arc<Mutex<Vec<Sample>>>,
    blocks: Arc<Mutex<Vec<Block>>>,
}

impl SampleSink for Kept {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        self.samples.lock().unwrap().extend_from_slice(&batch.samples);
        Ok(())
    }
}

impl BlockSink for Kept {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        self.blocks.lock().unwrap().extend_from_slice(blocks);
        Ok(())
    }
}

/// A finished comparison.
struct Compared {
    result: plimsoll_engine::RunResult,
    samples: Vec<Sample>,
    blocks: Vec<Block>,
    log: Vec<LogRecord>,
}

/// A mock whose times, lengths and log follow from the content of prompts.
fn mock() -> Mock {
    let text = "{log: memory, seed: 7, draw: prompt, other_models: {ttft: {uniform: {min: 1ms, max: 9ms}}, output: {uniform: {min: 1, max: 30}}}}";
    Mock::spawn(&MockConfig::from_yaml(text).unwrap(), "127.0.0.1:0".parse().unwrap()).unwrap()
}

/// A plan on the mock by two names, the first of which is the reference, and what else is given.
fn plan(mock: &Mock, more: &str, profile: &str) -> Plan {
    let port = mock.addr().port();
    let targets = format!(
        "targets: [{{name: direct, url: 'http://127.0.0.1:{port}'}}, {{name: a, url: 'http://localhost:{port}'}}{more}]"
    );
    let text = format!("model: mock\nkey: test\n{targets}\n{CHAT}{profile}\n");
    let profile = Profile::new("test.yaml".as_ref(), text.into_bytes());
    load(&profile, &EnvVars::default(), &Overrides::default(), Purpose::Versus).unwrap()
}

fn compare(mock: &Mock, plan: Plan) -> Compared {
    let mut run = Run::prepare(plan).unwrap();
    let kept = Kept::default();
    run.record_blocks(Box::new(kept.clone()));
    let result = run.start(Some(Box::new(kept.clone())), &Control::new(), &mut |_| {}).unwrap();
    let (samples, blocks) =
        (kept.samples.lock().unwrap().clone(), kept.blocks.lock().unwrap().clone());
    assert!(result.snapshot.total(|_| true).counters().balanced());
    // A client can have its response a moment before the mock has noted it.
    while mock.stats().in_flight > 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Compared { result, samples, blocks, log: mock.take_log() }
}

impl Compared {
    /// The mock's records by block, turn and target, found by the ids that were sent.
    fn records(&self, targets: u16) -> BTreeMap<(u64, u16), BTreeMap<TargetId, &LogRecord>> {
        let ids = self.result.metadata.run.id_seed();
        let mut found: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for sample in &self.samples {
            let id = request_id(conversation_id(ids, sample.conversation), sample.turn);
            let mut sent =
                self.log.iter().filter(|record| record.request_id.as_deref() == Some(id.as_str()));
            let Some(record) = sent.next() else { continue };
            assert!(sent.next().is_none(), "{id} came twice");
            let (block, target) = sample.conversation.block(targets);
            let of_block = found.entry((block.number(), sample.turn)).or_default();
            assert!(of_block.insert(target, record).is_none());
        }
        found
    }
}

#[test]
fn every_block_is_complete_at_each_target_once_with_equal_content_and_common_draws() {
    let mock = mock();
    let profile = "stream: true\nturns: 2\nstages: 'w@50:200ms,@60:2s'\nworkers: 2\nversus: {alone: 0s, control: true}";
    let compared = compare(&mock, plan(&mock, "", profile));
    let names: Vec<_> =
        compared.result.metadata.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["direct", "direct'", "a"]);
    let records = compared.records(3);
    // 10 and 120 blocks, of two turns. The run may end before a second turn begins.
    let last = |block: u64, turn: u16| block >= 128 && turn == 1;
    assert!((128 * 2 + 2..=130 * 2).contains(&records.len()), "{} blocks", records.len());
    for ((block, turn), at) in &records {
        assert!(at.len() == 3 || last(*block, *turn), "block {block}, turn {turn}");
        let drawn = |record: &LogRecord| {
            let first = record.chunks.iter().find(|chunk| chunk.tokens > 0).unwrap();
            let ttft = first.due - record.body_complete;
            (record.content_hash, record.prompt_bytes, record.messages, record.planned_tokens, ttft)
        };
        let all: BTreeSet<_> = at.values().map(|record| drawn(record)).collect();
        assert_eq!(all.len(), 1, "block {block}, turn {turn}: {all:?}");
        let prompts: BTreeSet<_> = at.values().map(|record| record.prompt_hash).collect();
        assert_eq!(prompts.len(), at.len(), "no target gets the prompt of another");
    }
    let contents: BTreeSet<_> = compared.log.iter().map(|record| record.content_hash).collect();
    assert_eq!(contents.len(), records.len(), "every block and turn has its own content");
    // The blocks that the run recorded: only the measured stage, and later turns that every target
    // completed.
    let whole = records.iter().filter(|((block, _), at)| *block >= 10 && at.len() == 3).count();
    assert_eq!(compared.blocks.len(), whole);
    let counted = &compared.result.blocks;
    assert_eq!((counted.blocks, counted.complete), (whole as u64, whole as u64));
    for block in &compared.blocks {
        let turns: Vec<_> = block.turns.iter().map(|turn| turn.unwrap()).collect();
        assert!(turns.iter().all(|turn| turn.outcome == Outcome::Completed));
        assert_eq!((block.stage.0, block.window), (1, None));
        let record = records[&(block.index, block.turn)][&TargetId(0)];
        assert!(turns.iter().all(|turn| turn.output_tokens == record.planned_tokens));
        let ttft = turns[0].ttft.unwrap();
        let by_mock = record.chunks.iter().find(|chunk| chunk.tokens > 0).unwrap();
        assert!(ttft.as_u64() >= by_mock.due - record.body_complete, "{ttft}");
    }
    let first: Vec<_> = compared.blocks.iter().filter(|block| block.turn == 0).collect();
    for target in 0..3 {
        for place in 0..3 {
            let count =
                first.iter().filter(|block| block.turns[target].unwrap().position == place).count();
            // Groups of six blocks are balanced; the first group lies partly in the warm-up.
            assert!((38..=42).contains(&count), "target {target} in place {place}: {count} of 120");
        }
    }
}

#[test]
fn in_turns_the_mock_sees_one_target_at_a_time() {
    let mock = mock();
    let profile =
        "stages: '4:2s'\nworkers: 2\nversus: {schedule: turns, window: 500ms, control: false}";
    let compared = compare(&mock, plan(&mock, "", profile));
    let records = compared.records(2);
    let start = compared.result.metadata.stages[0].start_s;
    let window = |sample: &Sample| {
        let at = sample.timeline.intended.as_nanos() as f64 / 1e9 - start;
        format!("{:.0}", (at / 0.5 + 1e-9).floor())
    };
    let mut owners: BTreeMap<String, BTreeSet<TargetId>> = BTreeMap::new();
    for sample in &compared.samples {
        owners.entry(window(sample)).or_default().insert(sample.target);
    }
    assert_eq!(owners.len(), 4);
    assert!(owners.values().all(|targets| targets.len() == 1), "{owners:?}");
    let (both, one): (Vec<_>, Vec<_>) = records.values().partition(|at| at.len() == 2);
    // How many each target answers in its windows is the host's doing.
    assert!(both.len() >= 20, "{} of both, {} of one", both.len(), one.len());
    for at in both {
        let hashes: BTreeSet<_> = at.values().map(|record| record.content_hash).collect();
        assert_eq!(hashes.len(), 1);
    }
    assert!(compared.blocks.iter().all(|block| block.window.is_some()));
}

/// Four users of each target, at the same time. What both answered is compared turn by turn.
#[test]
fn virtual_users_of_all_targets_run_at_the_same_time_with_the_same_conversations() {
    let mock = mock();
    let profile = "turns: 2\nstages: '4:2s'\nworkers: 2\nversus: {control: false}";
    let compared = compare(&mock, plan(&mock, "", profile));
    let records = compared.records(2);
    let both: Vec<_> = records.values().filter(|at| at.len() == 2).collect();
    assert!(both.len() >= 100, "{} of both", both.len());
    for at in &both {
        let hashes: BTreeSet<_> = at.values().map(|record| record.content_hash).collect();
        assert_eq!(hashes.len(), 1);
    }
    // In each quarter of the time both targets have about as many requests.
    let start = compared.result.metadata.stages[0].start_s;
    let mut counts = [[0_u32; 4]; 2];
    for sample in &compared.samples {
        let at = sample.timeline.intended.as_nanos() as f64 / 1e9 - start;
        let quarter = [0.5, 1.0, 1.5].iter().filter(|end| at >= **end).count();
        counts[sample.target.index()][quarter] += 1;
    }
    for (one, other) in counts[0].iter().zip(&counts[1]) {
        let (least, most) = (one.min(other), one.max(other));
        assert!(*least > 0 && *most < 3 * least, "{counts:?}");
    }
    let paired = compared.blocks.iter().filter(|block| block.turns.iter().all(Option::is_some));
    assert_eq!(paired.count(), both.len());
    assert!(compared.blocks.iter().all(|block| block.window.is_none()));
}

#[test]
fn a_dead_target_is_taken_out_and_the_others_go_on() {
    let mock = mock();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let more = format!(", {{name: dead, url: 'http://{}'}}", closed.local_addr().unwrap());
    drop(closed);
    let profile = "stages: '@20:14s'\nversus: {alone: 0s, control: false}";
    let compared = compare(&mock, plan(&mock, &more, profile));
    let [direct, a, dead] = compared.result.taken_out[..] else { panic!("three targets") };
    assert_eq!((direct, a), (None, None));
    let out = dead.unwrap().as_secs_f64();
    assert!((9.5..13.5).contains(&out), "after {out} s");
    let of = |target: u16| compared.samples.iter().filter(|s| s.target == TargetId(target)).count();
    assert_eq!((of(0), of(1)), (280, 280));
    assert!(of(2) < 275, "{} requests to the dead one", of(2));
    assert!(compared.samples.iter().all(|s| s.outcome != Outcome::NeverSent));
    assert_eq!(compared.blocks.len(), 280);
    // A request under way when the target is taken out may be missing in its block.
    let without = compared.blocks.iter().filter(|block| block.turns[2].is_none()).count();
    assert!((280 - of(2)..=282 - of(2)).contains(&without), "{without} of {}", of(2));
}

#[test]
fn the_probe_asks_every_target_for_the_same_prompt() {
    let mock = mock();
    let mut run = Run::prepare(plan(&mock, "", "stages: '@10:20s'")).unwrap();
    let report = run.probe().unwrap();
    assert_eq!((report.requests, report.findings.len(), report.answers.len()), (2, 0, 2));
    // The mock notes a request after its answer.
    let mut log = mock.take_log();
    for _ in 0..10_000_000 {
        if log.len() >= 2 {
            break;
        }
        std::thread::yield_now();
        log.extend(mock.take_log());
    }
    let contents: BTreeSet<_> = log.iter().map(|record| record.content_hash).collect();
    let prompts: BTreeSet<_> = log.iter().map(|record| record.prompt_hash).collect();
    assert_eq!((log.len(), contents.len(), prompts.len()), (2, 1, 2));
    assert!(report.answers.iter().all(|answer| answer.status == 200));
    let tokens: BTreeSet<_> = report.answers.iter().map(|answer| answer.input_tokens).collect();
    assert_eq!(tokens, [Some(64)].into());
}

/// Ends the run when so many blocks have come.
struct EndsAfter(usize, Control);

impl BlockSink for EndsAfter {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        self.0 = self.0.saturating_sub(blocks.len());
        if self.0 == 0 {
            self.1.decide();
        }
        Ok(())
    }
}

#[test]
fn whoever_sees_the_blocks_can_end_the_run_and_the_next_one_goes_on() {
    let mock = mock();
    let control = Control::new();
    for (after, ended) in [(20, RunEnd::Decided), (usize::MAX, RunEnd::Complete)] {
        let profile = format!(
            "stages: '@50:{}s'\nversus: {{alone: 0s, control: false}}",
            if ended == RunEnd::Decided { 60 } else { 1 }
        );
        let mut run = Run::prepare(plan(&mock, "", &profile)).unwrap();
        run.record_blocks(Box::new(EndsAfter(after, control.clone())));
        let result = run.start(None, &control, &mut |_| {}).unwrap();
        assert_eq!(result.metadata.run.ended, ended);
        assert!(result.snapshot.total(|_| true).counters().balanced());
        assert!((20..1_500).contains(&result.blocks.blocks), "{}", result.blocks.blocks);
        assert!(!control.is_interrupted());
    }
}
