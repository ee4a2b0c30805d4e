//! What each feature adds to the raw path: the same request on the gateway with it and without.

use super::{RAW, length};
use crate::comparison_plan::{ComparisonPlan, slug};
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::measurement::Measurement;
use crate::report::Section;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::suite::{CPU_SHORT, PAIRS_PER_S, columns, comparison_length, passes};
use crate::target::{Gateway, Provider, SuiteTarget};

/// The features, measured: first the raw path.
pub(super) struct Features {
    /// What each carries by itself.
    alone: Vec<MeasurementResult>,
    /// What each adds.
    compared: ComparisonResult,
}

/// Measures each feature on the raw path, with a chat of 550 tokens.
pub(super) fn features(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
) -> Result<Option<Features>, SuiteError> {
    runner.section = "What each feature adds";
    if runner.target().is_some() {
        runner.skip(
            "what each feature adds",
            "the suite cannot switch the features of a target; start it both ways, and compare the two with `versus`",
        );
        return Ok(None);
    }
    if runner.is_interrupted() {
        return Ok(None);
    }
    let mut gateways = Vec::new();
    for (name, sets) in rows(runner) {
        let sets: Vec<_> = RAW.iter().map(|&set| set.to_owned()).chain(sets).collect();
        gateways.push((name, runner.gateway("llm", &sets, provider)?));
    }
    let request = |name: &str, target: &SuiteTarget| {
        Measurement::builtin(name, target, "perf-550-nonstream", &["headers.x-tenant-id=load"])
    };
    let alone = gateways.iter().map(|(name, gateway): &(&str, Gateway)| {
        request(name, &gateway.target).clients(64, length(runner, 20))
    });
    let alone: Vec<_> = alone.collect();
    let alone = runner.measure(&alone, passes(runner.options, 3, 1));
    let targets: Vec<_> =
        gateways.iter().map(|(name, gateway)| (slug(name), gateway.target.clone())).collect();
    let load = comparison_length(runner.options, 60, CPU_SHORT);
    let request = request("features", &targets[0].1).rate(PAIRS_PER_S, load);
    let comparison = ComparisonPlan::new("each feature", request, targets).of_variants();
    let compared = runner.compare(&comparison.short(runner.options.short));
    Ok(Some(Features { alone, compared }))
}

/// Name, and settings beside those of the raw path.
fn rows(runner: &SuiteRunner<'_>) -> [(&'static str, Vec<String>); 8] {
    let audit = serde_json::json!({"path": runner.options.folder.join("audit-tiers.jsonl")});
    let audit = format!("audit={audit}");
    let rows: [(&str, &[&str]); 8] = [
        ("raw path", &[]),
        ("request id and metrics", &["request_id={}", "metrics={}"]),
        ("key auth", &["auth={header: authorization, keys: [{name: suite, key: any}]}"]),
        ("cache (always missed)", &["tenant={header: x-tenant-id}", "cache={}"]),
        (
            "budget",
            &["tenant={header: x-tenant-id, anonymous: true}", "budgets={default: 1000000000000}"],
        ),
        ("policy scan of requests", &["policy={}"]),
        ("response PII scrub", &["scrub={}"]),
        ("audit rows", &[&audit]),
    ];
    rows.map(|(name, sets)| (name, sets.iter().map(|&set| set.to_owned()).collect()))
}

impl Features {
    pub(super) fn section(&self) -> Section {
        let mut table = columns::variants("Feature on the raw path");
        for (index, result) in self.alone.iter().enumerate() {
            table.row(columns::variant(result, Some(&self.compared).filter(|_| index > 0)));
        }
        Section::new("What each feature adds to the raw path (550/150, not streamed)", table)
            .note(columns::ADDED_BY_VARIANTS)
            .note("the other columns are of each by itself, in a closed loop of 64 clients: times are service times. They are measured one after another, and no cost is taken from them")
    }
}
