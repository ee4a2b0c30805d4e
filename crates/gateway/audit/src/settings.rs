//! Settings of the audit log.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;

use crate::error::AuditError;

/// Settings of the audit log. [`Settings::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where rows go.
    pub target: Target,
    /// Rows that may wait, including those being written. A row is about 250 bytes, 8 KiB at most.
    pub queue: usize,
    /// Bytes of rows that may wait, including those being written; the last row may exceed it.
    /// Growing buffers may use up to twice as much.
    pub queue_bytes: usize,
    /// Rows that trigger a write at once; also the maximum of one `INSERT`.
    pub batch: usize,
    /// The longest time a row waits for a full batch.
    pub flush: Duration,
    /// The longest time between two `fsync` calls while rows are written.
    pub sync: Duration,
    /// Retries of a failed write.
    pub retry: Retry,
}

impl Settings {
    /// A queue of 65,536 rows or 32 MiB, batches of 2,048 or 100 ms, and `fsync` once a second.
    pub const fn new(target: Target) -> Self {
        Self {
            target,
            queue: 65_536,
            queue_bytes: 32 << 20,
            batch: 2048,
            flush: Duration::from_millis(100),
            sync: Duration::from_secs(1),
            retry: Retry::DEFAULT,
        }
    }

    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), AuditError> {
        let checks = [
            (self.queue > 0, "queue must be at least 1"),
            (self.queue_bytes > 0, "queue_bytes must be at least 1"),
            (self.batch > 0, "batch must be at least 1"),
            (!self.flush.is_zero(), "flush must be longer than 0"),
            (self.retry.attempts > 0, "retry.attempts must be at least 1"),
        ];
        let wrong = checks.iter().find(|(fine, _)| !fine);
        wrong.map_or(Ok(()), |(_, problem)| Err(AuditError::Settings(problem)))
    }
}

/// Where rows go.
#[derive(Clone, Debug)]
pub enum Target {
    /// A file of JSON lines, opened for appending and reopened after it was moved or removed.
    File(PathBuf),
    /// A table of a `ClickHouse` server.
    ClickHouse(ClickHouse),
}

/// Retries of a failed write before the rows of its batch are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all.
    pub attempts: u32,
    /// Pause after the first failure; it doubles with every further one.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Retry {
    /// Eight attempts within 3.5 seconds, plus the time they take themselves.
    pub const DEFAULT: Self =
        Self { attempts: 8, first: Duration::from_millis(50), longest: Duration::from_secs(1) };

    /// The pause after the given number of failures, from 1.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

/// Its HTTP port, where the address has none.
const PORT: u16 = 8123;

/// A table of a `ClickHouse` server, reached over plain HTTP.
///
/// A table that fits (fields that a row does not have get the column's default):
///
/// ```sql
/// CREATE TABLE audit (
///     timestamp DateTime64(3), tenant LowCardinality(String), route LowCardinality(String),
///     method LowCardinality(String), path String, status UInt16, latency_us UInt64,
///     request_bytes UInt64, response_bytes UInt64, client String, user_agent String,
///     request_id String, policy_decision LowCardinality(String),
///     rules Array(LowCardinality(String)),
///     model LowCardinality(String), input_tokens UInt64, output_tokens UInt64,
///     cache LowCardinality(String), tool LowCardinality(String), outcome LowCardinality(String),
///     left_out String, ended_early LowCardinality(String), refused_by LowCardinality(String)
/// ) ENGINE = MergeTree ORDER BY (tenant, timestamp)
/// SETTINGS non_replicated_deduplication_window = 1000
/// ```
///
/// The last line lets the server recognise a batch that it gets twice.
#[derive(Clone)]
pub struct ClickHouse {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) table: String,
    pub(crate) user: String,
    pub(crate) password: String,
    /// Time limit of one `INSERT`, connecting included.
    pub timeout: Duration,
}

impl ClickHouse {
    /// Reads `http://[USER:PASSWORD@]HOST[:PORT]/[DATABASE.]TABLE`. User and password may be
    /// percent-encoded.
    ///
    /// # Errors
    /// [`AuditError::ClickHouse`] when it is not of this form.
    pub fn parse(url: &str) -> Result<Self, AuditError> {
        let wrong = AuditError::ClickHouse;
        let uri: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong("only http is supported; put a TLS proxy in front of the server"));
        }
        let table = uri.path().trim_matches('/').to_owned();
        if table.is_empty()
            || !table.chars().all(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        {
            return Err(wrong(
                "it must end with the name of a table, of the characters A-Z a-z 0-9 _ and .",
            ));
        }
        let authority = uri.authority().map_or("", |a| a.as_str());
        let (user, password) = authority.rsplit_once('@').map_or(("", ""), |(credentials, _)| {
            credentials.split_once(':').unwrap_or((credentials, ""))
        });
        Ok(Self {
            host: uri.host().unwrap_or_default().to_owned(),
            port: uri.port_u16().unwrap_or(PORT),
            table,
            user: decoded(user).ok_or_else(|| wrong("its user is not percent-encoded text"))?,
            password: decoded(password)
                .ok_or_else(|| wrong("its password is not percent-encoded text"))?,
            timeout: Duration::from_secs(10),
        })
    }
}

/// Omits the credentials, so that no log shows them.
impl fmt::Debug for ClickHouse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClickHouse({}:{}/{})", self.host, self.port, self.table)
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => digit(rest.next()?)? * 16 + digit(rest.next()?)?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<u128> = (1..8).map(|n| Retry::DEFAULT.pause(n).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(Retry::DEFAULT.pause(u32::MAX).as_millis(), 1000);
    }

    #[test]
    fn values_out_of_range_are_named() {
        let settings = Settings::new(Target::File("x".into()));
        assert!(settings.check().is_ok());
        let wrong = Settings { queue: 0, ..settings };
        assert!(wrong.check().unwrap_err().to_string().contains("queue must be at least 1"));
    }

    #[test]
    fn a_full_address() {
        let store = ClickHouse::parse("http://joe:p%40ss:x@db.test:9999/logs.audit").unwrap();
        assert_eq!((store.host.as_str(), store.port), ("db.test", 9999));
        assert_eq!((store.user.as_str(), store.password.as_str()), ("joe", "p@ss:x"));
        assert_eq!(store.table, "logs.audit");
    }

    #[test]
    fn a_short_address() {
        let store = ClickHouse::parse("http://127.0.0.1/audit").unwrap();
        assert_eq!((store.host.as_str(), store.port), ("127.0.0.1", 8123));
        assert_eq!((store.user.as_str(), store.password.as_str()), ("", ""));
    }

    #[test]
    fn wrong_addresses_are_refused_without_their_password() {
        for wrong in [
            "https://joe:secret@h/t",
            "http://joe:secret@h/",
            "http://joe:secret@h/t;drop",
            "http://joe:secret%zz@h/t",
            "h joe:secret",
        ] {
            let error = ClickHouse::parse(wrong).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.contains("http://[USER:PASSWORD@]HOST"), "{error}");
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        let shown = format!("{:?}", ClickHouse::parse("http://joe:secret@h/t").unwrap());
        assert_eq!(shown, "ClickHouse(h:8123/t)");
    }
}
