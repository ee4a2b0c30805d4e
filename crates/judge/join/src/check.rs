//! Checks that a log is readable with its map, belongs to the run, and has comparable times. Every
//! error names its cause and remedy.

use crate::error::{JoinError, quoted};
use crate::map::Field;
use crate::matcher::Joiner;
use crate::run::{Request, Run};
use crate::times::{self, MatchCounts};

/// Clocks further apart than this indicate a wrong time zone or unit. In milliseconds.
const APART: f64 = 1_800_000.0;

/// Share of bad values or lines from which the map counts as wrong.
const BAD: f64 = 0.01;

/// Checks that the log is readable with its map.
pub(crate) fn rows(joiner: &Joiner<'_, '_>, log: &str) -> Result<(), JoinError> {
    let MatchCounts { in_log, unreadable, .. } = joiner.books;
    if in_log == 0 && unreadable == 0 {
        return Err(JoinError::NoRows(format!("{log} has no rows")));
    }
    if unreadable as f64 > (in_log + unreadable) as f64 * BAD && unreadable > 1 {
        let example = joiner.unreadable.as_deref().unwrap_or_default();
        return Err(JoinError::Usage(format!(
            "{unreadable} lines of {log} are malformed; the first is {example}"
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

/// Checks that the log belongs to this run.
pub(crate) fn matches(
    joiner: &Joiner<'_, '_>,
    span: (i64, i64),
    log: &str,
) -> Result<(), JoinError> {
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
    let theirs = joiner.examples.foreign.first().map_or("-", String::as_str);
    let times = joiner.span.map_or_else(String::new, |(first, last)| {
        let outside = first > span.1.saturating_add(3_600_000_000_000)
            || last < span.0.saturating_sub(3_600_000_000_000);
        let which = if outside {
            "it belongs to another run, or its clock is hours off: it is"
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
    let remedy = if joiner.map.entry(Field::Text).is_some() {
        "If the gateway does not forward the id, put it into the prompts (`cache_mode: bust` in the profile) and log the beginning of each prompt (`log_text: true` of the mock)"
    } else {
        "If the gateway makes its own ids, record the header of its answers that has them \
         (`response_headers.record` in the profile) and name it with --id-header"
    };
    Err(JoinError::Usage(format!(
        "none of the {rows} rows of {log} has an id of this run: it has ids like {theirs}, the run \
         like {run_id}{times}. {remedy}"
    )))
}

/// Returns the number of requests that took longer in the log than for the client, and the reason
/// if the times are not comparable.
pub(crate) fn times(joiner: &Joiner<'_, '_>) -> Result<(u64, Option<String>), JoinError> {
    let refused = lengths(joiner)?.or_else(|| upstream(joiner));
    let step = joiner.quality.length_step.unwrap_or(0);
    let (impossible, too_many) = times::impossible(joiner.run, step);
    let longer = format!(
        "{impossible} requests took longer in the log than for the client: the log's time is \
         not part of the client's"
    );
    Ok((impossible, refused.or_else(|| too_many.then_some(longer))))
}

/// Checks that the durations of the log are in the map's units; returns the reason if it has none.
fn lengths(joiner: &Joiner<'_, '_>) -> Result<Option<String>, JoinError> {
    let Some(entry) = joiner.map.entry(Field::Total).or_else(|| joiner.map.entry(Field::Ended))
    else {
        return Ok(Some("the map has no time (total)".to_owned()));
    };
    let Some((field, unit)) = entry.unit.map(|unit| (entry.field, unit)) else { return Ok(None) };
    let wrong = times::true_unit(joiner.run, unit).filter(|_| field == Field::Total);
    if let Some(seems) = wrong {
        return Err(JoinError::Usage(format!(
            "column {} has another unit: read as {}, it differs from the client's times by a power of 1,000. It seems to be in {}: --map {}={}:{}",
            quoted(&entry.column),
            unit.name(),
            seems.name(),
            field.name(),
            quoted(&entry.column),
            seems.name()
        )));
    }
    let known = joiner.run.requests.iter().any(|request| request.log_total.is_some());
    Ok((!known).then(|| "no matched row has a time".to_owned()))
}

/// Checks that the upstream time is a part of the total; returns the reason if it is not.
fn upstream(joiner: &Joiner<'_, '_>) -> Option<String> {
    let entry = joiner.map.entry(Field::Upstream)?;
    let steps = joiner.quality.steps();
    let (longer, both) = times::longer_upstream(joiner.run, steps);
    if longer as f64 > both as f64 * times::IMPOSSIBLE {
        return Some(format!(
            "the upstream took longer than the log's own total in {longer} of {both} requests: its column has another unit, or is not part of the total (--map upstream= leaves it out)"
        ));
    }
    let (heads, streams) = times::upstream_heads(joiner.run, steps);
    (heads * 2 > streams).then(|| {
        let column = quoted(&entry.column);
        format!(
            "{column} ends before the client's first byte in {heads} of {streams} streams: it is \
             the time to the upstream's head (--map upstream= leaves it out)"
        )
    })
}

fn utc(nanos: i64) -> String {
    plimsoll_report::format::utc(u64::try_from(nanos).unwrap_or_default())
}

/// Rejects arrival times that are nowhere near the run, in any order of the rows.
pub(crate) fn dates_are_near(run: &Run) -> Result<(), JoinError> {
    let Some((nearest, at, sent)) = run
        .requests
        .iter()
        .filter_map(|request: &Request| {
            let at = request.log_at?;
            Some((at.abs_diff(request.sent), at, request.sent))
        })
        .min()
    else {
        return Ok(());
    };
    if nearest as f64 / 1e6 < APART {
        return Ok(());
    }
    Err(JoinError::Usage(format!(
        "the log's times have another unit or zone: a request that was sent at {} arrived at {}. \
         Correct `at` or `ended` in --map, or leave it out with --map at=",
        utc(sent),
        utc(at)
    )))
}
