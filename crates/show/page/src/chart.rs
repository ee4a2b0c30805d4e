//! The charts of the pages. Vega-Lite draws them: a chart is a specification, which is a file
//! beside this code, and its data. Its numbers stand in a table, too.

pub(crate) use knee::{charts as of_knee, name_of};
use maud::{Markup, PreEscaped, html};
use over_time::Times;
pub(crate) use over_time::{compared, curves};
use plimsoll_compare::gates::FigureUnit;
use plimsoll_compare::{Comparison, GateResult, Rule};
use plimsoll_metrics::{BoundedFigure, Metric, RunSummary, RunTimeline};
use plimsoll_report::format::{self, count, digits, or_dash, time};
use plimsoll_report::printable;
use plimsoll_report::screen::Screen;
use plimsoll_report::table::Table;
use plimsoll_versus::Versus;
use serde_json::{Map, Value, json};

mod knee;
mod over_time;

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
    charts.extend(input.versus.into_iter().flat_map(|found| {
        let title = format!("Overhead of each target: {}", found.headline.title());
        compared(&title, &[("", found)])
    }));
    if let Some(timeline) = input.timeline.filter(|timeline| !timeline.intervals.is_empty()) {
        charts.extend(over_time::times(input.summary, timeline));
        // The curves of a sweep show its rates.
        charts.extend((!has_curves).then(|| over_time::rates(timeline)));
        charts.extend(over_time::servers(timeline));
    }
    charts.extend(over_time::by_target(input.summary));
    charts
}

// Old runs against new ones: the change of each gate, and the percentiles of every run.

/// The change of each gate with its margin.
pub(crate) fn gates(comparison: &Comparison) -> Option<Chart> {
    let rows: Vec<Value> = comparison.gates.iter().filter_map(gate).collect();
    let text = match comparison.rule {
        Rule::Repeats => {
            "A gate passes if the worse end of its 95 % interval is within the margin."
        }
        Rule::Simple => "Two numbers are compared, without regard to chance.",
    };
    (!rows.is_empty()).then(|| Chart {
        id: "gates",
        title: "Change of each gate".to_owned(),
        text: text.to_owned(),
        spec: include_str!("../assets/charts/gates.json"),
        data: Map::from_iter([("rows".to_owned(), rows.into())]),
        table: comparison.table(),
    })
}

/// A gate with a known change, in percent, or in percentage points for a share.
fn gate(gate: &GateResult) -> Option<Value> {
    let change = gate.judged.change?;
    let unit = if gate.unit == FigureUnit::Share { "percentage points" } else { "%" };
    let margin = if gate.more_is_worse { gate.margin } else { -gate.margin };
    let [low, high] = [gate.judged.low, gate.judged.high].map(|end| Some(end? * 100.0));
    Some(json!({
        "row": format!("{} ({unit})", gate.name),
        "gate": gate.name,
        "judgement": gate.judged.judgement.verdict(),
        "change": change * 100.0,
        "margin": margin * 100.0,
        "low": low,
        "high": high,
    }))
}

/// A line per run, which shows the variation between the runs of each side.
pub(crate) fn runs_by_percentile(comparison: &Comparison) -> Option<Chart> {
    let times = comparison.times.as_ref()?;
    let metric = Metric::ALL.into_iter().find(|metric| metric.key() == times.metric)?;
    let sides = [("old", &times.base), ("new", &times.new)];
    let runs = sides.into_iter().flat_map(|(of, runs)| {
        runs.iter().enumerate().filter_map(move |(run, distribution)| {
            Some(Times { of, run: run + 1, metric, distribution: distribution.as_ref()? })
        })
    });
    let title = format!("{} of every run by percentile", metric.title());
    over_time::chart(&title, &runs.collect::<Vec<_>>())
}

// Tables: the numbers of a chart, and the tables at the head of the page.

/// Renders a table; a wide one scrolls by itself, so that the page does not. A row with only a name
/// takes the whole width.
pub(crate) fn render_table(table: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        @for cell in &table.head {
                            @if cell.is_empty() { td {} } @else { th scope="col" { (printable(cell)) } }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows { tr { (cells(row, table.head.len())) } }
                }
            }
        }
    }
}

fn cells(row: &[String], columns: usize) -> Markup {
    html! {
        @if let ([name], 2..) = (row, columns) {
            td colspan=(columns) { (printable(name)) }
        } @else {
            @for cell in row { td { (printable(cell)) } }
        }
    }
}

// Input of the pages.

/// Input of a run's page.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Results of the run.
    pub summary: &'a RunSummary,
    /// Results over time; `None` for a run of an earlier version.
    pub timeline: Option<&'a RunTimeline>,
    /// The comparison, if targets were compared.
    pub versus: Option<&'a Versus>,
}

/// Input of a suite's page. A separate type, because the suite's crate can generate load, which a
/// page does not need.
#[derive(Clone, Debug)]
pub struct Suite<'a> {
    /// Name of the suite.
    pub name: &'a str,
    /// Its result.
    pub screen: &'a Screen,
    /// Targets compared by pairs of requests, with the name of each comparison.
    pub comparisons: Vec<(&'a str, &'a Versus)>,
}
