//! The charts of the pages. Vega-Lite draws them: a chart is a specification, which is a file
//! beside this code, and its data. Its numbers stand in a table, too.

mod compared;
mod knee;
mod levels;
mod over_time;
mod percentiles;
mod slowest;
mod versus;

pub(crate) use compared::{gates, runs_by_percentile};
pub(crate) use knee::{charts as of_knee, name_of};
pub(crate) use levels::curves;
use maud::{Markup, PreEscaped, html};
use plimsoll_metrics::BoundedFigure;
use plimsoll_report::format::{self, count, digits, or_dash, time};
use plimsoll_report::printable;
use plimsoll_report::table::Table;
use serde_json::{Map, Value};
pub(crate) use versus::added as added_in;

use crate::input::Input;
use crate::table::render_table;

/// A question and its answer: in words, as a drawing, and in numbers.
#[derive(Debug)]
pub(crate) struct Chart {
    /// Unique in the page; letters, digits and `-`.
    id: &'static str,
    title: String,
    /// A sentence or two.
    text: String,
    /// The Vega-Lite specification.
    spec: &'static str,
    /// The data sets of the specification; `rows` is the main one.
    data: Map<String, Value>,
    table: Table,
}

impl Chart {
    /// A chart of `charts.tsv` about `subject`, whose rows are its table.
    fn named(name: &str, subject: &str, spec: &'static str, rows: &Rows) -> Self {
        let [id, title, text, ..] = caption(name);
        let (title, text) = (title.replace("{}", subject), text.to_owned());
        let data = Map::from_iter([("rows".to_owned(), rows.values())]);
        Self { id, title, text, spec, data, table: rows.table() }
    }

    /// The same with a further data set.
    fn with(mut self, name: &str, data: Value) -> Self {
        self.data.insert(name.to_owned(), data);
        self
    }

    pub(crate) fn render(&self) -> Markup {
        let (title, text) = (format!("{}-title", self.id), format!("{}-text", self.id));
        let data = Value::from(self.data.clone());
        // `<` begins whatever could end the script element: `</script>` and `<!--`.
        let data = data.to_string().replace('<', "\\u003c");
        let json = format!("{{\"spec\":{},\"data\":{data}}}", self.spec);
        html! {
            section id=(self.id) {
                h2 id=(title) { (self.title) }
                p id=(text) { (self.text) }
                figure {
                    div.chart role="img" aria-labelledby=(format!("{title} {text}")) {}
                    script type="application/json" { (PreEscaped(json)) }
                }
                details { summary { "the numbers" } (render_table(&self.table)) }
            }
        }
    }
}

/// One value: for the drawing, and as its text in the table.
#[derive(Clone, Debug, Default)]
struct Cell {
    value: Value,
    text: String,
}

impl Cell {
    fn new(value: impl Into<Value>, text: impl Into<String>) -> Self {
        Self { value: value.into(), text: text.into() }
    }

    fn text(text: &str) -> Self {
        Self::new(printable(text), text)
    }

    fn count(number: u64) -> Self {
        Self::new(number, count(number))
    }

    /// Milliseconds.
    fn time(ms: Option<f64>) -> Self {
        Self::new(ms, or_dash(ms, time))
    }

    fn rate(per_second: Option<f64>) -> Self {
        Self::new(per_second, or_dash(per_second, digits))
    }

    /// A time with its limits.
    fn figure(figure: Option<BoundedFigure>) -> Self {
        Self::new(figure.map(|figure| figure.value), format::figure(figure))
    }

    /// A value that only the drawing needs.
    fn value(value: impl Into<Value>) -> Self {
        Self::new(value, "")
    }
}

/// The main data set of a chart. The drawing has all columns, the table the first ones.
struct Rows {
    head: Vec<&'static str>,
    in_table: usize,
    cells: Vec<Vec<Cell>>,
}

/// Id, title, text, and the columns of the table and of the drawing of a chart in `charts.tsv`.
fn caption(name: &str) -> [&'static str; 5] {
    let mut rows = include_str!("charts.tsv").lines();
    let row = rows.find_map(|row| row.strip_prefix(name)?.strip_prefix('\t'));
    let mut cells = row.unwrap_or_default().split('\t');
    std::array::from_fn(|_| cells.next().unwrap_or_default())
}

impl Rows {
    /// No rows yet, with the columns of a chart in `charts.tsv`.
    fn named(name: &str) -> Self {
        let [.., table, drawn] = caption(name);
        let [table, drawn] = [table, drawn].map(|columns| columns.split_terminator('|'));
        let in_table = table.clone().count();
        Self { head: table.chain(drawn).collect(), in_table, cells: Vec::new() }
    }

    fn values(&self) -> Value {
        let rows = self.cells.iter().map(|row| {
            let members = self.head.iter().zip(row);
            members
                .map(|(name, cell)| ((*name).to_owned(), cell.value.clone()))
                .collect::<Map<_, _>>()
        });
        rows.map(Value::from).collect()
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.head[..self.in_table].to_vec());
        for row in &self.cells {
            table.row(row.iter().take(self.in_table).map(|cell| &*cell.text));
        }
        table
    }
}

/// Every chart of a run but its [`curves`] for which there are data.
pub(crate) fn all(input: &Input<'_>, has_curves: bool) -> Vec<Chart> {
    let mut charts = Vec::new();
    charts.extend(input.versus.and_then(|found| {
        let title = format!("Overhead of each target: {}", found.headline.title());
        versus::added(&title, &[("", found)])
    }));
    if let Some(timeline) = input.timeline.filter(|timeline| !timeline.intervals.is_empty()) {
        charts.extend(over_time::times(input.summary, timeline));
        // The curves of a sweep show its rates.
        charts.extend((!has_curves).then(|| over_time::rates(timeline)));
    }
    charts.extend(percentiles::by_target(input.summary));
    charts.extend(input.exemplars.and_then(|found| slowest::chart(found, input.server)));
    charts
}
