//! The layers suite: the cost of each layer, the full stack, the cache, agents, the log and the
//! stores.
//!
//! It follows the published three-layer benchmark.

mod agent_checks;
mod agent_layers;
mod functional;
mod gateway_layers;
mod llm_layers;
mod log_writer;
mod request_log;
mod store_ops;

use plimsoll_report::format::{digits, limited_rate};
use plimsoll_report::table::Table;

use crate::error::SuiteError;
use crate::finding::Finding;
use crate::options::LayerPart;
use crate::report::{Contents, published};
use crate::runner::SuiteRunner;
use crate::sizing::{self, Capacity};

/// The headers of the API key and the tenant. Every request carries both, so that all variants get
/// the same bytes.
const KEY: (&str, &str) = ("apikey", "load-test-key");
const TENANT: (&str, &str) = ("x-tenant-id", "retail");

/// The published goal for layer 1.
const GOAL_PER_S: f64 = 50_000.0;

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Contents, SuiteError> {
    // All parts are wanted, unless the user names some.
    let only = &runner.options.only;
    let all = only.is_empty();
    let mut contents =
        Contents { sizing: "Replicas for a rate, per service", ..Contents::default() };
    if all || only.contains(&LayerPart::Gateway) {
        functional::check(runner, &mut contents)?;
        gateway_layers::measure(runner, &mut contents)?;
        gateway_layers::stack(runner, &mut contents)?;
    }
    let is_ours = runner.target().is_none();
    let to_reach = contents.capacities.first().map(|capacity| to_reach(capacity, is_ours));
    contents.findings.extend(to_reach);
    if all || only.contains(&LayerPart::Llm) {
        llm_layers::measure(runner, &mut contents)?;
    }
    if all || only.contains(&LayerPart::Agents) {
        agent_layers::measure(runner, &mut contents)?;
    }
    if all || only.contains(&LayerPart::Log) {
        request_log::measure(runner, &mut contents)?;
    }
    if all || only.contains(&LayerPart::Stores) {
        store_ops::measure(runner, &mut contents);
    }
    contents.references.push(published("Reference: APISIX"));
    Ok(contents)
}

/// Metric, result, target, share of the target: the columns of the published benchmark.
fn metrics(rows: impl IntoIterator<Item = [String; 4]>) -> Table {
    let mut table = Table::new(["Metric", "Result", "Target", "of target"]);
    rows.into_iter().for_each(|row| table.row(row));
    table
}

/// A row of it that no bound judges.
fn unjudged(metric: &str, result: String, target: &str) -> [String; 4] {
    [metric.to_owned(), result, target.to_owned(), "-".to_owned()]
}

/// What it takes to reach the published goal for the rate of layer 1, or why that is not known.
fn to_reach(capacity: &Result<Capacity, String>, is_ours: bool) -> Finding {
    let goal = digits(GOAL_PER_S);
    let capacity = match capacity {
        Ok(capacity) => capacity,
        Err(why) => {
            // Without the name of what is not sized.
            let why = why.split_once(": ").map_or(&**why, |(_, why)| why);
            return Finding::note(format!("what to buy to reach {goal}/s: unknown, because {why}"));
        }
    };
    let needed = sizing::instances_text(GOAL_PER_S, capacity.per_s);
    let per_s = limited_rate(Some(capacity.per_s));
    let what = if is_ours {
        format!("with all layers, one worker and core for each {per_s}/s: {needed} cores or")
    } else {
        format!("with {per_s}/s of one instance: {needed}")
    };
    Finding::note(format!(
        "to reach {goal}/s {what} instances like this one at 70 % of their capacity, as far as they do not slow each other down, which was not measured"
    ))
}
