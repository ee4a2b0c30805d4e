//! Rebuilds a summary from `results.jsonl`, for a run that left none.

use plimsoll_measure::{
    Moment, NAMED_PARTS, Nanos, OTHER_PARTS, PartTimes, Sample, ServerParts, StageId,
};
use plimsoll_metrics::{
    GroupKey, InstrumentHealth, Limit, Recorder, RunEnd, RunMetadata, RunSummary, Snapshot,
    StageInfo, TaskTally, TimeRecord, TimeSeries,
};
use serde::{Deserialize, Serialize};

use crate::error::RunFileError;
use crate::row::{ParsedRow, parse_row};

const REBUILT: &str = "rebuilt from results.jsonl (the run did not finish)";
const NO_GAPS: &str =
    "ITL is not available: rows hold the mean and the longest gap of a stream, not every gap";
const NO_END: &str = "requests in flight or waiting when the process ended left no row, and are not \
                      counted: the rates of the last stage are lower bounds";

/// Results from the rows of a run that left no summary.
#[derive(Clone, Debug)]
pub struct Rebuilt {
    /// The summary, which is never valid.
    pub summary: RunSummary,
    /// Timeline of the run.
    pub record: TimeRecord,
}

/// Sums up the rows of a run without a summary. `metadata` comes from the run's `plan.json`.
///
/// The last line may be cut, because a killed process leaves it so. Other unreadable lines are
/// counted in the notes. Instrument health is unknown, so the summary is never valid.
///
/// # Errors
/// [`RunFileError::UnknownName`] if the metadata belongs to another run.
pub fn rebuild<L: AsRef<[u8]>>(
    lines: impl IntoIterator<Item = L>,
    mut metadata: RunMetadata,
    thresholds: &[Limit],
) -> Result<Rebuilt, RunFileError> {
    let mut rows = RowCounter::new(&metadata);
    for line in lines {
        rows.add(line.as_ref(), &metadata)?;
    }
    metadata.run.ended = RunEnd::Unfinished;
    metadata.notes.extend(rows.notes());
    metadata.server_parts = std::mem::take(&mut rows.part_names);
    rows.recorder.count_warmup(false);
    rows.end_interval();
    for (id, stage) in (0..).map(StageId).zip(&mut metadata.stages) {
        let has_rows = rows.counted.total(|key| key.stage == id).counters().scheduled > 0;
        shorten(stage, rows.last, has_rows);
    }
    rows.series.end(rows.last);
    let health = InstrumentHealth::default();
    let mut record = TimeRecord::build(&rows.series, &metadata, &health, &[])?;
    // Rows do not contain the measurement error.
    record.timeline.intervals.iter_mut().for_each(|interval| interval.pacing_lag_ms = None);
    let mut summary = RunSummary::build(metadata, health, &rows.counted, thresholds)?;
    summary.add_time_facts(&record.facts);
    Ok(Rebuilt { summary, record })
}

/// Length of the intervals from which confidence intervals are computed, as in a run.
const INTERVAL: Nanos = Nanos::from_secs(1);

/// Counts rows as a run counts its turns.
struct RowCounter {
    recorder: Recorder,
    counted: Snapshot,
    series: TimeSeries,
    /// When the load began.
    origin: Moment,
    /// End of the last turn.
    last: Moment,
    read: u64,
    /// Turns that the rows represent.
    turns: u64,
    unreadable: u64,
    /// Whether the last line was unreadable.
    cut: bool,
    /// Names of parts of times, in the order of their numbers.
    part_names: Vec<String>,
}

impl RowCounter {
    fn new(metadata: &RunMetadata) -> Self {
        let recorder = Recorder::new(
            metadata.stages.iter().map(|stage| seconds(stage.start_s + stage.duration_s)).collect(),
        );
        let goodput = metadata.goodput.as_ref().and_then(|text| text.parse().ok());
        let origin = metadata.stages.first().map_or(Moment::EPOCH, |first| seconds(first.start_s));
        let recorder = recorder.starting_at(origin).with_goodput(goodput);
        let (counted, series) = (Snapshot::new(), TimeSeries::new(origin));
        Self {
            recorder,
            counted,
            series,
            origin,
            last: origin,
            read: 0,
            turns: 0,
            unreadable: 0,
            cut: false,
            part_names: Vec::new(),
        }
    }

