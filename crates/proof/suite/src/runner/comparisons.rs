//! Carries the comparisons of a suite out: the same requests on several targets.

use plimsoll_report::format::count;
use plimsoll_run_files::pairs::{PairsHeader, PairsWriter};
use plimsoll_runner::facts;
use plimsoll_versus::{Versus, judge};

use super::SuiteRunner;
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::host::Compared;
use crate::measurement::Measurement;
use crate::process_use::watched;
use crate::target::{SuiteTarget, slug};

/// What the judge says, and the files with all of it.
pub(super) type Judged = (Versus, Vec<String>);

impl SuiteRunner<'_> {
    /// Sends the requests of a measurement to each target, close together, and judges what the
    /// others add to the first; nothing once the user has ended the suite.
    pub(crate) fn compare(
        &mut self,
        request: Measurement,
        targets: &[(String, SuiteTarget)],
        variants: bool,
    ) -> ComparisonResult {
        if self.is_interrupted() {
            return ComparisonResult { label: request.label, ..ComparisonResult::default() };
        }
        let compared = self.carry_out(&request, targets, variants);
        let judged = compared.and_then(|compared| self.judged(&request.label, &compared));
        self.add_comparison(&request.label, judged.map_err(|error| error.to_string()))
    }

    /// Keeps the result of a comparison, or why there is none.
    pub(super) fn add_comparison(
        &mut self,
        label: &str,
        judged: Result<Judged, String>,
    ) -> ComparisonResult {
        let label = label.to_owned();
        let mut result = ComparisonResult { label, ..ComparisonResult::default() };
        match judged {
            Ok((versus, files)) => {
                let invalid = versus.invalid.first().map(|why| format!("  INVALID: {why}"));
                let [complete, all] = [versus.blocks.complete, versus.blocks.recorded].map(count);
                let label = &result.label;
                let invalid = invalid.unwrap_or_default();
                self.log(&format!(
                    "{label}, compared: {complete} of {all} requests complete on every target{invalid}"
                ));
                (result.versus, result.files) = (Some(versus), files);
            }
            Err(error) => {
                self.log(&format!("{}: {error}", result.label));
                result.error = Some(error);
            }
        }
        self.report.comparisons.push(result.clone());
        result
    }

    /// Loads the targets of a comparison. If they are `variants` of the first one, each is compared
    /// with it alone.
    pub(super) fn carry_out(
        &mut self,
        request: &Measurement,
        targets: &[(String, SuiteTarget)],
        variants: bool,
    ) -> Result<Compared, SuiteError> {
        // A short suite has no time to see whether targets disturb each other.
        let settings: &[&str] = if self.options.short { &["versus.alone=0s"] } else { &[] };
        let plan = request.comparison_plan(targets, settings)?;
        self.host.announce(&request.label);
        let processes = targets.iter().map(|(name, target)| (&**name, target.gateway_pid));
        let mut compared = self.host.compare(plan, watched(processes), self.control)?;
        compared.summary.metadata.environment.clone_from(&self.options.environment);
        compared.summary.health.calibration.clone_from(&self.options.calibration);
        compared.facts.variants = variants;
        Ok(compared)
    }

    /// Judges what was carried out, and keeps its files.
    pub(super) fn judged(&self, label: &str, compared: &Compared) -> Result<Judged, SuiteError> {
        let mut versus = judge(&compared.facts, &compared.blocks);
        facts::take_over(&compared.summary, &mut versus);
        let files = self.keep_comparison(label, compared, &versus)?;
        Ok((versus, files))
    }

    /// Writes every pair, the whole judgement and the summary.
    fn keep_comparison(
        &self,
        label: &str,
        compared: &Compared,
        versus: &Versus,
    ) -> Result<Vec<String>, SuiteError> {
        let metadata = &compared.summary.metadata;
        let header = PairsHeader {
            targets: metadata.targets.iter().map(|target| target.name.clone()).collect(),
            seed: metadata.run.seed,
            started_unix_ns: metadata.run.started_unix_ns,
        };
        let mut pairs = Vec::new();
        let written = PairsWriter::new(&mut pairs, header)
            .and_then(|mut writer| writer.write(&compared.blocks));
        written.map_err(SuiteError::system("write pairs.bin"))?;
        let mut files = Vec::new();
        for (name, content) in [
            ("pairs.bin", pairs),
            ("versus.json", serde_json::to_vec_pretty(versus)?),
            ("summary.json", serde_json::to_vec(&compared.summary)?),
        ] {
            let name = format!("comparisons/{}/{name}", slug(label));
            self.write(&name, &content)?;
            files.push(name);
        }
        Ok(files)
    }
}
