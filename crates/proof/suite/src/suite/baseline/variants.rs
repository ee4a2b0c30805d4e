//! The endpoints with keys, with limits and with both, beside the plain gateway.

use plimsoll_report::table::Table;

use super::{ENDPOINTS, USUAL, table};
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::measurement::{Length, Measurement};
use crate::report::Section;
use crate::runner::{OWN_ONLY, SuiteRunner};
use crate::suite::{CPU_SHORT, comparison_length, passes};
use crate::target::{Gateway, Provider, slug};

/// The key that the variant with keys requires.
const KEY: &str = "suite-key";

/// The title of the first table.
const EACH_ON: &str = "Keys and rate limits, each on";

/// Requests per second and target that compare the variants.
const PAIRS_PER_S: f64 = 200.0;

/// Loads each endpoint with keys, with limits and with both, interleaved with a plain gateway. All
/// gateways are new, because a gateway's `/metrics` grows with its earlier answers.
pub(super) fn sections(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
    length: Length,
) -> Result<Vec<Section>, SuiteError> {
    runner.section = EACH_ON;
    if runner.target().is_some() {
        runner.skip_section(OWN_ONLY);
        return Ok(Vec::new());
    }
    let options = runner.options;
    let gateways = runner.variants("baseline", "endpoint", provider)?;
    let clients = options.clients.unwrap_or(USUAL);
    let all = ENDPOINTS.iter().flat_map(|path| gateways.iter().map(move |one| (path, one)));
    let mut measurements = Vec::new();
    for (path, (name, gateway)) in all {
        let label = format!("GET {path}, {name}");
        let request = Measurement::get(&label, &gateway.target, path).clients(clients, length);
        measurements.push(if name.contains("keys") { with_key(request) } else { request });
    }
    let results = runner.measure(&measurements, passes(options, 3, 1));
    let compared = if options.short { &ENDPOINTS[..1] } else { &ENDPOINTS[..] };
    let mut added = Vec::new();
    for path in compared {
        let targets: Vec<_> = gateways
            .iter()
            .map(|(name, gateway): &(&str, Gateway)| (slug(name), gateway.target.below(path)))
            .collect();
        // All get the same bytes, a key that the plain gateway does not read included.
        let label = format!("keys and limits, GET {path}");
        let request = with_key(Measurement::get_base(&label, &targets[0].1))
            .rate(PAIRS_PER_S, comparison_length(options, 30, CPU_SHORT));
        added.push((*path, runner.compare(request, &targets, true)));
    }
    let each = Section::new(EACH_ON, table(&results));
    Ok(vec![each, added_section(&added)])
}

fn with_key(measurement: Measurement) -> Measurement {
    measurement.header("authorization", &format!("Bearer {KEY}"))
}

fn added_section(all: &[(&str, ComparisonResult)]) -> Section {
    let mut table = Table::new(["Endpoint", "On", "added, median", "added CPU/req"]);
    for (path, added) in all {
        for name in added.compared() {
            table.row([
                format!("{}GET {path}", added.marker()),
                name.to_owned(),
                added.added_cell(name),
                added.cpu_cell(name),
            ]);
        }
    }
    Section::new("Overhead of keys and rate limits", table)
}
