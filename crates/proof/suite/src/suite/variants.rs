//! Gateways that differ in their settings: what each carries by itself, and what it adds to the
//! first of them.

use plimsoll_report::format::or_dash;
use plimsoll_report::table::Table;

use super::columns::{self, CPU, GW_CORE, LOAD_CORE, MEMORY, P50, P99, RPS};
use super::{CPU_SHORT, comparison_length, passes};
use crate::comparison_result::ComparisonResult;
use crate::measurement::{Length, Measurement};
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::target::{Gateway, SuiteTarget, slug};

/// Variants, measured.
pub(super) struct Variants {
    /// What each carries by itself.
    pub(super) alone: Vec<MeasurementResult>,
    /// What each adds to the first.
    pub(super) added: ComparisonResult,
}

/// The load of a comparison of variants.
pub(super) struct VariantsLoad<'a> {
    /// The name of the comparison.
    pub(super) label: &'a str,
    /// Clients of each variant by itself.
    pub(super) clients: u32,
    pub(super) length: Length,
    /// Requests per second that go to each of them.
    pub(super) per_s: f64,
}

impl Variants {
    /// All variants run at once. First they are loaded by themselves, in turn; then beside each
    /// other. `request` makes a request with a label.
    pub(super) fn measure(
        runner: &mut SuiteRunner<'_>,
        gateways: &[(&str, Gateway)],
        load: &VariantsLoad<'_>,
        request: impl Fn(&str, &SuiteTarget) -> Measurement,
    ) -> Self {
        let VariantsLoad { label, clients, length, per_s } = *load;
        let alone: Vec<_> = gateways
            .iter()
            .map(|(name, gateway)| request(name, &gateway.target).clients(clients, length))
            .collect();
        let alone = runner.measure(&alone, passes(runner.options, 3, 1));
        let targets: Vec<_> =
            gateways.iter().map(|(name, gateway)| (slug(name), gateway.target.clone())).collect();
        let pairs = comparison_length(runner.options, 60, CPU_SHORT);
        let added =
            runner.compare(request(label, &targets[0].1).rate(per_s, pairs), &targets, true);
        Self { alone, added }
    }

    /// CPU time per request that the last variant adds, as a share of the first one's.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) fn cpu_share_of_last(&self) -> Result<[f64; 3], String> {
        let last = self.alone.last().map(|last| slug(&last.label)).unwrap_or_default();
        self.added.cpu_share(&last)
    }
}

/// The table of what variants add, and of what each carries by itself.
pub(super) fn table<'v>(what: &str, all: impl IntoIterator<Item = &'v Variants>) -> Table {
    let own = [RPS, CPU, MEMORY, P50, P99, GW_CORE, LOAD_CORE];
    let heads = [what, "added, median", "added CPU/req"];
    let mut table = Table::new(heads.into_iter().chain(own.map(|column| column.0)));
    for Variants { alone, added } in all {
        for (index, result) in alone.iter().enumerate() {
            let name = slug(&result.label);
            let added = Some(added).filter(|_| index > 0);
            let fixed = [
                columns::marked(result, &result.label),
                or_dash(added, |added| added.marked(added.added_cell(&name))),
                or_dash(added, |added| added.marked(added.cpu_cell(&name))),
            ];
            table.row(fixed.into_iter().chain(own.map(|column| (column.1)(result))));
        }
    }
    table
}
