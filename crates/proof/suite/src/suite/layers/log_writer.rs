//! The limit of the request log's writer: rows offered as fast as it takes them, to a file and to a
//! `ClickHouse` server. No gateway and no load are between.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_gateway_audit::{Audit, ClickHouse, Notice, Offered, Row, Settings, Stats, Target};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_report::format::{count, digits, or_dash};

use crate::bound::{BoundResult, Requirement};
use crate::child::{Child, free_port};
use crate::http_get::request;
use crate::report::Section;
use crate::runner::SuiteRunner;
use crate::suite::columns::{self, Column};
use crate::suite::own_server;

/// Threads that offer rows, as the workers of a gateway do.
const PRODUCERS: u64 = 2;
/// Number of rows offered between two readings of the clock.
const BURST: u64 = 256;
/// How long rows are offered.
const LENGTH: Nanos = Nanos::from_secs(5);
const SHORT: Nanos = Nanos::from_secs(1);
/// Time limits of the server's start and of one statement.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(30);

/// The title of the table.
pub(super) const TITLE: &str = "The log writer's own limit (no gateway, no load)";

/// Limits of the log writer.
#[derive(Clone, Debug)]
struct WriterLimit {
    /// Where the rows go.
    to: &'static str,
    stats: Stats,
    /// Rows that are there afterwards, counted there.
    there: Option<u64>,
    /// From the first row to the last one on the disk, or confirmed.
    took_s: f64,
}

impl WriterLimit {
    /// Rows per second.
    fn per_s(&self) -> f64 {
        self.stats.written as f64 / self.took_s.max(f64::EPSILON)
    }

    /// Every accepted row is written or counted as dropped, and every written row is in the file.
    fn bounds(&self) -> [BoundResult; 2] {
        let Stats { accepted, written, .. } = self.stats;
        let none = Requirement::NONE;
        let unknown = accepted.saturating_sub(written + self.stats.dropped.total());
        let lost = self.there.map(|there| written.saturating_sub(there) as f64);
        let [counted, there] = ["rows neither written nor dropped", "written, and not there"]
            .map(|what| format!("log writer to {}: {what}", self.to));
        [
            BoundResult::count(&counted, Some(unknown as f64), none),
            BoundResult::count(&there, lost, none),
        ]
    }
}

/// Measures each place that this host has.
pub(super) fn measure(runner: &mut SuiteRunner<'_>) {
    let length = if runner.options.short { SHORT } else { LENGTH };
    let mut limits = Vec::new();
    runner.section = TITLE;
    let path = runner.options.folder.join("writer.jsonl");
    for what in ["a file", "ClickHouse"] {
        if runner.is_interrupted() {
            break;
        }
        runner.log(&format!("log writer, to {what}"));
        let found = match what {
            "a file" => to_file(&path, length),
            _ => to_clickhouse(runner, length),
        };
        match found {
            Ok(limit) => limits.push(limit),
            Err(why) => runner.skip(&format!("the log writer's own limit, to {what}"), &why),
        }
    }
    // Its data are the rows of this measurement alone.
    let _ = fs::remove_dir_all(runner.options.folder.join("clickhouse"));
    runner.report.bounds.extend(limits.iter().flat_map(WriterLimit::bounds));
    if !limits.is_empty() {
        runner.report.sections.push(section(&limits));
    }
}

fn section(limits: &[WriterLimit]) -> Section {
    let columns: [Column<WriterLimit>; 7] = [
        ("Rows to", |limit| limit.to.to_owned()),
        ("rows/s", |limit| digits(limit.per_s())),
        ("Written", |limit| count(limit.stats.written)),
        ("There", |limit| or_dash(limit.there, count)),
        ("Dropped", |limit| count(limit.stats.dropped.total())),
        ("Secs", |limit| digits(limit.took_s)),
        ("published", |_| "50,000+/s (estimated)".to_owned()),
    ];
    Section::new(TITLE, columns::table(&columns, limits))
}

fn to_file(path: &Path, length: Nanos) -> Result<WriterLimit, String> {
    let written = write("a file", Target::File(path.to_owned()), length);
    let lines = File::open(path).map(|file| BufReader::new(file).split(b'\n').count());
    // There may be millions of them.
    let _ = fs::remove_file(path);
    let there = lines.ok().and_then(|lines| u64::try_from(lines).ok());
    Ok(WriterLimit { there, ..written? })
}

/// A table of the columns that a row has, in the types that every version of the server knows.
const TABLE: &str = include_str!("clickhouse/table.sql");

fn to_clickhouse(runner: &SuiteRunner<'_>, length: Nanos) -> Result<WriterLimit, String> {
    let server = ClickHouseServer::start(runner)?;
    server.run(TABLE)?;
    let url = format!("http://{}/audit", server.0.address());
    let table = ClickHouse::parse(&url).map_err(|error| error.to_string())?;
    let written = write("ClickHouse", Target::ClickHouse(table), length)?;
    let there = server.run("SELECT count() FROM audit")?.trim().parse().ok();
    Ok(WriterLimit { there, ..written })
}

