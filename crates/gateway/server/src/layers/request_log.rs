//! The request log: a row for every request, if the section `audit` or `access_log` is present.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_gateway_audit::{Audit, ClickHouse, Notice, Row, Settings, Stats, Target};
use serde::Deserialize;
use smart_default::SmartDefault;

use crate::config::error::GatewayError;
use crate::config::secret::Secret;
use crate::config::units::{ByteSize, HumanDuration};
use crate::layers::{Layer, Setup};

/// The name of the audit log, as in its section.
const AUDIT: &str = "audit";

/// An audit row for every request.
#[derive(Clone, Debug, SmartDefault, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AuditSpec {
    /// File of JSON lines that rows are appended to.
    pub path: Option<PathBuf>,
    /// `ClickHouse` table, `http://[USER:PASSWORD@]HOST[:PORT]/[DATABASE.]TABLE`, or `${NAME}` for
    /// an environment variable; instead of `path`.
    pub clickhouse: Option<Secret>,
    /// Most rows that wait to be written.
    #[default(65_536)]
    pub queue: usize,
    /// Most bytes of rows that wait to be written; a row is 8 KiB at most.
    #[default(ByteSize(32 << 20))]
    pub queue_bytes: ByteSize,
    /// Most rows in one write.
    #[default(2_048)]
    pub batch: usize,
    /// Longest time that a row waits for others.
    #[default(HumanDuration::millis(100))]
    pub flush: HumanDuration,
    /// Treatment of a row when the queue is full.
    pub when_full: WhenFull,
}

/// The same rows in a file; rows that find the queue full are dropped.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AccessLogSpec {
    /// File of JSON lines that rows are appended to.
    pub path: PathBuf,
}

/// Treatment of a row when the queue is full.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// it is dropped and counted
    #[default]
    Drop,
    /// its request waits
    Block,
}

/// The audit and the access log, where enabled.
pub(crate) struct RequestLog(Vec<Log>);

/// One log.
struct Log {
    name: &'static str,
    audit: Audit,
    when_full: WhenFull,
}

impl RequestLog {
    /// # Errors
    /// [`GatewayError::Audit`] where a file or address cannot be used.
    pub(crate) fn open(
        audit: Option<&AuditSpec>,
        access: Option<&AccessLogSpec>,
    ) -> Result<Self, GatewayError> {
        let access =
            access.map(|log| AuditSpec { path: Some(log.path.clone()), ..AuditSpec::default() });
        let specs = [(AUDIT, audit), ("access_log", access.as_ref())];
        let logs = specs.into_iter().filter_map(|(name, spec)| Some(open(name, spec?)));
        logs.collect::<Result<_, _>>().map(Self)
    }

    /// Checks that the files can be written, without creating them.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn check(
        audit: Option<&AuditSpec>,
        access: Option<&AccessLogSpec>,
    ) -> Result<(), GatewayError> {
        let audit = audit.and_then(|spec| spec.path.as_deref());
        let access = access.map(|spec| &*spec.path);
        [audit, access].into_iter().flatten().try_for_each(check_file)
    }

    /// Counts of the rows of the audit.
    pub(crate) fn stats(&self) -> Option<Stats> {
        self.0.iter().find(|log| log.name == AUDIT).map(|log| log.audit.stats())
    }

    /// The logs whose last write failed.
    pub(crate) fn failing(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter(|log| log.audit.stats().failing).map(|log| log.name)
    }

    /// Rows that were offered but not written.
    pub(crate) fn lost(&self) -> u64 {
        let stats = self.0.iter().map(|log| log.audit.stats());
        stats.map(|stats| stats.dropped.total() + stats.queued).sum()
    }

    /// Writes the queued rows, and closes both logs.
    pub(crate) fn close(&self) {
        for log in &self.0 {
            log.audit.close();
        }
    }

    /// Whether a log is enabled.
    pub(crate) const fn is_enabled(&self) -> bool {
        !self.0.is_empty()
    }

    /// Writes a row. `to_audit: false` is an injected fault and skips the audit.
    pub(crate) fn write(&self, row: &Row<'_>, to_audit: bool) {
        for log in self.0.iter().filter(|log| to_audit || log.name != AUDIT) {
            // The log counts dropped rows itself.
            let _ = match log.when_full {
                WhenFull::Drop => log.audit.offer(row),
                // Blocks the whole worker and its requests, as configured.
                WhenFull::Block => log.audit.offer_blocking(row),
            };
        }
    }
}

fn open(name: &'static str, spec: &AuditSpec) -> Result<Log, GatewayError> {
    let audit = Audit::open(&audit_settings(spec)?, move |notice| report(name, notice));
    let audit = audit.map_err(|error| GatewayError::Audit(error.to_string()))?;
    Ok(Log { name, audit, when_full: spec.when_full })
}

fn check_file(path: &Path) -> Result<(), GatewayError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let checked = if path.exists() {
        OpenOptions::new().append(true).open(path).map(drop)
    } else {
        fs::read_dir(folder.unwrap_or_else(|| Path::new("."))).map(drop)
    };
    checked.map_err(|source| GatewayError::File { path: path.to_owned(), source })
}

/// Reports an outage to the operator once. Metrics show the number of lost rows.
fn report(name: &str, notice: Notice) {
    let message = match notice {
        Notice::Failing(error) => format!("{name}: {error}"),
        Notice::Recovered { lost } => format!("{name}: writing works again; {lost} rows are lost"),
    };
    // Without standard error the message cannot be shown.
    let _ = writeln!(io::stderr(), "{message}");
}

fn audit_settings(spec: &AuditSpec) -> Result<Settings, GatewayError> {
    let target = match (&spec.path, &spec.clickhouse) {
        (Some(path), _) => Target::File(PathBuf::from(path)),
        (None, Some(url)) => {
            let url = url.reveal().map_err(GatewayError::Audit)?;
            let server = ClickHouse::parse(&url);
            Target::ClickHouse(server.map_err(|error| GatewayError::Audit(error.to_string()))?)
        }
        (None, None) => return Err(GatewayError::Audit("needs `path` or `clickhouse`".to_owned())),
    };
    Ok(Settings {
        queue: spec.queue,
        queue_bytes: usize::try_from(spec.queue_bytes.0).unwrap_or(usize::MAX),
        batch: spec.batch,
        flush: spec.flush.0,
        ..Settings::new(target)
    })
}

impl Layer for AuditSpec {
    type Section = Self;
    const OBSERVES: bool = true;

    fn new(section: &Self, _setup: &Setup<'_>) -> Result<Self, String> {
        if section.path.is_some() == section.clickhouse.is_some() {
            return Err("audit: needs either `path` or `clickhouse`".to_owned());
        }
        let settings = audit_settings(section).map_err(|error| error.to_string())?;
        settings.check().map_err(|error| format!("audit: {error}"))?;
        Ok(section.clone())
    }
}

impl Layer for AccessLogSpec {
    type Section = Self;
    const OBSERVES: bool = true;

    fn new(section: &Self, _setup: &Setup<'_>) -> Result<Self, String> {
        Ok(section.clone())
    }
}
