//! Where the rows of a log come from.

mod clickhouse;
mod file;
#[cfg(feature = "postgres")]
mod postgres;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use crate::books::Joiner;
use crate::error::{JoinError, quoted};
use crate::map::Map;

use self::table::Address;

/// A column of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The database's word for its type; empty in files.
    pub(crate) kind: String,
}

/// The time of which rows are fetched from a database, by the run's clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Window {
    /// Five minutes more than the run on either side.
    pub(crate) fn around(first: i64, last: i64) -> Self {
        const MORE: i64 = 300_000_000_000;
        Self { first: first.saturating_sub(MORE), last: last.saturating_add(MORE) }
    }
}

/// User and password of a database. They come from the environment, never from the command line,
/// where every user of the host sees them.
#[derive(Clone, Default)]
pub struct Credentials {
    /// User.
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
}

/// Without the password.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A log.
#[derive(Clone, Debug)]
pub enum Source {
    /// JSON lines or CSV, also compressed by gzip. Which it is is seen in its content.
    File(PathBuf),
    /// A table of `ClickHouse`, over its HTTP interface.
    ClickHouse(Table),
    /// A table of Postgres.
    Postgres(Table),
}

/// A table of a database.
#[derive(Clone, Debug)]
pub struct Table {
    address: Address,
    credentials: Credentials,
    /// How long the database may be silent.
    patience: Duration,
}

/// How long a database may be silent before it is given up.
pub const PATIENCE: Duration = Duration::from_mins(1);

impl Source {
    /// A path, `clickhouse:http://HOST:8123/DATABASE.TABLE`, or
    /// `postgres://HOST:5432/DATABASE/SCHEMA.TABLE`. `credentials` is asked with the name of the
    /// database's kind.
    ///
    /// # Errors
    /// [`JoinError::Usage`] for an address that is none, or has a password in it.
    pub fn parse(text: &str, credentials: impl Fn(&str) -> Credentials) -> Result<Self, JoinError> {
        let (url, kind, make): (_, _, fn(Table) -> Self) =
            if let Some(url) = text.strip_prefix("clickhouse:") {
                (url, "clickhouse", Self::ClickHouse)
            } else if text.starts_with("postgres:") || text.starts_with("postgresql:") {
                (text, "postgres", Self::Postgres)
            } else {
                return Ok(Self::File(PathBuf::from(text)));
            };
        let (address, user) = Address::parse(url, kind)?;
        let known = credentials(kind);
        let credentials = Credentials { user: user.or(known.user), ..known };
        Ok(make(Table { address, credentials, patience: PATIENCE }))
    }

    /// The same, given up when its database says nothing for this long.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        if let Self::ClickHouse(table) | Self::Postgres(table) = &mut self {
            table.patience = patience;
        }
        self
    }

    /// For reports, without credentials.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => quoted(&path.display().to_string()),
            Self::ClickHouse(table) => format!("ClickHouse table {}", table.address),
            Self::Postgres(table) => format!("Postgres table {}", table.address),
        }
    }

    pub(crate) const fn is_table(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// The columns: of a table all, of JSON those of the first 100 lines.
    pub(crate) fn columns(&self) -> Result<Vec<Column>, JoinError> {
        match self {
            Self::File(path) => file::columns(path),
            Self::ClickHouse(table) => clickhouse::columns(table),
            #[cfg(feature = "postgres")]
            Self::Postgres(table) => postgres::columns(table),
            #[cfg(not(feature = "postgres"))]
            Self::Postgres(table) => Err(no_postgres(&table.address)),
        }
    }

    /// The map with the units in which the database hands its types over.
    pub(crate) fn typed(&self, map: Map, columns: &[Column]) -> Map {
        match self {
            Self::File(_) => map,
            Self::ClickHouse(_) => clickhouse::typed(map, columns),
            Self::Postgres(_) => table::with_seconds(map, columns),
        }
    }

    /// Hands every row to `joiner`.
    pub(crate) fn read(
        &self,
        map: &Map,
        columns: &[Column],
        window: &Window,
        joiner: &mut Joiner<'_, '_>,
    ) -> Result<(), JoinError> {
        match self {
            Self::File(path) => file::read(path, map, columns, joiner),
            Self::ClickHouse(table) => clickhouse::read(table, map, columns, window, joiner),
            #[cfg(feature = "postgres")]
            Self::Postgres(table) => postgres::read(table, map, columns, window, joiner),
            #[cfg(not(feature = "postgres"))]
            Self::Postgres(table) => {
                let _ = window;
                Err(no_postgres(&table.address))
            }
        }
    }
}

#[cfg(not(feature = "postgres"))]
fn no_postgres(address: &Address) -> JoinError {
    JoinError::Usage(format!(
        "this build reads no Postgres. Export the table and join the file: psql -c '\\copy (select \
         * from {}) to log.csv csv header'; or build with --features postgres",
        address.table
    ))
}
