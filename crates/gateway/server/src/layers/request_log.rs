//! The request log: a row for every request, where the section `audit` is there.

use std::path::PathBuf;

use plimsoll_gateway_audit::{Audit, ClickHouse, Notice, Row, Settings, Stats, Target};

use crate::config::spec::{AuditSpec, Spec, WhenFull};
use crate::error::GatewayError;

/// The request log, where enabled.
pub(crate) struct RequestLog(Option<(Audit, WhenFull)>);

impl RequestLog {
    /// # Errors
    /// [`GatewayError::Audit`] where a file or address cannot be used.
    pub(crate) fn open(spec: &Spec) -> Result<Self, GatewayError> {
        let Some(spec) = &spec.audit else { return Ok(Self(None)) };
        // Lost rows are counted and shown by the metrics; a message for each could itself become a
        // flood.
        let audit = Audit::open(&audit_settings(spec)?, |_: Notice| {});
        let audit = audit.map_err(|error| GatewayError::Audit(error.to_string()))?;
        Ok(Self(Some((audit, spec.when_full))))
    }

    /// Counts of the rows.
    pub(crate) fn stats(&self) -> Option<Stats> {
        self.0.as_ref().map(|(audit, _)| audit.stats())
    }

    /// Writes what is still queued, and closes it.
    pub(crate) fn close(&self) {
        if let Some((audit, _)) = &self.0 {
            audit.close();
        }
    }

    /// Whether anything is written.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a row.
    pub(crate) fn write(&self, row: &Row<'_>) {
        // The audit itself counts which rows it took.
        let _ = match &self.0 {
            None => return,
            Some((audit, WhenFull::Drop)) => audit.offer(row),
            // The whole worker waits, and with it its requests, as configured.
            Some((audit, WhenFull::Block)) => audit.offer_blocking(row),
        };
    }
}

fn audit_settings(spec: &AuditSpec) -> Result<Settings, GatewayError> {
    let target = match (&spec.path, &spec.clickhouse) {
        (Some(path), _) => Target::File(PathBuf::from(path)),
        (None, Some(url)) => {
            let url = url.reveal().map_err(|name| {
                GatewayError::Audit(format!("the environment variable `{name}` is not set"))
            })?;
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
