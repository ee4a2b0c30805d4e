//! Writes a line of JSON per request: its state, and the breakdown of its time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use plimsoll_measure::CacheState;
use serde::Serialize;

use crate::error::JoinError;
use crate::map::LogOf;
use crate::run::{Fate, Request, Run, ServerTiming};

/// State of a request, and its times in milliseconds. Unknown values are omitted.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Row<'r> {
    request_id: &'r str,
    scenario: &'r str,
    outcome: &'r str,
    warmup: bool,
    /// `matched`, `lost`, or the reason why the log may lack it.
    state: &'static str,
    /// Rows of the log.
    rows: u32,
    sent_unix_ns: i64,
    client_ms: Option<f64>,
    log_ms: Option<f64>,
    outside_ms: Option<f64>,
    gateway_ms: Option<f64>,
    upstream_ms: Option<f64>,
    /// Cache state in the response headers: `hit`, `miss`, `bypass`.
    cache: Option<&'static str>,
    log_cache: Option<&'static str>,
    log_status: Option<u32>,
    log_input_tokens: Option<u32>,
    log_output_tokens: Option<u32>,
    /// Times that the target reports in the response headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stated_ms: BTreeMap<&'r str, f64>,
}

/// Writes all requests in the order of the run, and replaces the file atomically. Without
/// `comparable` times, only the times of each side alone are included.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(
    path: &Path,
    run: &Run,
    log_of: LogOf,
    comparable: bool,
) -> Result<(), JoinError> {
    let new = path.with_extension("jsonl.new");
    let written = lines(&new, run, log_of, comparable).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        // The file may be incomplete.
        let _ = fs::remove_file(&new);
        JoinError::Unjudged(format!("cannot write {}: {error}", path.display()))
    })
}

fn lines(path: &Path, run: &Run, log_of: LogOf, comparable: bool) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(256 << 10, File::create(path)?);
    for (index, request) in run.requests.iter().enumerate() {
        serde_json::to_writer(&mut file, &row(run, index, request, log_of, comparable))?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

fn ms(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}

fn row<'r>(
    run: &'r Run,
    index: usize,
    request: &Request,
    log_of: LogOf,
    comparable: bool,
) -> Row<'r> {
    let name = run.groups.get(usize::from(request.group));
    let (client, log) = (request.service, request.log_total);
    let both = client.zip(log).filter(|_| comparable);
    let upstream = match log_of {
        LogOf::Gateway => request.log_upstream,
        LogOf::Upstream => log,
    };
    let gateway = (log_of == LogOf::Gateway).then(|| log.zip(upstream)).flatten();
    Row {
        request_id: run.id(index),
        scenario: name.map_or("", |name| &name.scenario),
        outcome: name.map_or("", |name| name.outcome),
        warmup: request.warmup,
        state: state(request, log_of),
        rows: request.rows,
        sent_unix_ns: request.sent,
        client_ms: client.map(ms),
        log_ms: log.map(ms),
        outside_ms: both.map(|(client, log)| ms(client - log)),
        gateway_ms: gateway.filter(|_| comparable).map(|(log, upstream)| ms(log - upstream)),
        upstream_ms: upstream.filter(|_| comparable).map(ms),
        cache: request.cache.map(CacheState::name),
        log_cache: request.log.cache.map(CacheState::name),
        log_status: request.log.status,
        log_input_tokens: request.log.prompt,
        log_output_tokens: request.log.completion,
        stated_ms: stated(run, index),
    }
}

fn stated(run: &Run, index: usize) -> BTreeMap<&str, f64> {
    let of_this =
        |stated: &ServerTiming| usize::try_from(stated.request).is_ok_and(|at| at == index);
    let first =
        run.stated.partition_point(|stated: &ServerTiming| (stated.request as usize) < index);
    let own = run.stated.iter().skip(first).take_while(|stated: &&ServerTiming| of_this(stated));
    own.filter_map(|stated: &ServerTiming| {
        let name = run.stated_names.get(usize::from(stated.name))?;
        Some((name.as_str(), stated.nanos as f64 / 1e6))
    })
    .collect()
}

const fn state(request: &Request, log_of: LogOf) -> &'static str {
    match request.fate {
        _ if request.rows > 0 => "matched",
        Fate::NeverSent => "never_sent",
        Fate::InFlight => "in_flight",
        Fate::Unanswered => "unanswered",
        Fate::Answered if matches!(log_of, LogOf::Upstream) && request.kept => "kept",
        Fate::Answered if !request.named => "unnamed",
        Fate::Answered => "lost",
    }
}
