//! The join: reads the run, chooses the map, reads the log, judges.

use std::path::Path;

use crate::books::Joiner;
use crate::clock::Clocks;
use crate::error::{JoinError, quoted};
use crate::map::{Field, LogOf, Map};
use crate::preset::{MapChoice, choose};
use crate::progress::{Progress, Reading};
use crate::result::{Books, Join, SCHEMA, Verdict};
use crate::run::{Fate, Run, RunChoice};
use crate::source::{Source, Window};
use crate::times;

/// Clocks further apart than this are a wrong zone or unit.
const APART: f64 = 1_800_000.0;

/// The share of bad values or lines from which on the map is wrong.
const BAD: f64 = 0.01;

/// The share of the requests outside of what the log covers from which on nothing can be said.
const UNCOVERED: f64 = 0.01;

/// What is joined, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Of the run.
    pub run: RunChoice,
    /// Of the log.
    pub map: MapChoice,
    /// The share of requests that the log may lose, from 0 to 1.
    pub allow_lost: f64,
}

/// Matches the requests of the run in `folder` with a log. `shown` gets the map before the log is
/// read, `tell` how far the reading is.
///
/// # Memory
/// About 220 bytes for each request of the run, and some 50 more at the end for each of those of
/// its largest group of scenario and outcome; nothing for rows of the log.
///
/// # Errors
/// [`JoinError`], of which [`JoinError::is_usage`] says whether the call was wrong.
pub fn join(
    folder: &Path,
    source: &Source,
    options: &Options,
    shown: &mut dyn FnMut(&Map),
    tell: &mut dyn FnMut(Reading, u64),
) -> Result<Join, JoinError> {
    let columns = source.columns()?;
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let map = source.typed(choose(&options.map, &names)?, &columns);
    shown(&map);
    let mut run = Run::read(folder, &options.run, &mut Progress::new(tell))?;
    let (span, log) = (run.span(), source.name());
    let mut joiner = Joiner::new(&mut run, &map, Progress::new(tell));
    source.read(&map, &columns, &Window::around(span), &mut joiner)?;
    joiner.close();
    check_rows(&joiner, source)?;
    check_match(&joiner, span, &log)?;
    let refused_times = check_times(&joiner)?;
    let clock = clock(&joiner, span);
    if let Ok(bounds) = &clock {
        check_clock(bounds.offset_low_ms, bounds.offset_high_ms)?;
    }
    let step = joiner.quality.length_step.unwrap_or(0);
    let (impossible, too_many) = times::impossible(joiner.run, step);
    let refused = refused_times.or_else(|| {
        too_many.then(|| {
            format!(
                "{impossible} requests took the log's side longer than the client waited: the \
                 log's time is not part of the client's"
            )
        })
    });
    let log_of = map.log_of;
    let times = if refused.is_none() { times::by_group(joiner.run, log_of) } else { Vec::new() };
    let notes = notes(&joiner);
    let verdict = verdict(&joiner, options.allow_lost);
    let Joiner { books, disagreements, examples, .. } = joiner;
    let (clock, clock_refused) = match clock {
        Ok(clock) => (Some(clock), None),
        Err(why) => (None, Some(why)),
    };
    Ok(Join {
        schema: SCHEMA.to_owned(),
        run: folder.display().to_string(),
        log,
        map: map.shown(),
        map_origin: map.origin.clone(),
        log_of,
        verdict,
        books,
        disagreements,
        examples,
        times,
        times_refused: refused,
        impossible,
        clock,
        clock_refused,
        notes,
    })
}

