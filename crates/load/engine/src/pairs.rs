//! The blocks of a comparison: the results of all targets for the same turn.

use std::collections::HashMap;
use std::io;

use plimsoll_measure::{
    Block, ConversationKey, Moment, Outcome, PairedTurn, Sample, TokenCount, TokenSource,
};
use plimsoll_schedule::PairSchedule;

/// Receives the blocks of a comparison as they complete; called on the thread that runs the load.
pub trait BlockSink: Send {
    /// Takes blocks, in the order in which they ended.
    ///
    /// # Errors
    /// Any error of the device. After an error it is not called again.
    fn write(&mut self, blocks: &[Block]) -> io::Result<()>;
}

/// Counts of the blocks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockReport {
    /// Blocks of which at least one target carried out its turn.
    pub blocks: u64,
    /// Those that every target completed.
    pub complete: u64,
    /// The sink's error.
    pub error: Option<String>,
}

/// The sink of a run, with its counts.
#[derive(Default)]
pub(crate) struct BlockOutput {
    sink: Option<Box<dyn BlockSink>>,
    report: BlockReport,
}

impl std::fmt::Debug for BlockOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockOutput").field("report", &self.report).finish_non_exhaustive()
    }
}

impl BlockOutput {
    pub(crate) const fn new(sink: Option<Box<dyn BlockSink>>) -> Self {
        let report = BlockReport { blocks: 0, complete: 0, error: None };
        Self { sink, report }
    }

    /// Counts blocks, and hands them on.
    pub(crate) fn write(&mut self, blocks: &[Block]) {
        if blocks.is_empty() {
            return;
        }
        let complete = blocks.iter().filter(|block| {
            block.turns.iter().all(|turn: &Option<PairedTurn>| {
                turn.is_some_and(|turn| turn.outcome == Outcome::Completed)
            })
        });
        self.report.complete += complete.count() as u64;
        self.report.blocks += blocks.len() as u64;
        if let (Some(sink), None) = (&mut self.sink, &self.report.error) {
            self.report.error = sink.write(blocks).err().map(|error| error.to_string());
        }
    }

    pub(crate) fn finish(self) -> BlockReport {
        self.report
    }
}

/// Assembles the blocks of one worker from their turns.
#[derive(Debug)]
pub(crate) struct PairCollector {
    schedule: PairSchedule,
    /// The run's start.
    origin: Moment,
    /// Blocks that lack a turn.
    open: HashMap<(ConversationKey, u16), Block>,
    /// Blocks that were not taken yet.
    ended: Vec<Block>,
}

impl PairCollector {
    pub(crate) fn new(schedule: PairSchedule, origin: Moment) -> Self {
        Self { schedule, origin, open: HashMap::new(), ended: Vec::new() }
    }

    /// Adds a finished turn. `is_out` returns whether a target was dropped from the comparison.
    pub(crate) fn add(&mut self, sample: &Sample, is_out: impl Fn(usize) -> bool) {
        let start = sample.timeline.intended.since(self.origin);
        let (window, counts) = self.schedule.window(start);
        if sample.warmup || !counts {
            return;
        }
        let targets = self.schedule.targets();
        let (key, target) = sample.conversation.block(targets);
        if is_out(target.index()) && !self.open.contains_key(&(key, sample.turn)) {
            // The block ended without it when its target was taken out.
            return;
        }
        let block = self.open.entry((key, sample.turn)).or_insert_with(|| Block {
            index: key.number(),
            turn: sample.turn,
            stage: sample.stage,
            scenario: sample.scenario,
            start,
            window,
            turns: vec![None; targets.into()],
        });
        // The users of a faster target have a conversation long before the others do: a block is of
        // the time when the last one has it.
        let decides =
            if self.schedule.has_users(start) { start > block.start } else { start < block.start };
        if decides {
            (block.start, block.stage, block.window) = (start, sample.stage, window);
        }
        block.turns[target.index()] = Some(paired_turn(sample));
        if block
            .turns
            .iter()
            .enumerate()
            .all(|(target, turn): (usize, &Option<PairedTurn>)| turn.is_some() || is_out(target))
        {
            self.ended.extend(self.open.remove(&(key, sample.turn)));
        }
    }

    /// The blocks that ended since the last call.
    pub(crate) fn take(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.ended)
    }

    /// All remaining blocks at the end of the run, each without some turn. Blocks of later turns
    /// are left out: the turn before did not complete, or the run was over.
    pub(crate) fn take_all(&mut self) -> Vec<Block> {
        let left = self.open.drain().map(|(_, block)| block);
        self.ended.extend(left.filter(|block| block.turn == 0));
        self.take()
    }
}

/// A turn as a block has it.
fn paired_turn(sample: &Sample) -> PairedTurn {
    let line = &sample.timeline;
    let last_token = line.last_token.zip(line.dispatched).map(|(last, from)| last.since(from));
    PairedTurn {
        position: sample.position,
        outcome: sample.outcome,
        response: line.response_time(),
        service: line.service_time(),
        ttft: line.ttft(),
        last_token,
        longest_gap: (sample.gaps.count > 0).then_some(sample.gaps.max),
        gaps: sample.gaps.count,
        generator: sample.generator,
        expected: sample.expected,
        decision: sample.policy_decision,
        output_tokens: reported(sample.usage.completion),
        input_tokens: reported(sample.usage.prompt),
        status: sample.status,
        finish_reason: sample.finish_reason,
        content_bytes: sample.content.text,
        content_digest: sample.content.digest,
        model: sample.content.model,
        reasoning: sample.content.reasoning > 0,
        tool_calls: sample.content.tool_calls > 0,
        reused: sample.reused,
    }
}

/// Estimates of one target are not comparable with reports of another.
const fn reported(tokens: TokenCount) -> u32 {
    match tokens.source {
        TokenSource::Reported => tokens.count,
        TokenSource::Estimated | TokenSource::Unknown => 0,
    }
}

#[cfg(test)]
mod tests;
