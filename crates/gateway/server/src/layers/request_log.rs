//! The request log: audit rows and access log lines.

use std::path::{Path, PathBuf};

use plimsoll_gateway_audit::{
    Audit, ClickHouse, Notice, Producer, Row, Settings, Stats, Target, WhenFull as Full,
};

use crate::config::spec::{AuditSpec, Spec, WhenFull};
use crate::error::GatewayError;

/// The audit and the access log, where enabled.
pub(crate) struct RequestLog {
    audit: Option<Audit>,
    access: Option<Audit>,
    when_full: WhenFull,
}

/// Rows that were offered and not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostRows {
    /// Of the audit.
    pub audit: u64,
    /// Of the access log.
    pub access_log: u64,
}

/// One worker's writer to the request log.
pub(crate) struct LogWriter {
    audit: Option<Producer>,
    access: Option<Producer>,
    when_full: WhenFull,
}

impl RequestLog {
    /// # Errors
    /// [`GatewayError::Audit`] where a file or address cannot be used.
    pub(crate) fn open(spec: &Spec) -> Result<Self, GatewayError> {
        let audit = spec.audit.as_ref().map(audit_settings).transpose()?;
        let access = spec.access_log.as_ref().map(|log| Settings::new(file(&log.path)));
        let when_full = spec.audit.as_ref().map_or(WhenFull::Drop, |audit| audit.when_full);
        Ok(Self {
            audit: audit.as_ref().map(open).transpose()?,
            access: access.as_ref().map(open).transpose()?,
            when_full,
        })
    }

    /// A writer for one worker.
    pub(crate) fn writer(&self) -> LogWriter {
        LogWriter {
            audit: self.audit.as_ref().map(Audit::producer),
            access: self.access.as_ref().map(Audit::producer),
            when_full: self.when_full,
        }
    }

    /// Counts of the audit's rows.
    pub(crate) fn audit_stats(&self) -> Option<Stats> {
        self.audit.as_ref().map(Audit::stats)
    }

    /// Rows lost so far, of the audit and of the access log.
    pub(crate) fn lost(&self) -> LostRows {
        LostRows {
            audit: lost_rows(self.audit.as_ref()),
            access_log: lost_rows(self.access.as_ref()),
        }
    }

    /// Writes what is still queued, and closes both.
    pub(crate) fn close(&self) {
        for log in [&self.audit, &self.access].into_iter().flatten() {
            log.close();
        }
    }
}

fn file(path: &Path) -> Target {
    Target::File(PathBuf::from(path))
}

fn audit_settings(spec: &AuditSpec) -> Result<Settings, GatewayError> {
    let target = match (&spec.path, &spec.clickhouse) {
        (Some(path), _) => file(path),
        (None, Some(url)) => {
            let url = url.reveal().map_err(|name| {
                GatewayError::Audit(format!("the environment variable `{name}` is not set"))
            })?;
            let server = ClickHouse::parse(&url);
            Target::ClickHouse(server.map_err(|error| GatewayError::Audit(error.to_string()))?)
        }
        (None, None) => return Err(GatewayError::Audit("needs `path` or `clickhouse`".to_owned())),
    };
    let when_full = if spec.when_full == WhenFull::Block { Full::Block } else { Full::Drop };
    Ok(Settings {
        queue: spec.queue,
        queue_bytes: usize::try_from(spec.queue_bytes.0).unwrap_or(usize::MAX),
        batch: spec.batch,
        flush: spec.flush.0,
        when_full,
        ..Settings::new(target)
    })
}

fn open(settings: &Settings) -> Result<Audit, GatewayError> {
    // Lost rows are counted and shown by the metrics; a message for each could itself become a
    // flood.
    let audit = Audit::open(settings, |_: Notice| {});
    audit.map_err(|error| GatewayError::Audit(error.to_string()))
}

impl LogWriter {
    /// Whether anything is written.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.audit.is_some() || self.access.is_some()
    }

    /// Writes a row; with `lose_audit`, an injected fault, it does not reach the audit.
    pub(crate) fn write(&self, row: &Row<'_>, lose_audit: bool) {
        if let Some(access) = &self.access {
            let _ = access.offer(row);
        }
        if let Some(audit) = self.audit.as_ref().filter(|_| !lose_audit) {
            // The audit itself counts which rows it took.
            let _ = match self.when_full {
                WhenFull::Drop => audit.offer(row),
                // The whole worker waits, and with it its requests, as configured.
                WhenFull::Block => audit.offer_blocking(row),
            };
        }
    }
}

fn lost_rows(log: Option<&Audit>) -> u64 {
    let stats = log.map(Audit::stats).unwrap_or_default();
    stats.dropped.total() + stats.queued
}
