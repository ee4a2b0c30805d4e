//! The result of all shards together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use plimsoll_measure::{NAMED_PARTS, Nanos, StageId, Stripe};
use plimsoll_metrics::{
    Judgement, Level, Limit, Losses, Metric, RunEnd, RunMetadata, RunSummary, ShardPart,
    ShardState, Snapshot, StageInfo, TaskTally, TimeRecord, TimeSeries,
};
use plimsoll_run_files::{BoundedLines, Counts, find_rows, open_rows};

use crate::health;
use crate::shard::{MergeError, Shard};
use crate::shard_set::{self, ShardSet};

/// Limits for the merged result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judges<'a> {
    /// The limits of the plan.
    pub limits: &'a [Limit],
    /// The part of the load that may be missing, from 0 to 1; the rest is then judged.
    pub lost_at_most: f64,
}

/// The result of all shards together.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The run.
    pub summary: RunSummary,
    /// Timeline of the run.
    pub record: TimeRecord,
}

/// The counts of the shards that were added so far.
#[derive(Default)]
struct Sum {
    snapshot: Snapshot,
    series: Option<TimeSeries>,
    tasks: TaskTally,
    server_parts: Vec<String>,
}

impl Sum {
    fn add(&mut self, shard: &Shard, counts: Counts) {
        let Counts { mut snapshot, series, tasks, .. } = counts;
        let names = &shard.metadata().server_parts;
        let numbers = number(&mut self.server_parts, names);
        snapshot.renumber_server_parts(&numbers);
        self.snapshot.merge(snapshot);
        self.tasks.merge(&tasks);
        match &mut self.series {
            Some(sum) => sum.merge(&series),
            none => *none = Some(series),
        }
    }
}

/// The arrivals of each stage that belong to a shard, and that it did not count.
fn unsent(place: Stripe, stages: &[StageInfo], counts: Option<&Counts>) -> Vec<(StageId, u64)> {
    let mut before = 0;
    let of_stages = stages.iter().zip(0..).map(|(stage, index)| {
        let id = StageId(index);
        let after = before + stage.arrivals.unwrap_or(0);
        let planned = place.share(after) - place.share(before);
        let counted = counts.map_or(0, |counts| {
            counts.snapshot.total(|key| key.stage == id).counters().arrivals_planned
        });
        before = after;
        (id, planned.saturating_sub(counted))
    });
    of_stages.collect()
}

impl ShardSet {
    /// Adds all shards up. Only the counts of one shard are in memory at a time, beside the sum.
    ///
    /// Shards that are missing, cut off or late make the result invalid, unless the judges accept
    /// the loss: its thresholds are not judged, and the figures cover the known shards only.
    ///
    /// # Errors
    /// A file of a shard is damaged or cannot be read.
    pub fn merge(&self, judges: Judges<'_>) -> Result<Merged, MergeError> {
        let (mut sum, mut parts, mut unsent_arrivals) = (Sum::default(), Vec::new(), Vec::new());
        let time = shard_set::merge(self, Vec::new()).headline_time();
        let stages = self.shards.first().map_or(&[][..], |first| &first.planned.stages);
        let load_s = stages.iter().map(|stage| stage.duration_s).sum();
        for place in (0..self.count).filter_map(|index| Stripe::new(index, self.count)) {
            let mut shard = self.shards.iter().find(|shard| shard.place == place).cloned();
            let counts = shard.as_mut().map(Shard::counts).transpose()?.flatten();
            let mut part = Part::new(place, shard.as_ref(), counts.as_ref(), time);
            part.shown.planned_s = load_s;
            if part.shown.state != ShardState::Done {
                unsent_arrivals.extend(unsent(place, stages, counts.as_ref()));
            }
            parts.push(part);
            if let Some((shard, counts)) = shard.zip(counts) {
                sum.add(&shard, counts);
            }
        }
        align(&mut parts);
        let losses = self.losses(&parts);
        if losses.any && !losses.are_within(judges.lost_at_most) {
            // The plan of the whole is the same, whatever became of its shards.
            for (stage, count) in unsent_arrivals {
                sum.snapshot.add_unsent(stage, count);
            }
        }
        let summaries: Vec<_> =
            self.shards.iter().filter_map(|shard| shard.summary.as_ref()).collect();
        let whole = summaries.len() as u64 == self.count;
        let health = health::merge(&summaries, &sum.snapshot, whole);
        let mut metadata = shard_set::merge(self, sum.server_parts);
        if summaries.is_empty() {
            let counted = parts.iter().filter_map(|part| part.shown.counted_s);
            shard_set::cut(&mut metadata, counted.fold(0.0, f64::max));
        }
        let mut summary = RunSummary::build(metadata, health, &sum.snapshot, judges.limits)?
            .with_tasks(&sum.tasks)?;
        summary.shards = parts.into_iter().map(|part| part.shown).collect();
        summary.lost_at_most = judges.lost_at_most;
        if let Some(busiest) = busiest(&summaries) {
            summary.processes.clone_from(&busiest.processes);
            summary.resources.clone_from(&busiest.resources);
        }
        // One shard reads the metrics of servers.
        let mut servers = summaries.iter().map(|shard| &shard.servers);
        summary.servers = servers.find(|servers| !servers.is_empty()).cloned().unwrap_or_default();
        let series = sum.series.unwrap_or_default();
        let record = TimeRecord::build(&series, &summary.metadata, &summary.health, &[])?;
        summary.time_facts = record.facts.clone();
        if self.was_interrupted() {
            summary.metadata.run.ended = RunEnd::Interrupted;
        }
        apply(&mut summary);
        Ok(Merged { summary, record })
    }

