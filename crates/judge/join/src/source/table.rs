//! What the tables of both databases have in common.

use std::cell::Cell;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use plimsoll_transport::Endpoint;

use crate::error::{JoinError, quoted};
use crate::map::{Field, Map};
use crate::source::{Column, Window};
use crate::time::Unit;

/// Where a table is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Postgres has it beside the schema.
    pub(crate) database: String,
    /// The schema; of `ClickHouse` the database.
    pub(crate) schema: String,
    pub(crate) table: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, schema, table, .. } = self;
        write!(f, "{schema}.{table} at {host}:{port}")
    }
}

impl Address {
    /// Reads a URL. Returns the user in it, too.
    pub(crate) fn parse(url: &str, kind: &str) -> Result<(Self, Option<String>), JoinError> {
        let clickhouse = kind == "clickhouse";
        let example = if clickhouse {
            "clickhouse:http://HOST:8123/DATABASE.TABLE"
        } else {
            "postgres://HOST:5432/DATABASE/SCHEMA.TABLE"
        };
        let wrong = || JoinError::usage(format!("`{}` is no table: write {example}", quoted(url)));
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        if clickhouse && !matches!(scheme, "http" | "https") {
            return Err(wrong());
        }
        let (authority, path) = rest.split_once('/').ok_or_else(wrong)?;
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if user.is_some_and(|user| user.contains(':')) || path.contains('?') {
            let names = if clickhouse { "CLICKHOUSE_PASSWORD" } else { "PGPASSWORD" };
            return Err(JoinError::usage(format!(
                "no password belongs on the command line: set {names}, and write {example}"
            )));
        }
        let default = match (clickhouse, scheme) {
            (true, "https") => 8443,
            (true, _) => 8123,
            (false, _) => 5432,
        };
        let endpoint = Endpoint::parse(host, default).map_err(|_| wrong())?;
        let (database, table) =
            if clickhouse { ("", path) } else { path.split_once('/').ok_or_else(wrong)? };
        let (schema, table) =
            table.split_once('.').unwrap_or((if clickhouse { "default" } else { "public" }, table));
        if table.is_empty() || table.contains('/') {
            return Err(wrong());
        }
        let address = Self {
            tls: scheme == "https",
            host: endpoint.host().to_owned(),
            port: endpoint.port(),
            database: database.to_owned(),
            schema: schema.to_owned(),
            table: table.to_owned(),
        };
        Ok((address, user.filter(|user| !user.is_empty()).map(str::to_owned)))
    }

    /// The error of a database that gives no answer.
    pub(crate) fn failure(&self, kind: &str, error: &str) -> JoinError {
        JoinError::Usage(format!("cannot read {kind} table {self}: {}", quoted(error)))
    }

    /// The error of a table without columns.
    pub(crate) fn absent(&self, kind: &str) -> JoinError {
        JoinError::Usage(format!("{kind} has no table {self}, or this user may not see it"))
    }
}

/// The result of `work`, or an error if `heard`, which counts what came, stands still for too long.
pub(crate) async fn patient<T>(
    patience: Duration,
    heard: &Cell<u64>,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let mut work = pin!(work);
    loop {
        let before = heard.get();
        match tokio::time::timeout(patience, work.as_mut()).await {
            Ok(result) => return result,
            Err(_) if heard.get() != before => {}
            Err(_) => {
                return Err(format!("it said nothing for {} s", patience.as_secs_f64()));
            }
        }
    }
}

/// The type of a mapped column.
pub(crate) fn kind<'c>(columns: &'c [Column], name: &str) -> &'c str {
    columns.iter().find(|column| column.name == name).map_or("", |column| &column.kind)
}

/// Times of a type of times are fetched as seconds.
pub(crate) fn with_seconds(mut map: Map, columns: &[Column]) -> Map {
    for entry in &mut map.entries {
        if entry.field.is_time() && kind(columns, &entry.column).starts_with("timestamp") {
            entry.unit = Some(Unit::S);
        }
    }
    map
}

/// The column by which rows are selected, with the ends of the window in its unit.
pub(crate) fn bounds<'m>(map: &'m Map, window: &Window) -> Option<(&'m str, Unit, i64, i64)> {
    let entry = map.entry(Field::At).or_else(|| map.entry(Field::Ended))?;
    let unit = entry.unit.filter(|unit| *unit != Unit::Iso)?;
    let one = 10_i64.pow(unit.digits());
    Some((&entry.column, unit, window.first / one, window.last / one + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_defaults_and_no_passwords() {
        let shown = |url: &str, kind: &str| match Address::parse(url, kind) {
            Ok((address, user)) => format!("{address} {} {user:?}", address.database),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown("http://h/t", "clickhouse"), "default.t at h:8123  None");
        assert_eq!(shown("https://me@h:9/d.t", "clickhouse"), "d.t at h:9  Some(\"me\")");
        assert_eq!(shown("postgres://h/db/t", "postgres"), "public.t at h:5432 db None");
        assert_eq!(shown("postgres://[::1]:6/db/s.t", "postgres"), "s.t at ::1:6 db None");
        for (url, kind, part) in [
            ("http://u:p@h/t", "clickhouse", "CLICKHOUSE_PASSWORD"),
            ("postgres://u:p@h/db/t", "postgres", "PGPASSWORD"),
            ("http://h/t?password=p", "clickhouse", "no password"),
            ("h/t", "clickhouse", "is no table"),
            ("postgres://h/db", "postgres", "is no table"),
            ("http://h:x/t", "clickhouse", "is no table"),
        ] {
            assert!(shown(url, kind).contains(part), "{}", shown(url, kind));
        }
    }
}
