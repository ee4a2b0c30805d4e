//! `pairs.bin`: the blocks of a comparison, to the nanosecond. `docs/reference/pairs.md` describes
//! the layout.
//!
//! Differences between targets are far smaller than the steps of a histogram, so they are taken of
//! these. All records of a file have the same length: of one whose writer was killed, all but the
//! last can be read.

use std::io::{self, Read, Write};

use plimsoll_measure::{
    Block, ErrorClass, FinishReason, GeneratorShare, Nanos, Outcome, PairedTurn, PolicyDecision,
    ScenarioId, Seed, StageId,
};

use crate::error::RunFileError;

/// The first bytes of a file.
const MAGIC: &[u8; 8] = b"plimpair";
/// The version of the layout.
const VERSION: u32 = 2;
/// Bytes of a block, without its turns.
const BLOCK_BYTES: usize = 32;
/// Bytes of a turn.
const TURN_BYTES: usize = 128;
/// Marker of a missing time.
const NO_TIME: u64 = u64::MAX;
/// Marker of a missing window.
const NO_WINDOW: u32 = u32::MAX;

/// Flags of a turn.
const CARRIED_OUT: u8 = 1;
const REUSED: u8 = 2;
const REASONING: u8 = 4;
const TOOL_CALLS: u8 = 8;

/// Header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairsHeader {
    /// Names of the targets, in the order of the plan.
    pub targets: Vec<String>,
    /// Seed of the run, from which it follows which seconds are left out of a long run.
    pub seed: u64,
    /// Wall-clock time of the run clock's epoch, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
}

/// How often the rate was halved, from the sampling divisor of seconds.
const fn halvings(one_in: u32) -> u8 {
    if one_in == 0 { 0 } else { one_in.ilog2().to_le_bytes()[0] }
}

/// Whether the blocks that begin in the same second as this one are kept, if one second in two to
/// the power of `halvings` is. The seconds of a lower rate are a subset of the seconds of a higher
/// one.
fn keeps(seed: u64, start: Nanos, halvings: u8) -> bool {
    let second = start.as_u64() / 1_000_000_000;
    let rank = Seed(seed).rng("seconds of pairs", second).next_u64();
    halvings == 0 || rank >> (64 - u32::from(halvings)) == 0
}

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

// Reads `pairs.bin`.

/// The blocks of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// Header of the file.
    pub header: PairsHeader,
    /// In the order of their starts.
    pub blocks: Vec<Block>,
    /// Sampling divisor: a long run keeps one in this many whole seconds; otherwise 1.
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
            RunFileError::Pairs("its header is truncated, or of another version".to_owned())
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