    /// Missing part of the load; empty if a signal ended every shard, and so the whole run.
    fn losses(&self, parts: &[Part]) -> Losses {
        if self.was_interrupted() {
            return Losses::default();
        }
        Losses::of(parts.iter().map(|part| &part.shown))
    }
}

/// The shard whose generator was busiest: its use of its host is the evidence for the bottleneck.
fn busiest<'a>(summaries: &[&'a RunSummary]) -> Option<&'a RunSummary> {
    summaries.iter().copied().max_by(|a, b| demand(a).total_cmp(&demand(b)))
}

fn demand(summary: &RunSummary) -> f64 {
    summary.health.highest_demand().unwrap_or(0.0)
}

/// A shard beside the others.
pub(crate) struct Part {
    pub(crate) shown: ShardPart,
    /// Start of its load by its wall clock, in nanoseconds since 1970 UTC.
    pub(crate) started_unix_ns: Option<u64>,
}

impl Part {
    /// A shard with its counts, if its folder and its counts were found; `time` heads the report.
    pub(crate) fn new(
        place: Stripe,
        shard: Option<&Shard>,
        counts: Option<&Counts>,
        time: Metric,
    ) -> Self {
        let Some(shard) = shard else {
            let shard = format!("{}/{}", place.index(), place.count());
            let shown = ShardPart { shard, state: ShardState::Missing, ..ShardPart::default() };
            return Self { shown, started_unix_ns: None };
        };
        let mut shown = ShardPart {
            shard: shard.name(),
            state: shard.state(),
            damaged: shard.files.damaged.values().cloned().collect(),
            valid: shard.summary.as_ref().map(RunSummary::is_valid),
            ..ShardPart::default()
        };
        let status = shard.status.as_ref();
        shown.interrupted = status.and_then(|status| status.interrupted);
        shown.late_by_s =
            status.and_then(|status| status.late_by_ns).map(|late| Nanos::new(late).as_secs_f64());
        shown.clock_uncertainty_s = status
            .and_then(|status| status.clock_uncertainty_ns)
            .map(|uncertainty| Nanos::new(uncertainty).as_secs_f64());
        let Some(counts) = counts else { return Self { shown, started_unix_ns: None } };
        fill(&mut shown, &counts.snapshot, &shard.planned, time);
        shown.counted_all = counts.complete && shown.interrupted.is_none();
        shown.counted_s = Some(counts.series.length().as_secs_f64());
        let origin = counts.series.origin().as_nanos();
        let started = shard.metadata().run.started_unix_ns.saturating_add(origin);
        let ahead = status.and_then(|status| status.clock_offset_ns).unwrap_or(0);
        let started = started.saturating_add_signed(ahead.saturating_neg());
        Self { shown, started_unix_ns: Some(started) }
    }
}