/// Whether the log could be read as the map says.
fn check_rows(joiner: &Joiner<'_, '_>, source: &Source) -> Result<(), JoinError> {
    let Books { in_log, unreadable, .. } = joiner.books;
    let log = source.name();
    if in_log == 0 && unreadable == 0 {
        let of_table = " within 5 minutes of the run: it is a log of another run, or its times have \
                        another zone or unit. --map at= reads all rows";
        let of_table = if source.is_table() { of_table } else { "" };
        return Err(JoinError::Usage(format!("{log} has no rows{of_table}")));
    }
    if unreadable as f64 > (in_log + unreadable) as f64 * BAD && unreadable > 1 {
        let example = joiner.unreadable.as_deref().unwrap_or_default();
        return Err(JoinError::Usage(format!(
            "{unreadable} lines of {log} are no rows like the others; the first is {example}"
        )));
    }
    for field in Field::ALL {
        let Some(entry) = joiner.map.entry(field) else { continue };
        let (bad, filled) =
            (&joiner.quality.bad[field as usize], joiner.quality.filled[field as usize]);
        if bad.rows as f64 > filled as f64 * BAD {
            return Err(JoinError::Usage(format!(
                "{} of {filled} values of column {} cannot be read as {}, like `{}`: correct --map \
                 {}",
                bad.rows,
                quoted(&entry.column),
                field.name(),
                bad.example,
                entry.shown()
            )));
        }
    }
    Ok(())
}

/// Whether the log is one of this run at all.
fn check_match(joiner: &Joiner<'_, '_>, span: (i64, i64), log: &str) -> Result<(), JoinError> {
    if joiner.books.matched > 0 {
        return Ok(());
    }
    let rows = joiner.books.in_log;
    let run_id = quoted(joiner.run.id(0));
    let column =
        joiner.map.entry(Field::Id).map_or_else(String::new, |entry| quoted(&entry.column));
    if joiner.without_id == rows {
        return Err(JoinError::Usage(format!(
            "none of the {rows} rows of {log} has an id in column {column}: correct --map id=COLUMN"
        )));
    }
    let theirs = joiner.examples.foreign.first().cloned().unwrap_or_default();
    let times = joiner.span.map_or_else(String::new, |(first, last)| {
        let outside = first > span.1.saturating_add(3_600_000_000_000)
            || last < span.0.saturating_sub(3_600_000_000_000);
        let utc =
            |nanos: i64| plimsoll_report::format::utc(u64::try_from(nanos).unwrap_or_default());
        let which = if outside {
            "it is a log of another run, or its clock is hours away: it is"
        } else {
            "it is"
        };
        format!(
            "; {which} of {} to {}, and the run of {} to {}",
            utc(first),
            utc(last),
            utc(span.0),
            utc(span.1)
        )
    });
    Err(JoinError::Usage(format!(
        "none of the {rows} rows of {log} has an id of this run: it has ids like {theirs}, the run \
         like {run_id}{times}. If the gateway makes its own ids, record the header of its answers \
         that has them (`response_headers.record` in the profile) and name it with --id-header"
    )))
}

/// Whether the log's lengths are in the units of the map; why there are none, where it has none.
fn check_times(joiner: &Joiner<'_, '_>) -> Result<Option<String>, JoinError> {
    let Some(entry) = joiner.map.entry(Field::Total).or_else(|| joiner.map.entry(Field::Ended))
    else {
        return Ok(Some("the map names no time of the log (total)".to_owned()));
    };
    let Some((field, unit)) = entry.unit.map(|unit| (entry.field, unit)) else { return Ok(None) };
    let wrong = times::true_unit(joiner.run, unit).filter(|_| field == Field::Total);
    if let Some(seems) = wrong {
        return Err(JoinError::Usage(format!(
            "column {} is in other units: read as {} it is a power of 1,000 away from what the \
             client waited. It seems to be in {}: --map {}={}:{}",
            quoted(&entry.column),
            unit.name(),
            seems.name(),
            field.name(),
            quoted(&entry.column),
            seems.name()
        )));
    }
    let known = joiner.run.requests.iter().any(|request| request.log_total.get().is_some());
    Ok((!known).then(|| "no matched row has a time".to_owned()))
}

