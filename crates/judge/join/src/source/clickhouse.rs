//! Tables of `ClickHouse`, over its HTTP interface. Requests are `GET`, which the server takes as
//! read-only.

use std::cell::Cell;
use std::ops::ControlFlow;

use plimsoll_measure::Moment;
use plimsoll_run_files::MAX_LINE;
use plimsoll_transport::{
    EncodedRequest, Endpoint, ResponseHandler, ResponseHead, RxTime, SingleClient, SingleRequest,
};
use serde::Deserialize;
use tokio::runtime::Builder;

use crate::books::Joiner;
use crate::error::JoinError;
use crate::json_row::Columns;
use crate::map::Map;
use crate::source::table::{bounds, kind, patient};
use crate::source::{Column, Table, Window};
use crate::time::Unit;

const NAME: &str = "ClickHouse";

/// Bytes of an error's text that are kept.
const ANSWER: usize = 4 << 10;

pub(super) fn columns(table: &Table) -> Result<Vec<Column>, JoinError> {
    #[derive(Deserialize)]
    struct Row {
        name: String,
        #[serde(rename = "type")]
        kind: String,
    }
    let address = &table.address;
    let sql = format!(
        "SELECT name, type FROM system.columns WHERE database = {} AND table = {} FORMAT JSONEachRow",
        literal(&address.schema),
        literal(&address.table)
    );
    let mut found = Vec::new();
    fetch(table, &sql, &mut |_, line| {
        if let Ok(Row { name, kind }) = serde_json::from_slice(line) {
            found.push(Column { name, kind });
        }
    })?;
    if found.is_empty() { Err(address.absent(NAME)) } else { Ok(found) }
}

/// Times of type `DateTime` come as numbers, whatever the server's zone.
pub(super) fn typed(mut map: Map, columns: &[Column]) -> Map {
    for entry in map.entries.iter_mut().filter(|entry| entry.field.is_time()) {
        if let Some((_, unit)) = as_number(kind(columns, &entry.column)) {
            entry.unit = Some(unit);
        }
    }
    map
}

pub(super) fn read(
    table: &Table,
    map: &Map,
    columns: &[Column],
    window: &Window,
    joiner: &mut Joiner<'_, '_>,
) -> Result<(), JoinError> {
    let (sql, wanted) = (query(table, map, columns, window), Columns::new(map));
    // What fails in the middle of an answer is told in its last lines.
    let mut failure: Option<String> = None;
    fetch(table, &sql, &mut |_, line| match wanted.read(line) {
        Some(cells) => joiner.add(&cells),
        None if failure.is_some() => {}
        None => failure = Some(String::from_utf8_lossy(line).into_owned()),
    })?;
    failure
        .map_or(Ok(()), |text| Err(table.address.failure(NAME, &format!("it broke off: {text}"))))
}

/// Only mapped columns, of the run's time.
fn query(table: &Table, map: &Map, columns: &[Column], window: &Window) -> String {
    let mut selected: Vec<String> = Vec::new();
    for entry in &map.entries {
        let name = identifier(&entry.column);
        let number = as_number(kind(columns, &entry.column)).filter(|_| entry.field.is_time());
        let column =
            number.map_or_else(|| name.clone(), |(function, _)| format!("{function}({name})"));
        let column = format!("{column} AS {name}");
        if !selected.contains(&column) {
            selected.push(column);
        }
    }
    let within = bounds(map, window).and_then(|(column, _, first, last)| {
        let (name, kind) = (identifier(column), kind(columns, column));
        let value = match as_number(kind) {
            Some((function, _)) => format!("{function}(t.{name})"),
            None if kind.contains("Int") || kind.contains("Float") => format!("t.{name}"),
            None => return None,
        };
        Some(format!(" WHERE {value} >= {first} AND {value} <= {last}"))
    });
    let (schema, name) = (identifier(&table.address.schema), identifier(&table.address.table));
    format!(
        "SELECT {} FROM {schema}.{name} AS t{} FORMAT JSONEachRow",
        selected.join(", "),
        within.unwrap_or_default()
    )
}

/// The function that makes a number of a time, and its unit.
fn as_number(kind: &str) -> Option<(&'static str, Unit)> {
    let kind = kind.strip_prefix("Nullable(").unwrap_or(kind);
    if let Some(rest) = kind.strip_prefix("DateTime64(") {
        return Some(match rest.bytes().next() {
            Some(b'0'..=b'3') => ("toUnixTimestamp64Milli", Unit::Ms),
            Some(b'4'..=b'6') => ("toUnixTimestamp64Micro", Unit::Us),
            _ => ("toUnixTimestamp64Nano", Unit::Ns),
        });
    }
    kind.starts_with("DateTime").then_some(("toUnixTimestamp", Unit::S))
}

fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Sends a query, and hands each line of the answer over with its number.
fn fetch(table: &Table, sql: &str, line: &mut dyn FnMut(u64, &[u8])) -> Result<(), JoinError> {
    let address = &table.address;
    let failed = |error: &str| address.failure(NAME, error);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(&error.to_string()))?;
    let heard = Cell::new(0);
    let mut answer =
        Answer { status: 0, error: Vec::new(), rest: Vec::new(), lines: 0, line, heard: &heard };
    let work = exchange(table, sql, &mut answer);
    let answered = runtime.block_on(async { patient(table.patience, &heard, work).await });
    answered.map_err(|error| failed(&error))?;
    let Answer { status, error, rest, lines, line, .. } = answer;
    if status != 200 {
        let text = String::from_utf8_lossy(&error);
        return Err(failed(&format!("status {status}: {}", text.trim())));
    }
    if rest.len() > MAX_LINE {
        return Err(failed("a row is longer than 16 MiB"));
    }
    if !rest.trim_ascii().is_empty() {
        line(lines + 1, rest.trim_ascii());
    }
    Ok(())
}

async fn exchange(table: &Table, sql: &str, answer: &mut Answer<'_>) -> Result<(), String> {
    let Table { address, credentials, .. } = table;
    let headers = [
        ("x-clickhouse-user", credentials.user.as_deref()),
        ("x-clickhouse-key", credentials.password.as_deref()),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let client = SingleClient::new(Endpoint::new(address.host.clone(), address.port), address.tls)?;
    let request = SingleRequest {
        method: "GET",
        path: &format!("/?query={}", percent_encoded(sql)),
        headers: &headers.collect::<Vec<_>>(),
        body: Vec::new(),
    };
    client.send(request, answer).await
}

/// Takes the answer apart into lines as it comes.
struct Answer<'l> {
    status: u16,
    error: Vec<u8>,
    /// The beginning of a line.
    rest: Vec<u8>,
    lines: u64,
    line: &'l mut dyn FnMut(u64, &[u8]),
    /// Pieces that came.
    heard: &'l Cell<u64>,
}

impl ResponseHandler for Answer<'_> {
    fn sent(&mut self, _: Moment, _: EncodedRequest) {}

    fn received(&mut self, _: usize, _: RxTime) {
        self.heard.set(self.heard.get() + 1);
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
    }

    fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
        if self.status != 200 {
            let room = ANSWER.saturating_sub(self.error.len()).min(bytes.len());
            self.error.extend_from_slice(bytes.get(..room).unwrap_or_default());
            return ControlFlow::Continue(());
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                continue;
            }
            self.lines += 1;
            (self.line)(self.lines, self.rest.trim_ascii());
            self.rest.clear();
        }
        if self.rest.len() > MAX_LINE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A text in a URL's query.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for half in [byte >> 4, byte & 15] {
                out.extend(char::from_digit(half.into(), 16));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Entry, Field, LogOf};
    use crate::source::{Credentials, table::Address};

    #[test]
    fn only_mapped_columns_of_the_time_of_the_run_are_asked_for() {
        let (address, _) = Address::parse("http://h/d.t`", "clickhouse").unwrap();
        let table =
            Table { address, credentials: Credentials::default(), patience: crate::PATIENCE };
        let entry = |field, column: &str, unit| Entry { field, column: column.to_owned(), unit };
        let column =
            |name: &str, kind: &str| Column { name: name.to_owned(), kind: kind.to_owned() };
        let columns = [column("id", "String"), column("when", "DateTime('Asia/Tokyo')")];
        let entries = vec![entry(Field::Id, "id", None), entry(Field::At, "when", Some(Unit::Iso))];
        let map = Map { entries, log_of: LogOf::Gateway, origin: String::new() };
        let map = typed(map, &columns);
        let window = Window { first: 5_000_000_000, last: 7_500_000_000 };
        assert_eq!(
            query(&table, &map, &columns, &window),
            "SELECT `id` AS `id`, toUnixTimestamp(`when`) AS `when` FROM `d`.`t\\`` AS t \
             WHERE toUnixTimestamp(t.`when`) >= 5 AND toUnixTimestamp(t.`when`) <= 8 \
             FORMAT JSONEachRow"
        );
        assert_eq!(percent_encoded("a b`é"), "a%20b%60%c3%a9");
        assert_eq!(literal("a'b\\"), "'a\\'b\\\\'");
    }
}
