//! The endpoints with keys, with limits and with both, beside the plain gateway.

use plimsoll_report::table::Table;

use super::{ENDPOINTS, USUAL, table};
use crate::comparison_plan::{ComparisonPlan, slug};
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::measurement::{Length, Measurement};
use crate::report::Section;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::suite::{CPU_SHORT, columns, comparison_length, passes};
use crate::target::{Provider, SuiteTarget};

/// The key that the variant with keys requires.
const KEY: &str = "suite-key";

/// The title of the first table.
const EACH_ON: &str = "Keys and rate limits, each on";

/// Requests per second and target that compare the variants.
const PAIRS_PER_S: f64 = 200.0;

/// What was measured, and what was compared.
#[derive(Debug, Default)]
pub(super) struct Variants {
    results: Vec<MeasurementResult>,
    /// By endpoint.
    added: Vec<(&'static str, ComparisonResult)>,
}

/// Loads each endpoint with keys, with limits and with both, interleaved with a plain gateway. All
/// of them are new: a gateway's `/metrics` grows with what it has answered before.
pub(super) fn measure(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
    length: Length,
) -> Result<Variants, SuiteError> {
    runner.section = EACH_ON;
    if runner.target().is_some() {
        runner.skip(
            "keys and rate limits on and off",
            "the suite cannot switch the layers of a target; start it both ways, and compare the two with `versus`",
        );
        return Ok(Variants::default());
    }
    let options = runner.options;
    let (keys, limits) = (keys(), limits());
    let both = [keys.clone(), limits.clone()].concat();
    let plain = runner.gateway("baseline", &super::off(), provider)?;
    let mut gateways = Vec::new();
    for (name, sets) in [("keys", keys), ("rate limits", limits), ("keys and rate limits", both)] {
        gateways.push((name, runner.gateway("baseline", &sets, provider)?));
    }
    let clients = options.clients.unwrap_or(USUAL);
    let measurement = |path: &str, name: &str, target: &SuiteTarget| {
        let label = format!("GET {path}, {name}");
        let measurement = Measurement::get(&label, target, path).clients(clients, length);
        if name.contains("keys") { with_key(measurement) } else { measurement }
    };
    let mut measurements = Vec::new();
    for path in ENDPOINTS {
        measurements.push(measurement(path, "plain", &plain.target));
        let guarded = gateways.iter().map(|(name, gateway)| (name, &gateway.target));
        measurements.extend(guarded.map(|(name, target)| measurement(path, name, target)));
    }
    let results = runner.measure(&measurements, passes(options, 3, 1));
    let compared = if options.short { &ENDPOINTS[..1] } else { &ENDPOINTS[..] };
    let mut added = Vec::new();
    for path in compared {
        let guarded = gateways.iter().map(|(name, gateway)| (slug(name), &gateway.target));
        let targets: Vec<_> = std::iter::once(("plain".to_owned(), &plain.target))
            .chain(guarded)
            .map(|(name, target)| (name, target.below(path)))
            .collect();
        // All get the same bytes, a key that the plain gateway does not read included.
        let label = format!("keys and limits, GET {path}");
        let request = with_key(Measurement::get_base(&label, &targets[0].1))
            .rate(PAIRS_PER_S, comparison_length(options, 30, CPU_SHORT));
        let comparison = ComparisonPlan::new(&label, request, targets).of_variants();
        added.push((*path, runner.compare(&comparison.short(options.short))));
    }
    Ok(Variants { results, added })
}

fn with_key(measurement: Measurement) -> Measurement {
    measurement.header("authorization", &format!("Bearer {KEY}"))
}

fn keys() -> Vec<String> {
    vec![
        format!("auth={{header: authorization, keys: [{{name: suite, key: {KEY}}}]}}"),
        "rate_limits=[]".to_owned(),
    ]
}

/// Limits that count every request and refuse none.
fn limits() -> Vec<String> {
    vec![
        "rate_limits=[{per: global, requests: 1000000000, window: 60s}, {per: address, requests: 1000000000, window: 60s}]".to_owned(),
    ]
}

impl Variants {
    pub(super) fn sections(&self) -> Vec<Section> {
        if self.results.is_empty() {
            return Vec::new();
        }
        let each = Section::new(EACH_ON, table(&self.results)).note(
            "the default limit of the preset, 600 requests in 60 s, is not for production; here every request is counted, with a limit that is never reached. To tune it: `rate_limits` and `auth` of the gateway's file, or --set",
        );
        vec![each, self.added_section()]
    }

    fn added_section(&self) -> Section {
        let mut table = Table::new(["Endpoint", "On", "added, median", "added CPU/req"]);
        for (path, added) in &self.added {
            for name in added.compared() {
                table.row([
                    format!("{}GET {path}", added.marker()),
                    name.to_owned(),
                    added.added_cell(name),
                    added.cpu_cell(name),
                ]);
            }
        }
        let section =
            Section::new("What keys and rate limits add", table).note(columns::ADDED_BY_VARIANTS);
        if self.added.len() == ENDPOINTS.len() {
            return section;
        }
        section.note("with --short only the first endpoint is compared")
    }
}
