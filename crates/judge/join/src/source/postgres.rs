//! Tables of Postgres. Sessions are read-only, and not encrypted: for others, export the table.

use std::cell::Cell as Shared;
use std::pin::pin;

use futures_util::TryStreamExt as _;
use tokio::runtime::Builder;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::books::Joiner;
use crate::cell::Cell;
use crate::error::JoinError;
use crate::json_row::Cells;
use crate::map::Map;
use crate::source::table::{bounds, kind, patient};
use crate::source::{Column, Table, Window};

const NAME: &str = "Postgres";

pub(super) fn columns(table: &Table) -> Result<Vec<Column>, JoinError> {
    let address = &table.address;
    let sql = format!(
        "SELECT column_name, data_type FROM information_schema.columns \
         WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position",
        literal(&address.schema),
        literal(&address.table)
    );
    let mut found = Vec::new();
    fetch(table, &sql, &mut |row| {
        if let (Some(name), Some(kind)) = (row.get(0), row.get(1)) {
            found.push(Column { name: name.to_owned(), kind: kind.to_owned() });
        }
    })?;
    if found.is_empty() { Err(address.absent(NAME)) } else { Ok(found) }
}

pub(super) fn read(
    table: &Table,
    map: &Map,
    columns: &[Column],
    window: &Window,
    joiner: &mut Joiner<'_, '_>,
) -> Result<(), JoinError> {
    fetch(table, &query(table, map, columns, window), &mut |row| {
        let mut cells = Cells::default();
        for (index, entry) in map.entries.iter().enumerate() {
            if let Some(text) = row.get(index) {
                cells[entry.field as usize] = Cell::of_text(text);
            }
        }
        joiner.add(&cells);
    })
}

/// Only mapped columns, of the run's time.
fn query(table: &Table, map: &Map, columns: &[Column], window: &Window) -> String {
    let selected: Vec<String> = map
        .entries
        .iter()
        .map(|entry| {
            let name = identifier(&entry.column);
            if entry.field.is_time() && kind(columns, &entry.column).starts_with("timestamp") {
                format!("extract(epoch from {name})")
            } else {
                name
            }
        })
        .collect();
    let within = bounds(map, window).and_then(|(column, _, first, last)| {
        let (name, kind) = (identifier(column), kind(columns, column));
        Some(match kind {
            "timestamp with time zone" => {
                format!(" WHERE {name} BETWEEN to_timestamp({first}) AND to_timestamp({last})")
            }
            "timestamp without time zone" => format!(
                " WHERE {name} BETWEEN (to_timestamp({first}) AT TIME ZONE 'UTC') \
                 AND (to_timestamp({last}) AT TIME ZONE 'UTC')"
            ),
            "bigint" | "integer" | "numeric" | "double precision" | "real" => {
                format!(" WHERE {name} BETWEEN {first} AND {last}")
            }
            _ => return None,
        })
    });
    format!(
        "SELECT {} FROM {}.{}{}",
        selected.join(", "),
        identifier(&table.address.schema),
        identifier(&table.address.table),
        within.unwrap_or_default()
    )
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn fetch(table: &Table, sql: &str, row: &mut dyn FnMut(&SimpleQueryRow)) -> Result<(), JoinError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| table.address.failure(NAME, &error.to_string()))?;
    let heard = Shared::new(0_u64);
    let work = async {
        let client = connect(table).await?;
        let mut rows = pin!(client.simple_query_raw(sql).await?);
        while let Some(message) = rows.try_next().await? {
            heard.set(heard.get() + 1);
            if let SimpleQueryMessage::Row(found) = message {
                row(&found);
            }
        }
        Ok(())
    };
    let work = async { work.await.map_err(|error: tokio_postgres::Error| described(&error)) };
    let read = runtime.block_on(async { patient(table.patience, &heard, work).await });
    read.map_err(|error| table.address.failure(NAME, &error))
}

async fn connect(table: &Table) -> Result<Client, tokio_postgres::Error> {
    let (address, credentials) = (&table.address, &table.credentials);
    let mut config = Config::new();
    config.host(&address.host).port(address.port).dbname(&address.database);
    config.connect_timeout(std::time::Duration::from_secs(10));
    // A backslash at the end of a text is no escape, whatever the server's default.
    config.options("-c default_transaction_read_only=on -c standard_conforming_strings=on");
    config.user(credentials.user.as_deref().unwrap_or("postgres"));
    if let Some(password) = &credentials.password {
        config.password(password);
    }
    let (client, connection) = config.connect(NoTls).await?;
    // It ends with the client; its error is the client's, too.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// The error with its cause: its own text is often only `db error`.
fn described(error: &tokio_postgres::Error) -> String {
    if let Some(cause) = error.as_db_error() {
        return cause.message().to_owned();
    }
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