/// Offers rows for so long, and waits until the last one is written.
fn write(to: &'static str, target: Target, length: Nanos) -> Result<WriterLimit, String> {
    let said = Arc::new(Mutex::new(String::new()));
    let notes = Arc::clone(&said);
    let audit = Audit::open(&Settings::new(target), move |notice| {
        if let Notice::Failing(why) = notice {
            *notes.lock().unwrap_or_else(PoisonError::into_inner) = why;
        }
    });
    let audit = audit.map_err(|error| error.to_string())?;
    let clock = MonotonicClock::start();
    let began = clock.now();
    thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            scope.spawn(|| offer(&audit, clock, began + length));
        }
    });
    let stats = audit.close();
    let took_s = clock.now().since(began).as_secs_f64();
    if stats.written == 0 {
        let why = said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        return Err(if why.is_empty() { "no row was written".to_owned() } else { why });
    }
    Ok(WriterLimit { to, stats, there: None, took_s })
}

/// Offers rows until a moment, and waits wherever the queue is full.
fn offer(audit: &Audit, clock: MonotonicClock, end: Moment) {
    let mut number = 0;
    while clock.now() < end {
        for _ in 0..BURST {
            let id = format!("plimsoll-{number:020}");
            // The counts record the result.
            let _counted: Offered = audit.offer_blocking(&row(number, &id));
            number += 1;
        }
    }
}

/// The row of a chat through a gateway with everything on.
fn row(number: u64, request_id: &str) -> Row<'_> {
    Row {
        timestamp: 1_763_700_000_000 + number / 100,
        tenant: "retail",
        route: "chat",
        method: "POST",
        path: "/v1/chat/completions",
        status: 200,
        latency_us: 1_234,
        upstream_us: Some(1_100),
        request_bytes: 612,
        response_bytes: 843,
        client: Some([127, 0, 0, 1].into()),
        user_agent: "plimsoll",
        request_id,
        policy_decision: "allow",
        model: "mock-fast",
        input_tokens: Some(128),
        output_tokens: Some(128),
        cache: "miss",
        ..Row::default()
    }
}

/// A `ClickHouse` server of the suite's own, if this host has one.
struct ClickHouseServer(Child);

impl ClickHouseServer {
    fn start(runner: &SuiteRunner<'_>) -> Result<Self, String> {
        let folder = runner.options.folder.join("clickhouse");
        own_server::start(runner, "clickhouse-server", READY_TIMEOUT, |port| {
            let config = folder.join("config.xml");
            let text = configuration(&folder, port, free_port()?);
            let written = fs::create_dir_all(&folder)
                .and_then(|()| fs::write(folder.join("users.xml"), USERS))
                .and_then(|()| fs::write(&config, text));
            written.map_err(|error| error.to_string())?;
            Ok(vec![format!("--config-file={}", config.display())])
        })
        .map(Self)
    }

    /// Runs a statement, and returns its answer.
    fn run(&self, sql: &str) -> Result<String, String> {
        let answer = request(self.0.address(), "/", &[], Some(sql), TIMEOUT);
        let answer = answer.map_err(|error| format!("ClickHouse: {error}"))?;
        if answer.status == 200 {
            return Ok(answer.body);
        }
        let said = answer.body.lines().next().unwrap_or_default();
        Err(format!("ClickHouse answers {}: {said}", answer.status))
    }
}

/// A user without a password, for this host alone.
const USERS: &str = include_str!("clickhouse/users.xml");

fn configuration(folder: &Path, http: u16, native: u16) -> String {
    let text = include_str!("clickhouse/config.xml").replace("HTTP", &http.to_string());
    text.replace("NATIVE", &native.to_string()).replace("HOME", &folder.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_a_file_takes_is_in_it_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let limit = to_file(&path, Nanos::from_millis(200)).unwrap();
        assert!(limit.stats.written > 1_000, "{limit:?}");
        assert_eq!(limit.there, Some(limit.stats.written));
        assert!(limit.took_s >= 0.2 && limit.per_s() < limit.stats.written as f64 / 0.2);
        assert!(limit.bounds().iter().all(|bound| bound.status() == "PASS"), "{limit:?}");
        let lossy = WriterLimit { there: Some(limit.stats.written - 3), ..limit };
        assert_eq!(lossy.bounds()[1].status(), "FAIL");
        assert!(!path.exists());
    }

    #[test]
    fn a_place_that_takes_nothing_says_why() {
        let absent = Path::new("/nonexistent/rows.jsonl");
        assert!(to_file(absent, Nanos::from_millis(10)).is_err());
    }
}