fn fill(shown: &mut ShardPart, snapshot: &Snapshot, planned: &RunMetadata, time: Metric) {
    let whole = snapshot
        .total(|key| planned.stages.get(key.stage.index()).is_some_and(|stage| !stage.warmup));
    let counters = whole.counters();
    shown.scheduled = counters.scheduled;
    shown.completed = counters.completed;
    shown.unexpected = counters.unexpected;
    if let Some(times) = whole.distribution(time) {
        shown.p50_ms = times.quantile(0.5).map(Nanos::as_millis_f64);
        shown.p99_ms = times.quantile(0.99).map(Nanos::as_millis_f64);
    }
}

/// Fills in when each shard began after the first one.
pub(crate) fn align(parts: &mut [Part]) {
    let first = parts.iter().filter_map(|part| part.started_unix_ns).min().unwrap_or(0);
    for part in parts {
        let started = part.started_unix_ns;
        part.shown.start_s = started.map(|started| Nanos::new(started - first).as_secs_f64());
    }
}

// Judges the whole by the findings about its shards.

/// Findings of shards that did not send the planned load.
const SHARDS: [u16; 2] = [109, 110];

/// Applies the rules to all shards. Limits are not judged if the load was not as planned.
fn apply(summary: &mut RunSummary) {
    summary.find();
    let is_of_shards = |code: &u16| SHARDS.contains(code);
    let why = summary
        .of_level(Level::Invalid)
        .find(|finding| is_of_shards(&finding.code))
        .map(|finding| finding.text().trim_end_matches('.').to_owned());
    let Some(why) = why else { return };
    for threshold in &mut summary.thresholds {
        threshold.judgement = Judgement::Inconclusive(why.clone());
        threshold.level = None;
    }
}

// The names of the parts that targets state in headers. Each shard numbers them as they come.

/// Adds the names of a shard to those that are known, and returns the common number of each of its
/// own; `None` for those beyond the ones that have a number.
pub(crate) fn number(known: &mut Vec<String>, names: &[String]) -> Vec<Option<usize>> {
    names
        .iter()
        .map(|name: &String| {
            let found = known.iter().position(|other| other == name);
            found.or_else(|| {
                let free = known.len();
                (free < NAMED_PARTS).then(|| {
                    known.push(name.clone());
                    free
                })
            })
        })
        .collect()
}

// The rows of all shards in one file.

/// Writes the lines of `name` (`results.jsonl` or `tasks.jsonl`) of all shards, by intended start
/// where they have one, and returns their number. One line of each shard is in memory. Lines that
/// are cut are left out, and files that are damaged.
///
/// # Errors
/// A file cannot be read, or `out` cannot be written.
pub fn merge_rows(set: &ShardSet, name: &str, out: &mut dyn Write) -> Result<u64, MergeError> {
    let mut files = Vec::new();
    for shard in set.shards() {
        let Some(path) = find_rows(shard.folder(), name) else { continue };
        if path.file_name().is_some_and(|name| !shard.is_whole(&name.to_string_lossy())) {
            continue;
        }
        match open_rows(&path) {
            Ok(file) => files.push(BoundedLines::new(file)),
            Err(source) => return Err(MergeError::Read { path, source }),
        }
    }
    let mut next = BinaryHeap::new();
    for (index, file) in files.iter_mut().enumerate() {
        next.extend(file.next().map(|line| Reverse((intended(&line), index, line))));
    }
    let mut rows = 0;
    while let Some(Reverse((_, index, line))) = next.pop() {
        if line.ends_with(b"}") {
            out.write_all(&line).and_then(|()| out.write_all(b"\n")).map_err(MergeError::Write)?;
            rows += 1;
        }
        next.extend(files[index].next().map(|line| Reverse((intended(&line), index, line))));
    }
    Ok(rows)
}

/// The intended start in a row, in nanoseconds since 1970 UTC; 0 if it has none.
fn intended(line: &[u8]) -> u64 {
    const KEY: &[u8] = b"\"intended_unix_ns\":";
    let Some(at) = line.windows(KEY.len()).position(|window| window == KEY) else { return 0 };
    let digits = line[at + KEY.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u64, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_has_the_same_number_in_all_shards() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut known = Vec::new();
        assert_eq!(number(&mut known, &names("db auth")), [Some(0), Some(1)]);
        assert_eq!(number(&mut known, &names("auth cache db")), [Some(1), Some(2), Some(0)]);
        let many = number(&mut known, &names("a b c d e f g"));
        assert_eq!(many, [Some(3), Some(4), Some(5), Some(6), Some(7), None, None]);
    }
}
