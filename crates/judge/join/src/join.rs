//! The join: reads the run, chooses the map, reads the log, and judges the match.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use plimsoll_import::Rows;
use plimsoll_measure::CacheState;

use crate::cell::cells;
use crate::error::{JoinError, quoted, unreadable};
use crate::map::{Field, LogOf, Map, MapChoice, choose};
use crate::matcher::Joiner;
use crate::run::{Fate, Progress, Reading, Request, Run, RunChoice, run_id};
use crate::times::{self, Caches, GroupTimes, Join, MatchCounts, SCHEMA, StageTimes, Verdict};
use crate::{check, rows};

/// Share of requests outside the period of the log above which the join is inconclusive.
const UNCOVERED: f64 = 0.01;

/// Fewer missing requests than this at the ends of a short run count as lost.
const AT_THE_ENDS: u64 = 3;

/// Options of a join.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Choice of requests.
    pub run: RunChoice,
    /// Choice of the map.
    pub map: MapChoice,
    /// Share of requests that the log may lose, from 0 to 1.
    pub allow_lost: f64,
    /// File that receives a line of JSON per request at the end.
    pub rows: Option<PathBuf>,
}

/// Matches the requests of the run in `folder` with a log. `shown` receives the map before the log
/// is read, `tell` the progress of reading.
///
/// # Memory
/// About 320 bytes per request of the run; at the end, another 50 bytes or so per request of the
/// largest group of scenario and outcome. Rows of the log need no memory.
///
/// # Errors
/// [`JoinError`]; [`JoinError::is_usage`] distinguishes wrong calls.
pub fn join(
    folder: &Path,
    log: &Path,
    options: &Options,
    shown: &mut dyn FnMut(&Map),
    tell: &mut dyn FnMut(Reading, u64),
) -> Result<Join, JoinError> {
    let (log_rows, columns) = open(log)?;
    let map = choose(&options.map, &columns)?;
    shown(&map);
    let mut run = Run::read(folder, &options.run, &mut Progress::new(tell))?;
    let (span, log_name) = (run.span(), quoted(&log.display().to_string()));
    let mut joiner = Joiner::new(&mut run, &map, Progress::new(tell));
    read(log, log_rows, &mut joiner)?;
    joiner.close();
    check::rows(&joiner, &log_name)?;
    check::matches(&joiner, span, &log_name)?;
    let (impossible, refused) = check::times(&joiner)?;
    check::dates_are_near(joiner.run)?;
    let steps_ms = Some(joiner.quality.steps()).filter(|steps| *steps > 0);
    let steps_ms = steps_ms.map(|steps| steps as f64 / 1e6);
    let log_of = map.log_of;
    let (times, stages) =
        refused.as_ref().map_or_else(|| both_times(&joiner), |_| Default::default());
    let caches = caches(joiner.run);
    let stated = times::stated_times(joiner.run, log_of);
    let notes = notes(&joiner);
    let verdict = verdict(&joiner, options.allow_lost);
    let Joiner { books, disagreements, examples, .. } = joiner;
    if let Some(path) = &options.rows {
        rows::write(path, &run, log_of, refused.is_none())?;
    }
    Ok(Join {
        schema: SCHEMA.to_owned(),
        run: folder.display().to_string(),
        run_id: run_id(folder),
        log: log_name,
        map: map.shown(),
        map_origin: map.origin.clone(),
        log_of,
        verdict,
        books,
        disagreements,
        examples,
        times,
        caches,
        stated,
        stages,
        steps_ms,
        times_refused: refused,
        impossible,
        notes,
    })
}

/// The times by group, and the means by stage.
fn both_times(joiner: &Joiner<'_, '_>) -> (Vec<GroupTimes>, Vec<StageTimes>) {
    let log_of = joiner.map.log_of;
    (times::by_group(joiner.run, log_of), times::by_stage(joiner.run, log_of))
}

fn verdict(joiner: &Joiner<'_, '_>, allow_lost: f64) -> Verdict {
    let books = &joiner.books;
    if let Some(why) = uncovered(joiner.run, books) {
        return Verdict::Unjudged(why);
    }
    let must = books.matched + books.lost;
    if books.unnamed as f64 > (must + books.unnamed) as f64 * UNCOVERED {
        return Verdict::Unjudged(format!(
            "{} responses have no id header of their own, and no row with the id that was sent",
            books.unnamed
        ));
    }
    let lost = books.lost as f64 > must as f64 * allow_lost;
    if lost || books.twice > 0 || books.disagreeing > 0 || books.never_sent_in_log > 0 {
        Verdict::Disagree
    } else {
        Verdict::Agree
    }
}

