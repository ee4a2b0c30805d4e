//! Rows for every request: the audit and the access log.

use std::path::PathBuf;

use hyper::header::HeaderValue;
use plimsoll_gateway_audit::{
    Audit, ClickHouse, Notice, Producer, Row, Settings, Stats, Target, WhenFull as Full,
};

use crate::clock;
use crate::error::GatewayError;
use crate::exchange::Exchange;
use crate::spec::{AuditSpec, Spec, WhenFull};

/// Where rows go: the audit, and the access log.
pub(crate) struct Books {
    audit: Option<Audit>,
    access: Option<Audit>,
    when_full: WhenFull,
}

/// One worker's way to the books.
pub(crate) struct Pen {
    audit: Option<Producer>,
    access: Option<Producer>,
    when_full: WhenFull,
}

impl Books {
    /// # Errors
    /// [`GatewayError::Audit`] where a file or address cannot be used.
    pub(crate) fn open(spec: &Spec) -> Result<Self, GatewayError> {
        let audit = spec.audit.as_ref().map(settings).transpose()?;
        let access = spec.access_log.as_ref().map(|log| Settings::new(file(&log.path)));
        let when_full = spec.audit.as_ref().map_or(WhenFull::Drop, |audit| audit.when_full);
        Ok(Self {
            audit: audit.as_ref().map(open).transpose()?,
            access: access.as_ref().map(open).transpose()?,
            when_full,
        })
    }

    /// A pen for one worker.
    pub(crate) fn pen(&self) -> Pen {
        Pen {
            audit: self.audit.as_ref().map(Audit::producer),
            access: self.access.as_ref().map(Audit::producer),
            when_full: self.when_full,
        }
    }

    /// What became of the audit's rows.
    pub(crate) fn stats(&self) -> Option<Stats> {
        self.audit.as_ref().map(Audit::stats)
    }

    /// Writes out what waits.
    pub(crate) fn close(&self) {
        for book in [&self.audit, &self.access].into_iter().flatten() {
            book.close();
        }
    }
}

fn file(path: &std::path::Path) -> Target {
    Target::File(PathBuf::from(path))
}

fn settings(spec: &AuditSpec) -> Result<Settings, GatewayError> {
    let target = match (&spec.path, &spec.clickhouse) {
        (Some(path), _) => file(path),
        (None, Some(url)) => {
            let server = ClickHouse::parse(url);
            Target::ClickHouse(server.map_err(|error| GatewayError::Audit(error.to_string()))?)
        }
        (None, None) => return Err(GatewayError::Audit("needs `path` or `clickhouse`".to_owned())),
    };
    let when_full = if spec.when_full == WhenFull::Block { Full::Block } else { Full::Drop };
    Ok(Settings {
        queue: spec.queue,
        batch: spec.batch,
        flush: spec.flush.0,
        when_full,
        ..Settings::new(target)
    })
}

fn open(settings: &Settings) -> Result<Audit, GatewayError> {
    // Losses are counted, and shown by the metrics; a log line for each would be one more flood.
    let audit = Audit::open(settings, |_: Notice| {});
    audit.map_err(|error| GatewayError::Audit(error.to_string()))
}

impl Pen {
    /// Writes an exchange down. The prompt and the key are not in it.
    pub(crate) fn write(&self, exchange: &Exchange, latency_us: u64) {
        if self.audit.is_none() && self.access.is_none() {
            return;
        }
        let notes = exchange.notes.as_deref();
        let rules: Vec<&str> =
            notes.map(|notes| notes.rules.iter().map(String::as_str).collect()).unwrap_or_default();
        let row = row(exchange, &rules, latency_us);
        if let Some(access) = &self.access {
            let _ = access.offer(&row);
        }
        let faults = &exchange.config.faults;
        let lost = exchange.worker.faults.hits(faults, faults.audit_drop_share);
        if let Some(audit) = self.audit.as_ref().filter(|_| !lost) {
            // Whether it was taken is counted by the audit itself.
            let _ = match self.when_full {
                WhenFull::Drop => audit.offer(&row),
                // The whole worker waits, as its requests should.
                WhenFull::Block => audit.offer_blocking(&row),
            };
        }
    }
}

fn row<'a>(exchange: &'a Exchange, rules: &'a [&'a str], latency_us: u64) -> Row<'a> {
    let text = |value: &'a Option<HeaderValue>| {
        value.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let notes = exchange.notes.as_deref();
    let usage = exchange.bill.as_ref().and_then(|bill| bill.usage());
    Row {
        timestamp: clock::unix_ms().saturating_sub(latency_us / 1_000),
        tenant: exchange.tenant.as_deref().unwrap_or_default(),
        route: &exchange.route.name,
        method: exchange.method.as_str(),
        path: exchange.path.as_deref().unwrap_or_default(),
        status: exchange.status.as_u16(),
        latency_us,
        request_bytes: exchange.received,
        response_bytes: exchange.sent,
        client: Some(exchange.client.ip()),
        user_agent: text(&exchange.agent),
        request_id: text(&exchange.request_id),
        verdict: notes.and_then(|notes| notes.verdict).unwrap_or_default(),
        rules,
        model: notes.and_then(|notes| notes.model.as_deref()).unwrap_or_default(),
        input_tokens: usage.map(|usage| usage.prompt),
        output_tokens: usage.map(|usage| usage.completion),
        cache: notes.and_then(|notes| notes.cache).unwrap_or_default(),
    }
}
