//! Writes `pairs.bin`.

use std::io::{self, Write};

use plimsoll_measure::{
    Block, ErrorClass, FinishReason, Nanos, Outcome, PairedTurn, PolicyDecision,
};

use super::{
    BLOCK_BYTES, CARRIED_OUT, MAGIC, NO_TIME, NO_WINDOW, Pairs, PairsHeader, REASONING, REUSED,
    TOOL_CALLS, TURN_BYTES, VERSION, halvings, keeps,
};

/// Blocks of which all are written. Beyond it whole seconds are left out by a rule.
pub const MOST_BLOCKS: u64 = 5_000_000;

/// Writes blocks as they come.
///
/// When [`MOST_BLOCKS`] have been written, from then on only every second second is, chosen by
/// the seed, and after half as many more only every fourth, and so on. The reader applies the last
/// of these rates to all seconds, so that each has been kept with the same probability.
#[derive(Debug)]
pub struct PairsWriter<W> {
    out: W,
    header: PairsHeader,
    most: u64,
    /// Written at the current rate.
    written: u64,
    /// One second in two to the power of this is written.
    halvings: u8,
    bytes: Vec<u8>,
}

impl<W: Write> PairsWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, header: PairsHeader) -> io::Result<Self> {
        Self::with_most(out, header, MOST_BLOCKS)
    }

    /// The same with another number of blocks of which all are written.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn with_most(mut out: W, header: PairsHeader, most: u64) -> io::Result<Self> {
        let mut bytes = Vec::new();
        put_header(&header, &mut bytes);
        out.write_all(&bytes)?;
        Ok(Self { out, header, most: most.max(1), written: 0, halvings: 0, bytes })
    }

    /// Writes all that was read of files of the same run.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_pairs(out: W, pairs: &Pairs) -> io::Result<()> {
        let mut writer = Self::new(out, pairs.header.clone())?;
        writer.halvings = halvings(pairs.one_in);
        writer.write(&pairs.blocks)
    }

    /// Writes blocks, whole ones, in one call.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        self.bytes.clear();
        for block in blocks {
            if !keeps(self.header.seed, block.start, self.halvings) {
                continue;
            }
            put_block(block, self.halvings, self.header.targets.len(), &mut self.bytes);
            self.written += 1;
            if self.written >= (self.most >> self.halvings).max(1) && self.halvings < 32 {
                (self.written, self.halvings) = (0, self.halvings + 1);
            }
        }
        self.out.write_all(&self.bytes)
    }
}

fn put_header(header: &PairsHeader, out: &mut Vec<u8>) {
    let record = BLOCK_BYTES + header.targets.len() * TURN_BYTES;
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    put_length(header.targets.len(), out);
    put_length(record, out);
    out.extend_from_slice(&header.seed.to_le_bytes());
    out.extend_from_slice(&header.started_unix_ns.to_le_bytes());
    for name in &header.targets {
        put_name(name, out);
    }
    put_length(ErrorClass::ALL.len(), out);
    for class in ErrorClass::ALL {
        put_name(class.name(), out);
    }
}

/// A number below 65,536; anything else would be a plan that cannot be.
fn put_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    put_length(name.len(), out);
    out.extend_from_slice(name.as_bytes());
}

fn put_block(block: &Block, halvings: u8, targets: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&block.index.to_le_bytes());
    out.extend_from_slice(&block.start.as_u64().to_le_bytes());
    out.extend_from_slice(&block.window.unwrap_or(NO_WINDOW).to_le_bytes());
    for number in [block.turn, block.stage.0, block.scenario.0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.push(halvings);
    out.extend_from_slice(&[0; 5]);
    for target in 0..targets {
        match block.turns.get(target).copied().flatten() {
            Some(turn) => put_turn(&turn, out),
            None => out.extend_from_slice(&[0; TURN_BYTES]),
        }
    }
}

fn put_turn(turn: &PairedTurn, out: &mut Vec<u8>) {
    let flags = [(turn.reused, REUSED), (turn.reasoning, REASONING), (turn.tool_calls, TOOL_CALLS)];
    let flags = flags.into_iter().filter(|(set, _)| *set).fold(CARRIED_OUT, |all, (_, f)| all | f);
    let outcome = u8::try_from(turn.outcome.index()).unwrap_or(u8::MAX);
    out.extend_from_slice(&[flags, turn.position, outcome, decision(turn.expected)]);
    let reason = position(&FinishReason::ALL, turn.finish_reason);
    out.extend_from_slice(&[decision(turn.decision), reason]);
    out.extend_from_slice(&detail(turn).to_le_bytes());
    let times = [turn.response, turn.service, turn.ttft, turn.last_token, turn.longest_gap];
    for time in times {
        out.extend_from_slice(&time.map_or(NO_TIME, Nanos::as_u64).to_le_bytes());
    }
    for part in turn.generator.parts() {
        out.extend_from_slice(&part.as_u64().to_le_bytes());
    }
    let counts = [turn.gaps, turn.output_tokens, turn.input_tokens, turn.content_bytes];
    for count in counts.into_iter().chain([turn.content_digest, turn.model]) {
        out.extend_from_slice(&count.to_le_bytes());
    }
}

/// The position of the error class of a failure; else the status.
fn detail(turn: &PairedTurn) -> u16 {
    match turn.outcome {
        Outcome::Rejected(status) => status,
        Outcome::Failed(class) => {
            let position = ErrorClass::ALL.iter().position(|known| *known == class);
            position.and_then(|position| u16::try_from(position).ok()).unwrap_or(u16::MAX)
        }
        _ => turn.status,
    }
}

fn decision(decision: Option<PolicyDecision>) -> u8 {
    position(&PolicyDecision::ALL, decision)
}

/// 0 for none, else the position among all values plus 1.
fn position<T: Copy + PartialEq>(all: &[T], value: Option<T>) -> u8 {
    let position = all.iter().position(|known| Some(*known) == value);
    position.and_then(|position| u8::try_from(position + 1).ok()).unwrap_or(0)
}