/// Detects a log that begins after the run or ends before it, and therefore covers only a part of
/// it. By the run's clock, all its missing requests are before the first match or after the last.
fn uncovered(run: &Run, books: &MatchCounts) -> Option<String> {
    let matched = run.requests.iter().filter(|request| request.rows > 0).map(|r| r.sent);
    let (first, last) = (matched.clone().min()?, matched.max()?);
    let count = run
        .requests
        .iter()
        .filter(|request: &&Request| {
            request.rows == 0 && request.fate == Fate::Answered && !request.kept && request.named
        })
        .filter(|request| request.sent < first || request.sent > last)
        .count() as u64;
    let many =
        count >= AT_THE_ENDS && count as f64 > (books.matched + books.lost) as f64 * UNCOVERED;
    many.then(|| {
        format!(
            "{count} of {} missing requests were sent before the first or after the last row of the log: it covers only part of the run",
            books.lost
        )
    })
}

fn notes(joiner: &Joiner<'_, '_>) -> Vec<String> {
    let (run, books) = (&joiner.run, &joiner.books);
    let mut notes = Vec::new();
    if run.sampled {
        notes.push(
            "the run's rows are a sample: only these are matched, and foreign rows may belong to the other requests"
                .to_owned(),
        );
    }
    if run.cut {
        notes.push("the last row of the run is truncated and ignored".to_owned());
    }
    if run.without_header > 0 {
        notes.push(format!(
            "{} responses lack the id header: their requests are matched by the id that was sent",
            run.without_header
        ));
    }
    if run.shared_header > 0 {
        notes.push(format!(
            "{} responses repeat the id of an earlier one, as a cache does: their requests are matched by the id that was sent",
            run.shared_header
        ));
    }
    if books.unreadable > 0 {
        let example = joiner.unreadable.as_deref().unwrap_or_default();
        notes.push(format!("malformed lines of the log: {} ({example})", books.unreadable));
    }
    for field in Field::ALL {
        let bad = &joiner.quality.bad[field as usize];
        if bad.rows > 0 {
            let name = field.name();
            notes.push(format!(
                "{} invalid values of `{name}`, such as `{}`",
                bad.rows, bad.example
            ));
        }
    }
    if joiner.map.log_of == LogOf::Upstream {
        notes.push("this is the upstream's log: `outside` is everything in front of it".to_owned());
    }
    if books.foreign > 0 {
        notes.push(
            "before its load a run sends up to 3 probes for each target and dialect, which have no \
             rows of their own: they are foreign"
                .to_owned(),
        );
    }
    notes
}

// Cache results according to the log and the response headers.

/// Counts over all matched requests; `None` if the log has no cache states.
pub(crate) fn caches(run: &Run) -> Option<Caches> {
    let mut caches = Caches::default();
    for request in run.requests.iter().filter(|request| request.rows > 0) {
        match request.log.cache {
            Some(CacheState::Hit) => caches.hits += 1,
            Some(CacheState::Miss) => caches.misses += 1,
            Some(CacheState::Bypass) => caches.bypassed += 1,
            None => caches.unknown += 1,
        }
        let both = request.cache.zip(request.log.cache);
        let unlike = both
            .is_some_and(|(header, log)| (header == CacheState::Hit) != (log == CacheState::Hit));
        caches.unlike_headers += u64::from(unlike);
    }
    (caches.hits + caches.misses + caches.bypassed > 0).then_some(caches)
}

/// Opens a log, and finds the names of its columns.
fn open(path: &Path) -> Result<(Rows, Vec<String>), JoinError> {
    let rows = Rows::open(path).map_err(|error| unreadable(path, &error))?;
    let columns = rows.columns();
    if columns.is_empty() {
        return Err(JoinError::NoRows(format!("{} has no rows", path.display())));
    }
    Ok((rows, columns))
}

/// Passes every row to the joiner.
fn read(path: &Path, rows: Rows, joiner: &mut Joiner<'_, '_>) -> Result<(), JoinError> {
    let read = rows.read(&mut |(unit, number), row| {
        match row {
            Ok(row) if row.is_object() => joiner.add(&cells(&row, joiner.map)),
            Ok(_) => joiner.add_unreadable(&format!("{unit} {number}: is not an object")),
            Err(why) => joiner.add_unreadable(&format!("{unit} {number}: {why}")),
        }
        ControlFlow::Continue(())
    });
    read.map_err(|error| unreadable(path, &error))
}
