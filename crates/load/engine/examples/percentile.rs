//! Loads a mock for a second and prints a percentile: `cargo run -p plimsoll-engine --example
//! percentile`.
#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;

use plimsoll_engine::{Control, Run};
use plimsoll_metrics::{Metric, QUANTILES, RunSummary};
use plimsoll_mock::{Mock, MockConfig};
use plimsoll_plan::PlanBuilder;
use plimsoll_workload::{Content, ScenarioSpec};

fn main() -> Result<(), Box<dyn Error>> {
    let mock = Mock::spawn(&MockConfig::from_yaml("")?, "127.0.0.1:0".parse()?)?;

    let content = Content::Pool { prompts: vec!["What is a load line?".to_owned()] };
    let chat = ScenarioSpec { max_tokens: Some(8), ..ScenarioSpec::new("chat", content) };
    let plan = PlanBuilder::new(&format!("http://{}", mock.addr()), "@100:1s")
        .model("mock-fast")
        .key("any")
        .scenario(chat)
        .build()?;

    let result = Run::prepare(plan)?.start(None, &Control::new(), &mut |_| {})?;
    let summary = RunSummary::build(result.metadata, result.health, &result.snapshot, &[])?;

    let total = &summary.results.total;
    println!("{} of {} completed", total.counters.completed, total.counters.scheduled);
    for quantile in &QUANTILES {
        let times = total.distribution(Metric::ResponseTime);
        if let Some(figure) = times.and_then(|times| times.figure(quantile)) {
            println!("{} {:.3} ms", quantile.label, figure.value);
        }
    }
    Ok(())
}
