//! The layers suite: the cost of each layer, the full stack, the cache, agents, the log and the
//! stores.
//!
//! It follows the published three-layer benchmark.

mod agent_layers;
mod functional;
mod gateway_layers;
mod llm_layers;
mod log_writer;
mod request_log;
mod store_ops;

pub(super) use llm_layers::NO_CHAT;

use plimsoll_report::format::DASH;
use plimsoll_report::table::Table;

use crate::error::SuiteError;
use crate::report::published;
use crate::runner::SuiteRunner;

/// The headers of the API key and the tenant. Every request has both, so all variants get the same
/// bytes.
const KEY: (&str, &str) = ("apikey", "load-test-key");
const TENANT: (&str, &str) = ("x-tenant-id", "retail");

/// The published goal for layer 1.
const GOAL_PER_S: f64 = 50_000.0;

type Part = fn(&mut SuiteRunner<'_>) -> Result<(), SuiteError>;

/// The parts, by their names on the command line: layer 1 and its full stack, LLM requests, agents,
/// the request log, and operations of the stores.
const PARTS: [(&str, &[Part]); 5] = [
    ("1", &[functional::check, gateway_layers::measure, gateway_layers::stack]),
    ("2", &[llm_layers::measure]),
    ("3", &[agent_layers::measure]),
    ("log", &[request_log::measure]),
    ("stores", &[store_ops::measure]),
];

/// Parses the name of a part of `suite layers`.
///
/// # Errors
/// Which parts there are.
pub fn layer_part(text: &str) -> Result<&'static str, String> {
    let names = PARTS.map(|(name, _)| name);
    names.into_iter().find(|name| *name == text).ok_or_else(|| {
        format!("unknown part `{text}`: expected one or more of {}", names.join(", "))
    })
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    // All parts are wanted, unless the user names some.
    let only = &runner.options.only;
    for (_, steps) in PARTS.iter().filter(|(name, _)| only.is_empty() || only.contains(name)) {
        steps.iter().try_for_each(|step| step(runner))?;
    }
    runner.report.references.push(published("Reference: APISIX"));
    Ok(())
}

/// A table with the columns of the published benchmark.
fn metrics(rows: impl IntoIterator<Item = [String; 5]>) -> Table {
    let mut table = Table::new(["Metric", "Result", "Target", "Status", "of target"]);
    rows.into_iter().for_each(|row| table.row(row));
    table
}

/// A row of it that no bound judges.
fn unjudged(metric: &str, result: String, target: &str) -> [String; 5] {
    let [metric, target, none] = [metric, target, DASH].map(str::to_owned);
    [metric, result, target, none.clone(), none]
}