fn clock(joiner: &Joiner<'_, '_>, span: (i64, i64)) -> Result<crate::ClockBounds, String> {
    let Some(step) = joiner.quality.step else {
        return Err("the map names no time of arrival (at)".to_owned());
    };
    // A time of arrival that is computed from two others has the steps of both.
    let computed = joiner.map.entry(Field::At).is_none();
    let mut clocks = Clocks::new(span, if computed { step * 2 } else { step });
    for request in &joiner.run.requests {
        if let Some(at) = request.log_at.get()
            && request.fate != Fate::NeverSent
        {
            clocks.add(request.sent, request.service.get(), at, request.log_total.get());
        }
    }
    clocks.bounds().ok_or_else(|| {
        "no clock without a jump keeps all bounds, or the log has no lengths".to_owned()
    })
}

/// Hours between two clocks are no drift.
fn check_clock(low: f64, high: f64) -> Result<(), JoinError> {
    let nearest = if low > 0.0 { low } else { -high };
    if nearest < APART {
        return Ok(());
    }
    let (hours, side) = (nearest / 3_600_000.0, if low > 0.0 { "ahead of" } else { "behind" });
    Err(JoinError::Usage(format!(
        "the log's clock is {hours:.2} h {side} the run's, for the same requests: its times have \
         another zone or unit. Correct `at` or `ended` in --map, or leave it out with --map at="
    )))
}

fn verdict(joiner: &Joiner<'_, '_>, allow_lost: f64) -> Verdict {
    let books = &joiner.books;
    if let Some(why) = uncovered(joiner.run, books) {
        return Verdict::Unjudged(why);
    }
    let must = books.matched + books.lost;
    let lost = books.lost as f64 > must as f64 * allow_lost;
    if lost || books.twice > 0 || books.disagreeing > 0 || books.never_sent_in_log > 0 {
        Verdict::Disagree
    } else {
        Verdict::Agree
    }
}

/// A log that begins after the run or ends before it loses nothing: it covers only a part. Told by
/// the run's own clock: lost before the first match or after the last.
fn uncovered(run: &Run, books: &Books) -> Option<String> {
    let matched = run.requests.iter().filter(|request| request.rows > 0).map(|r| r.sent);
    let (first, last) = (matched.clone().min()?, matched.max()?);
    let is_lost = |request: &&crate::run::Request| {
        request.rows == 0 && request.fate == Fate::Answered && !request.kept
    };
    let beyond = |request: &crate::run::Request| request.sent < first || request.sent > last;
    let count =
        run.requests.iter().filter(is_lost).filter(|request| beyond(request)).count() as u64;
    let many = count as f64 > (books.matched + books.lost) as f64 * UNCOVERED;
    many.then(|| {
        format!(
            "{count} of {} missing requests were sent before the first or after the last that the \
             log has: it covers only a part of the run",
            books.lost
        )
    })
}

fn notes(joiner: &Joiner<'_, '_>) -> Vec<String> {
    let (run, books) = (&joiner.run, &joiner.books);
    let mut notes = Vec::new();
    if run.sampled {
        notes.push(
            "the run's rows are a sample: only these are looked for in the log, and foreign rows \
             may be of the others"
                .to_owned(),
        );
    }
    if run.cut {
        notes.push("the last line of the run's rows is cut, and left out".to_owned());
    }
    if run.without_header > 0 {
        notes.push(format!(
            "{} requests have no answer with the id header: they are looked for by the id that was \
             sent",
            run.without_header
        ));
    }
    if books.unreadable > 0 {
        let example = joiner.unreadable.as_deref().unwrap_or_default();
        notes.push(format!("lines of the log that are no rows: {} ({example})", books.unreadable));
    }
    for field in Field::ALL {
        let bad = &joiner.quality.bad[field as usize];
        if bad.rows > 0 {
            let name = field.name();
            notes.push(format!(
                "{} values of `{name}` cannot be read, like `{}`",
                bad.rows, bad.example
            ));
        }
    }
    if joiner.map.log_of == LogOf::Upstream {
        notes.push(
            "the log is of what is behind the target: `outside` is all that is in front of it"
                .to_owned(),
        );
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
