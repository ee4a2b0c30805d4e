//! Reads `pairs.bin`.

use std::io::Read;

use plimsoll_measure::{
    Block, ErrorClass, FinishReason, GeneratorShare, Nanos, Outcome, PairedTurn, PolicyDecision,
    ScenarioId, StageId,
};

use super::{
    BLOCK_BYTES, CARRIED_OUT, MAGIC, NO_TIME, NO_WINDOW, PairsHeader, REASONING, REUSED,
    TOOL_CALLS, TURN_BYTES, VERSION, halvings, keeps,
};
use crate::error::RunFileError;

/// The blocks of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// Header of the file.
    pub header: PairsHeader,
    /// In the order of their starts.
    pub blocks: Vec<Block>,
    /// Sampling divisor: for a long run, one in so many whole seconds was kept by a rule; otherwise
    /// 1.
    pub one_in: u32,
    /// Whether the last record is cut, as a killed process leaves it.
    pub truncated: bool,
}

impl Pairs {
    /// Adds the blocks of another shard of the same run. Both keep only the seconds that the one
    /// with more blocks has kept.
    pub fn add(&mut self, shard: Self) {
        self.one_in = self.one_in.max(shard.one_in);
        self.truncated |= shard.truncated;
        self.blocks.extend(shard.blocks);
        let halvings = halvings(self.one_in);
        self.blocks.retain(|block| keeps(self.header.seed, block.start, halvings));
        self.blocks.sort_by_key(|block| (block.start, block.index, block.turn));
    }
}

/// Reads a whole file.
///
/// # Errors
/// [`RunFileError::Pairs`] if it cannot be read, or has another layout.
pub fn read_pairs(from: &mut impl Read) -> Result<Pairs, RunFileError> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|error| RunFileError::Pairs(error.to_string()))?;
    let mut rest = Bytes(&bytes);
    let (header, record, classes) = header(&mut rest).ok_or_else(|| match bytes.get(..8) {
        Some(start) if start == MAGIC => {
            RunFileError::Pairs("its header is cut, or of another version".to_owned())
        }
        _ => RunFileError::Pairs("it is not such a file".to_owned()),
    })?;
    let records = rest.0.chunks_exact(record);
    let truncated = !records.remainder().is_empty();
    let targets = header.targets.len();
    let blocks: Option<Vec<_>> =
        records.map(|bytes| block(&mut Bytes(bytes), targets, &classes)).collect();
    let mut blocks =
        blocks.ok_or_else(|| RunFileError::Pairs("it has an invalid record".to_owned()))?;
    let halvings = blocks.iter().map(|(_, halvings)| *halvings).max().unwrap_or(0);
    blocks.retain(|(block, _)| keeps(header.seed, block.start, halvings));
    let mut blocks: Vec<_> = blocks.into_iter().map(|(block, _)| block).collect();
    blocks.sort_by_key(|block| (block.start, block.index, block.turn));
    let one_in = 1_u32.checked_shl(halvings.into()).unwrap_or(u32::MAX);
    Ok(Pairs { header, blocks, one_in, truncated })
}

/// Bytes that are left to read.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn name(&mut self) -> Option<String> {
        let length = self.u16()?;
        String::from_utf8(self.take(length.into())?.to_vec()).ok()
    }

    fn names(&mut self, count: u16) -> Option<Vec<String>> {
        (0..count).map(|_| self.name()).collect()
    }
}

/// The header, the length of a record, and the error classes of the version that wrote it.
fn header(rest: &mut Bytes<'_>) -> Option<(PairsHeader, usize, Vec<String>)> {
    let known = rest.array()? == *MAGIC && rest.u32()? == VERSION;
    let (targets, record) = (rest.u16()?, usize::from(rest.u16()?));
    let (seed, started_unix_ns) = (rest.u64()?, rest.u64()?);
    let targets = rest.names(targets)?;
    let classes = rest.u16()?;
    let classes = rest.names(classes)?;
    let fits = record == BLOCK_BYTES + targets.len() * TURN_BYTES && !targets.is_empty();
    (known && fits).then_some((PairsHeader { targets, seed, started_unix_ns }, record, classes))
}

/// A block, and the rate at which it was written.
fn block(rest: &mut Bytes<'_>, targets: usize, classes: &[String]) -> Option<(Block, u8)> {
    let (index, start, window) = (rest.u64()?, Nanos::new(rest.u64()?), rest.u32()?);
    let (turn, stage, scenario) = (rest.u16()?, StageId(rest.u16()?), ScenarioId(rest.u16()?));
    let halvings = rest.u8()?;
    rest.take(5)?;
    let turns: Option<Vec<_>> = (0..targets).map(|_| self::turn(rest, classes)).collect();
    let turns = turns?.into_iter().map(|(turn, carried_out)| carried_out.then_some(turn)).collect();
    let window = (window != NO_WINDOW).then_some(window);
    Some((Block { index, turn, stage, scenario, start, window, turns }, halvings))
}

/// A turn, and whether it was carried out at all.
fn turn(rest: &mut Bytes<'_>, classes: &[String]) -> Option<(PairedTurn, bool)> {
    let [flags, position, outcome, expected, decision, finish_reason] = rest.array()?;
    let detail = rest.u16()?;
    let outcome = self::outcome(outcome, detail, classes)?;
    let [response, service, ttft, last_token, longest_gap] =
        [rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?].map(time);
    let mut parts = [Nanos::ZERO; 7];
    for part in &mut parts {
        *part = Nanos::new(rest.u64()?);
    }
    let [gaps, output_tokens, input_tokens, content_bytes] =
        [rest.u32()?, rest.u32()?, rest.u32()?, rest.u32()?];
    let [content_digest, model] = [rest.u32()?, rest.u32()?];
    let turn = PairedTurn {
        position,
        outcome,
        response,
        service,
        ttft,
        last_token,
        longest_gap,
        gaps,
        generator: GeneratorShare::from_parts(parts),
        expected: value(&PolicyDecision::ALL, expected),
        decision: value(&PolicyDecision::ALL, decision),
        output_tokens,
        input_tokens,
        status: if matches!(outcome, Outcome::Failed(_)) { 0 } else { detail },
        finish_reason: value(&FinishReason::ALL, finish_reason),
        content_bytes,
        content_digest,
        model,
        reasoning: flags & REASONING != 0,
        tool_calls: flags & TOOL_CALLS != 0,
        reused: flags & REUSED != 0,
    };
    Some((turn, flags & CARRIED_OUT != 0))
}

fn time(nanos: u64) -> Option<Nanos> {
    (nanos != NO_TIME).then_some(Nanos::new(nanos))
}

fn outcome(kind: u8, detail: u16, classes: &[String]) -> Option<Outcome> {
    let name = classes.get(usize::from(detail));
    let class = ErrorClass::ALL.into_iter().find(|class| Some(class.name()) == name.map(|n| &**n));
    let all = [
        Outcome::Completed,
        Outcome::Rejected(detail),
        // A class of a later version is an error all the same.
        Outcome::Failed(class.unwrap_or(ErrorClass::LocalIo)),
        Outcome::TimedOut,
        Outcome::Cancelled,
        Outcome::InFlight,
        Outcome::NeverSent,
    ];
    all.into_iter().find(|outcome| outcome.index() == usize::from(kind))
}

fn value<T: Copy>(all: &[T], number: u8) -> Option<T> {
    all.get(usize::from(number).checked_sub(1)?).copied()
}
