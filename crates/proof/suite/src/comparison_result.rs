//! The result of a comparison: what its judge says, as tables and findings need it.

use plimsoll_report::format::{self, DASH, or_dash};
use plimsoll_versus::{Claim, CpuDifference, Difference, Kind, Versus};
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// Comparison of targets that received the same requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonResult {
    /// Its name in the report; unique in its suite, and the same from run to run.
    pub label: String,
    /// The judge's result; `None` if the comparison did not run.
    pub versus: Option<Versus>,
    /// Files with every pair and the whole summary, relative to the folder of `suite.json`.
    pub files: Vec<String>,
    /// Why the comparison did not run.
    pub error: Option<String>,
    /// Load of other processes and machines on the host; `None` if it was quiet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_host: Option<String>,
}

/// A difference with its 95 % interval, including the generator's overhead for times: value, low,
/// high.
pub(crate) type Interval = [f64; 3];

impl ComparisonResult {
    /// Why the comparison supports no conclusion; `None` if it does.
    pub fn why_unusable(&self) -> Option<String> {
        let Some(versus) = &self.versus else {
            let why = self.error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            return Some(format!("not compared{why}"));
        };
        let why = versus.invalid.first()?;
        Some(format!("the comparison is invalid: {why}"))
    }

    /// Whether being INVALID is the only obstacle.
    pub(crate) fn is_only_invalid(&self) -> bool {
        self.versus.as_ref().is_some_and(|versus| !versus.invalid.is_empty())
    }

    /// The mark before its name or its figures.
    pub(crate) fn marker(&self) -> &'static str {
        match (&self.versus, self.why_unusable()) {
            (_, None) => "",
            (None, _) => "[NOT RUN] ",
            (Some(_), _) => "[INVALID] ",
        }
    }

    /// Name of the reference target.
    pub(crate) fn reference(&self) -> &str {
        self.versus.as_ref().map_or("", Versus::reference)
    }

    /// The targets that were compared with it.
    pub(crate) fn compared(&self) -> Vec<&str> {
        self.versus.as_ref().map(Versus::compared).unwrap_or_default()
    }

    /// The name of the time that was compared first.
    pub(crate) fn figure(&self) -> String {
        self.versus.as_ref().map_or_else(String::new, |versus| versus.headline.title().to_owned())
    }

    /// Blocks that every target completed.
    pub(crate) fn pairs(&self) -> String {
        or_dash(self.versus.as_ref(), |versus| format::count(versus.blocks.complete))
    }

    /// A target's own median.
    pub(crate) fn p50(&self, target: &str) -> String {
        or_dash(self.p50_ms(target), format::time)
    }

    /// The same in milliseconds.
    pub(crate) fn p50_ms(&self, target: &str) -> Option<f64> {
        let versus = self.versus.as_ref()?;
        let found = versus.targets.iter().find(|known| known.name == target)?;
        Some(found.own(versus.headline)?.p50_ns? / 1e6)
    }

    fn difference(&self, target: &str, kind: Kind, quantile: &str) -> Option<&Difference> {
        let versus = self.versus.as_ref()?;
        versus.difference(target, versus.reference(), versus.headline, kind, quantile)
    }

    fn cpu_difference(&self, target: &str) -> Option<&CpuDifference> {
        let versus = self.versus.as_ref()?;
        versus
            .cpu
            .iter()
            .find(|found| found.target == target && found.reference == versus.reference())
    }

    /// Median overhead of a target per request, in milliseconds.
    ///
    /// # Errors
    /// Why it is not known.
    pub(crate) fn added(&self, target: &str) -> Result<Interval, String> {
        self.why_unusable().map_or(Ok(()), Err)?;
        let found = self.difference(target, Kind::Added, "p50").ok_or("it has no complete pair")?;
        in_millis(found.limited()).ok_or_else(|| found.refused.clone().unwrap_or_default())
    }

    /// CPU time per request that a variant adds, as a share of the reference's.
    ///
    /// # Errors
    /// Why it is not known.
    pub(crate) fn cpu_share(&self, target: &str) -> Result<Interval, String> {
        self.why_unusable().map_or(Ok(()), Err)?;
        let unknown = "the CPU time of both targets is needed";
        let found = self.cpu_difference(target).ok_or(unknown)?;
        let own = self.cpu_ns(self.reference()).ok_or(unknown)?;
        cpu_interval(found)
            .map(|ends| ends.map(|end| end / own))
            .ok_or_else(|| found.refused.clone().unwrap_or_else(|| unknown.to_owned()))
    }

    /// A target's CPU time per request.
    fn cpu_ns(&self, target: &str) -> Option<f64> {
        let mut targets = self.versus.iter().flat_map(|versus| &versus.targets);
        targets.find(|known| known.name == target)?.cpu_ns_per_request
    }

    /// The same behind the mark.
    pub(crate) fn marked_own_cpu(&self, target: &str) -> String {
        self.marked(or_dash(self.cpu_ns(target), |nanos| format::time(nanos / 1e6)))
    }

    /// Overhead of a target, for a table row with the mark of this comparison.
    pub(crate) fn added_cell(&self, target: &str) -> String {
        words(self.difference(target, Kind::Added, "p50"))
    }

    /// The shift of the p99, for such a row.
    pub(crate) fn tail_cell(&self, target: &str) -> String {
        words(self.difference(target, Kind::Shift, "p99"))
    }

    /// CPU time per request that a variant adds, for such a row.
    pub(crate) fn cpu_cell(&self, target: &str) -> String {
        let found = self.cpu_difference(target).and_then(cpu_interval);
        let found = found.map(|ends| ends.map(|nanos| nanos / 1e6));
        or_dash(found, |[value, low, high]| format::difference(value, low, high))
    }

    /// A cell with the mark of this comparison in front, for other tables.
    pub(crate) fn marked(&self, cell: String) -> String {
        if cell == DASH { cell } else { format!("{}{cell}", self.marker()) }
    }

    /// The findings: differences that are significant together at 5 %, targets without a conclusion
    /// and the reason, and notes for the reader.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let Some(versus) = &self.versus else { return Vec::new() };
        let label = &self.label;
        let said = versus.claims.iter().filter(|claim| claim.holds).map(Claim::finding);
        let said = said.filter(|finding| finding.code == 404);
        let mut findings: Vec<_> =
            said.map(|finding| Finding::note(format!("{label}: {}", finding.text()))).collect();
        let mut unknown: Vec<(String, Vec<&str>)> = Vec::new();
        for target in versus.compared() {
            let Err(why) = self.added(target) else { continue };
            match unknown.iter_mut().find(|(known, _)| *known == why) {
                Some((_, targets)) => targets.push(target),
                None => unknown.push((why, vec![target])),
            }
        }
        findings.extend(unknown.into_iter().map(|(why, targets)| {
            Finding::warning(format!("{label}: no cost is given for {}: {why}", targets.join(", ")))
        }));
        let known = versus.findings.iter();
        findings.extend(known.map(|found| Finding::warning(format!("{label}: {}", found.text()))));
        findings
    }
}

fn in_millis(measured: Option<(f64, f64, f64)>) -> Option<Interval> {
    measured.map(|(value, low, high)| [value / 1e6, low / 1e6, high / 1e6])
}

fn cpu_interval(found: &CpuDifference) -> Option<Interval> {
    Some([found.value_ns?, found.low_ns?, found.high_ns?])
}

fn words(found: Option<&Difference>) -> String {
    or_dash(found.and_then(Difference::words), |words| words)
}