    fn add(&mut self, line: &[u8], metadata: &RunMetadata) -> Result<(), RunFileError> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let row = parse_row(line);
        self.cut = row.is_err();
        match row {
            Ok(row) => self.count(&row.sample(metadata)?, &row),
            Err(_) => self.unreadable += 1,
        }
        Ok(())
    }

    /// Counts a row by its weight, the number of turns that it represents.
    fn count(&mut self, sample: &Sample, row: &ParsedRow) {
        let last = self.last.max(sample.timeline.finished.unwrap_or_default());
        if self.interval_number(self.last) != self.interval_number(last) {
            self.end_interval();
        }
        self.last = last;
        (self.read, self.turns) = (self.read + 1, self.turns + u64::from(row.weight));
        let parts = self.parts(row);
        for _ in 0..row.weight {
            self.recorder.scheduled_in(GroupKey::for_sample(sample));
            self.recorder.record(sample, &[], &[]);
            if let Some(parts) = &parts {
                self.recorder.record_parts(sample, parts);
            }
        }
    }

    /// The parts of its time that the target of a row names, by the order in which rows have them.
    fn parts(&mut self, row: &ParsedRow) -> Option<ServerParts> {
        let mut times = PartTimes::default();
        for (name, millis) in &row.server_parts_ms {
            let time = &mut times[self.part_number(name)];
            *time = Some(time.unwrap_or_default() + Nanos::from_secs_f64(millis / 1e3));
        }
        (!row.server_parts_ms.is_empty()).then_some(ServerParts::Told(times))
    }

    fn part_number(&mut self, name: &str) -> usize {
        let names = &mut self.part_names;
        let known = names.iter().position(|known| known == name);
        if known.is_none() && names.len() < NAMED_PARTS && name != OTHER_PARTS {
            names.push(name.to_owned());
            return names.len() - 1;
        }
        known.unwrap_or(NAMED_PARTS)
    }

    /// Ends an interval. Rows are in the order in which the requests ended.
    fn end_interval(&mut self) {
        let interval = self.recorder.take();
        let end = (self.interval_number(self.last) + 1) * INTERVAL.as_u64();
        self.series.add(self.origin + Nanos::new(end), &interval);
        self.counted.append(interval);
    }

    /// The number of the interval of the run in which something was.
    fn interval_number(&self, moment: Moment) -> u64 {
        moment.since(self.origin).as_u64() / INTERVAL.as_u64()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<_> = [REBUILT, NO_GAPS, NO_END].map(str::to_owned).into();
        if self.turns > self.read {
            let (rows, turns) = (self.read, self.turns);
            notes.push(format!(
                "{rows} rows were written of about {turns} requests: counts are estimates, \
                 and confidence intervals too narrow"
            ));
        }
        let inner = self.unreadable - u64::from(self.cut);
        if self.cut {
            notes.push("the last line of results.jsonl is cut, and left out".to_owned());
        }
        if inner > 0 {
            notes.push(format!(
                "{inner} other lines of results.jsonl cannot be read, and are left out"
            ));
        }
        notes
    }
}

/// Shortens a stage that was cut off: it lasted until the last response, as far as is known. The
/// rate of a stage without its own rows is unknown, although responses of the previous stage
/// arrived in it.
fn shorten(stage: &mut StageInfo, last: Moment, has_rows: bool) {
    let lasted = last.since(seconds(stage.start_s)).as_secs_f64();
    stage.duration_s = if has_rows { stage.duration_s.min(lasted) } else { 0.0 };
}

fn seconds(seconds: f64) -> Moment {
    Moment::EPOCH + Nanos::from_secs_f64(seconds)
}

// Writes and reads `counts.bin`: all that a shard counted, as whole numbers that can be added up.
//
// One line with the layout and the version of the tool, a CRC-32 of the rest as four little-endian
// bytes, then the counts in the format of `postcard`. The layout follows from the types, so only
// the version that wrote a file reads it.

/// Version of the layout of `counts.bin`.
pub const COUNTS_SCHEMA: &str = "plimsoll.counts/3";

/// The length of the checksum.
const CRC: usize = 4;

/// Counts of a shard.
#[derive(Debug, Default, Deserialize)]
pub struct Counts {
    /// Whether the shard ended, so that no further count will come.
    pub complete: bool,
    /// Counters and distributions.
    pub snapshot: Snapshot,
    /// The same by second.
    pub series: TimeSeries,
    /// The tasks of agents; empty before the end of the shard.
    pub tasks: TaskTally,
}

/// [`Counts`] that are about to be written.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CountsView<'a> {
    /// As in [`Counts`].
    pub complete: bool,
    /// As in [`Counts`].
    pub snapshot: &'a Snapshot,
    /// As in [`Counts`].
    pub series: &'a TimeSeries,
    /// As in [`Counts`].
    pub tasks: &'a TaskTally,
}

/// The bytes of `counts.bin`; `version` is the version of the tool.
///
/// # Errors
/// [`RunFileError::Counts`], which counts of this tool do not cause.
pub fn counts_bytes(counts: &CountsView<'_>, version: &str) -> Result<Vec<u8>, RunFileError> {
    let body =
        postcard::to_stdvec(counts).map_err(|error| RunFileError::Counts(error.to_string()))?;
    let mut bytes = format!("{}\n", first_line(version)).into_bytes();
    bytes.extend(crc32fast::hash(&body).to_le_bytes());
    bytes.extend(body);
    Ok(bytes)
}

/// Reads the output of [`counts_bytes`] by the same version of the tool.
///
/// # Errors
/// [`RunFileError::Counts`] if another version wrote it, or it is damaged.
pub fn read_counts(bytes: &[u8], version: &str) -> Result<Counts, RunFileError> {
    let end = bytes.iter().take(200).position(|byte| *byte == b'\n');
    let found = end.and_then(|end| str::from_utf8(&bytes[..end]).ok());
    let (found, end) = found.zip(end).ok_or_else(|| refused("it has no first line"))?;
    let known = first_line(version);
    if found != known {
        let why = format!("its layout is `{found}`, and this version reads `{known}`");
        return Err(RunFileError::Counts(why));
    }
    let rest = &bytes[end + 1..];
    let (crc, body) = rest.split_at_checked(CRC).ok_or_else(|| refused("it is cut"))?;
    if crc32fast::hash(body).to_le_bytes() != crc {
        return Err(refused("its checksum is wrong: it was changed or cut; copy it again"));
    }
    postcard::from_bytes(body).map_err(|error| refused(&error.to_string()))
}

fn refused(why: &str) -> RunFileError {
    RunFileError::Counts(why.to_owned())
}

fn first_line(version: &str) -> String {
    format!("{COUNTS_SCHEMA} {version}")
}
