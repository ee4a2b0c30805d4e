//! The report of a suite: the contents of `suite.json`, and its text for people.

mod absent;
mod screen;
mod texts;

pub(crate) use absent::{AbsentRow, add as add_absent};
use plimsoll_metrics::{Environment, Judgement};
use plimsoll_report::screen::{Rest, Screen};
use plimsoll_report::table::Table;
use plimsoll_report::{Style, environment};
use plimsoll_run_files::read_stored;
use serde::{Deserialize, Serialize};
pub(crate) use texts::published;

use crate::bound::BoundResult;
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::finding::{self, Finding, Tone};
use crate::knee_result::KneeResult;
use crate::options::SuiteOptions;
use crate::result::{MeasurementResult, Unusable};
use crate::suite::GatewaysResult;

/// Version of the layout of `suite.json`.
pub const SCHEMA: &str = "plimsoll.suite/2";

/// A table under its title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Title.
    pub title: String,
    /// The table; it may be empty.
    pub table: Table,
    /// Notes below the table.
    pub notes: Vec<String>,
    /// Whether the section contains results from before the load: a screen shows results of the
    /// load first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_load: bool,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>, table: Table) -> Self {
        let title = title.into();
        Self { notes: texts::notes(&title), title, table, before_load: false }
    }

    pub(crate) fn before_load(self) -> Self {
        Self { before_load: true, ..self }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// The outcome of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuiteOutcome {
    /// Every bound that decides was kept.
    Pass,
    /// Everything was measured, and the suite has no bound that decides.
    Complete,
    /// One was broken.
    Fail,
    /// A measurement must not be used or is missing, or a bound could not be judged.
    Inconclusive,
    /// The user ended it early.
    Interrupted,
}

/// Limitations that the user accepts in a suite that passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Measurements with which Plimsoll did not keep up, and bounds that were not judged.
    pub invalid: bool,
    /// Parts of the suite that the target does not have.
    pub missing: bool,
}

/// The report of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the suite.
    pub suite: String,
    /// Its subject, in a line.
    pub title: String,
    /// The flags and variables that set the loads.
    #[serde(default)]
    pub settings: String,
    /// `load_test_...` metrics, as dashboards of other load tests know them; of `policy` alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub load_test: String,
    /// Wall-clock time of the start, `YYYYMMDDThhmmssZ`.
    pub started: String,
    /// The command line.
    pub command: String,
    /// Whether the measurements were short.
    pub quick: bool,
    /// Whether the binary is a debug build, whose figures must not be used.
    pub debug_build: bool,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The gateway under test, and where everything ran.
    pub setup: Vec<(String, String)>,
    /// The machine.
    pub environment: Environment,
    /// Every measurement.
    pub measurements: Vec<MeasurementResult>,
    /// Every comparison of targets by pairs of requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<ComparisonResult>,
    /// Every knee that was searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knees: Vec<KneeResult>,
    /// Figures of each gateway; of `gateways` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateways: Option<GatewaysResult>,
    /// The tables.
    pub sections: Vec<Section>,
    /// Sentences that follow from the figures.
    pub findings: Vec<Finding>,
    /// The judged bounds.
    pub bounds: Vec<BoundResult>,
    /// The number of instances for some rates.
    pub sizing: Option<Section>,
    /// Published figures of other gateways, on other hardware.
    pub references: Vec<Section>,
    /// Parts that were left out, and why.
    pub skipped: Vec<String>,
    /// Those of them that the user's gateway does not have, or only at a cost.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Whether the target refused a single request, or failed to answer it.
    #[serde(default)]
    pub refused: bool,
}

impl Report {
    /// The report of a suite that begins.
    pub(crate) fn begin(suite: &str, options: &SuiteOptions) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            suite: suite.to_owned(),
            title: texts::notes(&format!("suite {suite}")).concat(),
            started: options.started.clone(),
            command: options.command.clone(),
            settings: settings(suite),
            quick: options.short,
            debug_build: cfg!(debug_assertions),
            environment: options.environment.clone(),
            ..Self::default()
        }
    }

    /// Adds the findings that every suite has.
    pub(crate) fn conclude(mut self) -> Self {
        let compared = self.comparisons.iter().flat_map(ComparisonResult::findings);
        // Differences are the figures of gateways, and in their tables.
        let compared = compared.filter(|found| self.gateways.is_none() || found.tone != Tone::Note);
        let errors = finding::errors(&self.measurements);
        self.findings.extend(compared.chain(errors));
        self.doubt_on_a_busy_host();
        self
    }

    /// Reads a `suite.json`.
    ///
    /// # Errors
    /// [`SuiteError::Failed`] if it is damaged or has another layout.
    pub fn read_json(bytes: &[u8]) -> Result<Self, SuiteError> {
        read_stored(bytes, SCHEMA).map_err(|error| SuiteError::Failed(error.to_string()))
    }

    /// Where other processes used the host most of the time, differences and times from outside a
    /// measured load are in doubt, and no result is good.
    fn doubt_on_a_busy_host(&mut self) {
        let all = self.measurements.len();
        let busy = self.measurements.iter().filter_map(MeasurementResult::busy_in_any_pass).count();
        if busy * 2 <= all {
            return;
        }
        let why = Unusable::BusyHost(format!("during {busy} of {all} measurements"));
        for bound in self.bounds.iter_mut().filter(|bound| bound.in_doubt_if_busy) {
            bound.judgement = Judgement::Inconclusive(why.to_string());
        }
        self.findings.retain(|finding| finding.tone != Tone::Good);
    }

    /// Whether the report has no measurement.
    pub(crate) fn is_empty(&self) -> bool {
        self.gateways.as_ref().is_none_or(GatewaysResult::is_empty)
            && self.measurements.iter().all(|result| result.passes.is_empty())
            && self.comparisons.iter().all(|result| result.versus.is_none())
    }

    /// The usable measurements and the comparisons on a busy host, and the number of all.
    fn busy_host(&self) -> (usize, usize) {
        let busy = self.measurements.iter().filter(|result| result.busy_host().is_some()).count();
        let compared = self.comparisons.iter().filter(|result| result.busy_host.is_some()).count();
        (busy + compared, self.measurements.len() + self.comparisons.len())
    }

    /// Whether some of the measurements are half of all or more.
    fn are_half(&self, measurements: usize) -> bool {
        measurements > 0 && measurements * 2 >= self.measurements.len()
    }

    /// Whether our own gateway was measured.
    pub(crate) fn measures_reference(&self) -> bool {
        self.setup.iter().any(|(name, value)| name == UNDER_TEST && *value == reference())
    }

    /// The outcome. A bound is broken only by figures that may be used, so that a broken one counts
    /// whatever else could not be measured. A suite passes only if every bound that decides was
    /// judged, and most of it may be used; without such a bound, on a host that was mostly quiet.
    /// Answers that were not the expected ones are never accepted.
    pub fn outcome(&self, accepted: Accepted) -> SuiteOutcome {
        let deciding: Vec<_> = self.bounds.iter().filter(|bound| bound.decides).collect();
        let lacking = self.measurements.iter().filter_map(MeasurementResult::why_lacking);
        let (late, others): (Vec<_>, Vec<_>) =
            lacking.partition(|why| matches!(why, Unusable::Invalid(_)));
        let lacks_measurement =
            !others.is_empty() || (!accepted.invalid && self.are_half(late.len()));
        let lacks_comparison = self.comparisons.iter().any(|result| {
            result.why_unusable().is_some() && !(accepted.invalid && result.is_only_invalid())
        });
        let lacks_part = !accepted.missing && !self.missing.is_empty();
        let (busy, all) = self.busy_host();
        let was_busy = busy > 0 && busy * 2 >= all;
        let is_doubtful = deciding
            .iter()
            .any(|bound: &&BoundResult| matches!(bound.judgement, Judgement::Inconclusive(_)))
            || (deciding.is_empty() && was_busy);
        if self.interrupted {
            SuiteOutcome::Interrupted
        } else if deciding.iter().any(|bound| bound.judgement == Judgement::Fail)
            || self.measurements.iter().any(MeasurementResult::has_failed)
            || (self.is_empty() && lacks_part && self.refused)
        {
            SuiteOutcome::Fail
        } else if self.is_empty()
            || (lacks_measurement || lacks_comparison || lacks_part)
            || (is_doubtful && !accepted.invalid)
        {
            SuiteOutcome::Inconclusive
        } else if deciding.is_empty() {
            SuiteOutcome::Complete
        } else {
            SuiteOutcome::Pass
        }
    }

    /// The parts, measurements and bounds that could not be used, a line for each reason.
    pub fn doubts(&self) -> Vec<String> {
        let compared = self.comparisons.iter();
        let compared = compared.filter_map(|one| Some((&*one.label, one.why_unusable()?)));
        let whys: Vec<_> =
            self.measurements.iter().filter_map(MeasurementResult::why_lacking).collect();
        let whys: Vec<_> = whys.iter().map(ToString::to_string).collect();
        // The bounds on such a measurement would say the same again.
        let open = self.bounds.iter().filter(|bound| bound.decides).filter_map(|bound| {
            let Judgement::Inconclusive(why) = &bound.judgement else { return None };
            (!whys.contains(why)).then(|| (&*bound.what, why.clone()))
        });
        let nothing = self.measurements.is_empty() && self.comparisons.is_empty();
        let nothing = (nothing && self.is_empty()).then(|| "nothing could be measured".to_owned());
        let missing = self.missing.iter().map(|what| format!("{LEFT_OUT}{what}"));
        let busy = finding::busy_host(&self.measurements, &self.comparisons);
        let unusable = finding::unusable(&self.measurements);
        let others = finding::by_reason(compared.chain(open));
        nothing.into_iter().chain(missing).chain(busy).chain(unusable).chain(others).collect()
    }

    /// The result; `rest` is where a reader finds all of it.
    pub fn screen(&self, rest: Rest) -> Screen {
        screen::from_report(self, rest)
    }

    /// The whole result as text, wrapped at `width` columns.
    pub fn text(&self, width: usize) -> String {
        self.screen(Rest::Flag).report(Style::plain(width))
    }
}

/// In their order, without repeats.
pub(crate) fn distinct<T: ToString>(values: impl Iterator<Item = T>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for value in values.map(|value| value.to_string()) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The command and the settings of the loads.
fn settings(suite: &str) -> String {
    if suite == "gateways" {
        return "settings: the loads of the file".to_owned();
    }
    let variables = match suite {
        "baseline" => ", AZ_LOAD_DURATION_SECS, AZ_LOAD_CONCURRENCY, AZ_LOAD_PORT",
        "policy" => ", AXONFLOW_ENDPOINT, AXONFLOW_CLIENT_ID",
        _ => "",
    };
    format!("settings: --duration, --concurrency, --passes, --warmup, --threads, --port{variables}")
}

pub(crate) const UNDER_TEST: &str = "under test";

/// Before a part of the suite that the target does not have.
const LEFT_OUT: &str = "left out: ";

/// Description of the subject without a target from the user.
pub(crate) fn reference() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("plimsoll gateway {version}, one worker")
}

impl Report {
    /// The outcome in a sentence, its word first, with the counts behind it.
    pub fn conclusion(&self) -> String {
        let outcome = self.outcome(Accepted::default());
        let word = match outcome {
            SuiteOutcome::Pass => "PASS",
            SuiteOutcome::Complete => "COMPLETE",
            SuiteOutcome::Fail => "FAIL",
            SuiteOutcome::Inconclusive => "INCONCLUSIVE",
            SuiteOutcome::Interrupted => "INTERRUPTED",
        };
        let [target, measured] = counts(self, outcome);
        let target = if target.is_empty() { String::new() } else { format!(": {target}") };
        let measured = match &*measured {
            "" if self.is_empty() => "nothing measured",
            "" => "valid",
            measured => measured,
        };
        format!("{word}{target} (measurement: {measured})")
    }
}

/// Counts of the target's results, with bounds by judgement; and the unused measurements.
fn counts(report: &Report, outcome: SuiteOutcome) -> [String; 2] {
    let deciding: Vec<_> = report.bounds.iter().filter(|bound| bound.decides).collect();
    let kept = deciding.iter().filter(|bound| bound.judgement == Judgement::Pass).count();
    let broken = deciding.iter().filter(|bound| bound.judgement == Judgement::Fail).count();
    let open = deciding.len() - kept - broken;
    let (results, compared) = (&report.measurements, &report.comparisons);
    let past = results.iter().filter(|result| result.is_past_the_generator()).count();
    let unusable = results.iter().filter(|result| result.why_lacking().is_some()).count();
    let (busy, measured) = report.busy_host();
    let not_compared = compared.iter().filter(|result| result.why_unusable().is_some()).count();
    let names = deciding.iter().filter(|bound| bound.judgement == Judgement::Fail);
    let names: Vec<_> = names.map(|bound| &*bound.what).collect();
    let (bounds, all) = (deciding.len(), results.len());
    let is_empty = results.is_empty() && report.is_empty();
    let failed = results.iter().filter(|result| result.has_failed()).count();
    let errors = finding::errors(results).map(|found| found.text);
    let left_out = usize::from(report.is_empty()).min(report.missing.len());
    let others = report.missing.len() - left_out;
    let of_target = [
        (failed, errors.unwrap_or_default()),
        (left_out, report.missing.first().cloned().unwrap_or_default()),
        (broken, format!("{broken} of {bounds} bounds broken ({})", names.join(", "))),
        (open, format!("{open} of {bounds} bounds open")),
        (kept, format!("{kept} of {bounds} bounds kept")),
        (others, format!("{others} part{} missing", if others == 1 { "" } else { "s" })),
    ];
    let of_measurement = [
        (usize::from(is_empty && compared.is_empty()), "nothing measured".to_owned()),
        (unusable, format!("{unusable} of {all} measurements unusable")),
        (busy, format!("{busy} of {measured} measurements on a busy host")),
        (past, format!("{past} of {all} loads beyond this host")),
        (not_compared, format!("{not_compared} of {} comparisons unusable", compared.len())),
    ];
    let is_final = outcome != SuiteOutcome::Interrupted;
    [&of_target[..], &of_measurement[..]].map(|rows| {
        let rows = rows.iter().filter(|(count, _)| *count > 0 && is_final);
        rows.map(|(_, row)| row.as_str()).collect::<Vec<_>>().join(", ")
    })
}

impl Report {
    /// The subject of the measurements and their machine: name and value.
    pub fn environment_lines(&self) -> Vec<(String, String)> {
        let machine = environment(&self.environment).into_iter();
        let known = machine.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let started = ("started".to_owned(), self.started.clone());
        self.setup.iter().cloned().chain(known).chain([started]).collect()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_report::format::time;
    use plimsoll_versus::Versus;

    use super::*;
    use crate::bound::Requirement;
    use crate::result::Figures;

    fn report(results: Vec<MeasurementResult>, bounds: Vec<BoundResult>) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            suite: "x".to_owned(),
            title: "x".to_owned(),
            started: "S".to_owned(),
            command: "plimsoll suite x".to_owned(),
            settings: String::new(),
            load_test: String::new(),
            quick: false,
            debug_build: false,
            interrupted: false,
            setup: Vec::new(),
            environment: Environment::default(),
            measurements: results,
            comparisons: Vec::new(),
            knees: Vec::new(),
            gateways: None,
            sections: Vec::new(),
            findings: Vec::new(),
            bounds,
            sizing: None,
            references: Vec::new(),
            skipped: Vec::new(),
            missing: Vec::new(),
            refused: false,
        }
    }

    fn result(invalid: bool) -> MeasurementResult {
        let invalid = invalid.then(|| "late".to_owned());
        MeasurementResult {
            passes: vec![Figures { requests: 10, invalid, ..Figures::default() }],
            ..MeasurementResult::default()
        }
    }

    /// Every answer is a refusal.
    fn refused() -> MeasurementResult {
        let mut result = result(false);
        result.passes[0].errors = 10;
        result
    }

    #[test]
    fn a_failed_suite_counts_its_failures() {
        let mut limited = MeasurementResult { label: "b".to_owned(), ..result(false) };
        let pass = &mut limited.passes[0];
        (pass.requests, pass.errors) = (1_000, 600);
        pass.errors_by_kind.insert("429".to_owned(), 600);
        let report = report(vec![refused(), limited], vec![]);
        let expected =
            "FAIL: 610 of 1,010 requests had no expected response, most in: b (429: 600)";
        assert!(report.conclusion().starts_with(expected), "{}", report.conclusion());
    }

    /// Passes that others disturbed are most often late as well, and then their figures cannot be
    /// used: the host was busy all the same.
    #[test]
    fn differences_and_broken_times_are_in_doubt_on_a_host_that_was_busy_most_of_the_time() {
        let disturbed = |invalid, busy: bool| {
            let mut result = result(invalid);
            result.passes[0].busy_host = busy.then(|| "others".to_owned());
            result
        };
        let below = Requirement::below(1.0, time);
        let bounds = || {
            [0.5, 2.0]
                .map(|value| {
                    [
                        BoundResult::interval("difference", Ok([value; 3]), below),
                        BoundResult::time("time", Some(value), below),
                        BoundResult::count("count", Some(value), below),
                    ]
                })
                .concat()
        };
        for (busy, kept, broken) in [
            (
                [true, true, false],
                ["inconclusive", "PASS", "PASS"],
                ["inconclusive", "inconclusive", "FAIL"],
            ),
            ([true, false, false], ["PASS"; 3], ["FAIL"; 3]),
        ] {
            let results = busy.map(|busy| disturbed(busy, busy)).to_vec();
            let report = report(results, bounds()).conclude();
            let statuses: Vec<_> = report.bounds.iter().map(BoundResult::status).collect();
            assert_eq!(statuses, [kept, broken].concat(), "{busy:?}");
        }
    }

    /// On a busy host the bounds decide where they can; a suite without bounds is incomplete.
    #[test]
    fn a_suite_passes_on_a_busy_host_if_its_bounds_do() {
        let mut busy = result(false);
        busy.passes[0].busy_host = Some("others".to_owned());
        let outcome = |bounds| report(vec![busy.clone()], bounds).outcome(Accepted::default());
        let bound = |value| BoundResult::time("b", value, Requirement::below(1.0, time));
        assert_eq!(outcome(vec![bound(Some(0.5))]), SuiteOutcome::Pass);
        assert_eq!(outcome(vec![bound(Some(0.5)).into_goal()]), SuiteOutcome::Inconclusive);
        assert_eq!(outcome(vec![]), SuiteOutcome::Inconclusive);
        let passed = report(vec![busy.clone()], vec![bound(Some(0.5))]).conclusion();
        assert_eq!(
            passed,
            "PASS: 1 of 1 bounds kept (measurement: 1 of 1 measurements on a busy host)"
        );
    }

    #[test]
    fn a_suite_passes_only_if_everything_could_be_used_and_judged() {
        use SuiteOutcome::{Complete, Fail, Inconclusive, Pass};
        let requirement = Requirement::below(1.0, time);
        let bound = |value| BoundResult::time("b", value, requirement);
        for (results, bounds, expected, allowed) in [
            (vec![result(false)], vec![], Complete, Complete),
            (vec![], vec![], Inconclusive, Inconclusive),
            (vec![result(false)], vec![bound(Some(0.5))], Pass, Pass),
            (vec![result(false)], vec![bound(Some(2.0))], Fail, Fail),
            (vec![result(false)], vec![bound(Some(2.0)).into_goal()], Complete, Complete),
            (vec![result(false)], vec![bound(None)], Inconclusive, Pass),
            (vec![result(true)], vec![bound(Some(0.5))], Inconclusive, Pass),
            // Its figures may be used: what else was measured does not unbreak it.
            (vec![result(true)], vec![bound(Some(2.0))], Fail, Fail),
            (vec![result(false), refused()], vec![bound(Some(0.5))], Fail, Fail),
            (vec![MeasurementResult::default()], vec![], Inconclusive, Inconclusive),
        ] {
            let report = report(results, bounds);
            assert_eq!(report.outcome(Accepted::default()), expected, "{report:?}");
            let invalid = Accepted { invalid: true, missing: false };
            assert_eq!(report.outcome(invalid), allowed, "{report:?}");
        }
        let ended = Report { interrupted: true, ..report(vec![result(true)], vec![]) };
        assert_eq!(ended.outcome(Accepted::default()), SuiteOutcome::Interrupted);
        let missing = vec!["GET /health: too costly".to_owned()];
        let partial = Report { missing, ..report(vec![result(false)], vec![bound(Some(0.5))]) };
        assert_eq!(partial.outcome(Accepted::default()), Inconclusive);
        assert_eq!(partial.outcome(Accepted { invalid: false, missing: true }), Pass);
        assert!(partial.text(100).contains("left out: GET /health: too costly"));
        // A route that is too costly to load is no failure, and nothing is valid without a load.
        for (refused, word) in [(false, "INCONCLUSIVE"), (true, "FAIL")] {
            let missing = partial.missing.clone();
            let nothing = Report { missing, refused, ..report(Vec::new(), Vec::new()) };
            let expected = "GET /health: too costly (measurement: nothing measured)";
            assert_eq!(nothing.conclusion(), format!("{word}: {expected}"));
        }
        let comparisons = vec![ComparisonResult::default()];
        let compared = Report { comparisons, ..report(Vec::new(), Vec::new()) };
        assert!(!compared.conclusion().contains("nothing measured"), "{}", compared.conclusion());
    }

    /// Other programs make differences wider, and a reader must know.
    #[test]
    fn comparisons_on_a_busy_host_are_named_in_the_last_line() {
        let compared = |busy: bool| ComparisonResult {
            versus: Some(Versus::default()),
            busy_host: busy.then(|| "the CPUs of this host were not free".to_owned()),
            ..ComparisonResult::default()
        };
        for (busy, expected) in [
            ([true, true, false], "INCONCLUSIVE (measurement: 2 of 3 measurements on a busy host)"),
            ([true, false, false], "COMPLETE (measurement: 1 of 3 measurements on a busy host)"),
            ([false; 3], "COMPLETE (measurement: valid)"),
        ] {
            let comparisons = busy.map(compared).to_vec();
            let report = Report { comparisons, ..report(Vec::new(), Vec::new()) };
            assert_eq!(report.conclusion(), expected);
            let is_said = report.text(200).contains("the CPUs of this host were not free");
            assert_eq!(is_said, busy[0], "{}", report.text(200));
        }
    }

    /// The row has its mark; the verdict follows the bounds, or most of the measurements.
    #[test]
    fn one_measurement_of_many_that_was_disturbed_leaves_the_verdict() {
        let bound = BoundResult::time("b", Some(0.5), Requirement::below(1.0, time));
        for (bounds, expected) in [
            (vec![bound.clone()], SuiteOutcome::Pass),
            (vec![bound.into_goal()], SuiteOutcome::Complete),
            (vec![], SuiteOutcome::Complete),
        ] {
            for (busy, counted) in [
                (false, "1 of 23 measurements unusable"),
                (true, "1 of 23 measurements on a busy host"),
            ] {
                let mut results = vec![result(false); 22];
                let mut one = result(!busy);
                one.passes[0].busy_host = busy.then(|| "others".to_owned());
                results.push(one);
                let report = report(results, bounds.clone());
                assert_eq!(report.outcome(Accepted::default()), expected, "{busy}");
                assert!(report.conclusion().contains(counted), "{}", report.conclusion());
            }
        }
    }

    #[test]
    fn a_load_that_cannot_be_sent_ends_a_search_and_a_verdict_says_so() {
        let step = |explores, busy: bool| {
            let mut step = MeasurementResult { explores, ..result(true) };
            step.passes[0].busy_host = busy.then(|| "others".to_owned());
            report(vec![result(false), step], vec![])
        };
        let searched = step(true, false);
        assert_eq!(searched.outcome(Accepted::default()), SuiteOutcome::Complete);
        assert_eq!(searched.conclusion(), "COMPLETE (measurement: 1 of 2 loads beyond this host)");
        // Any other measurement is missing, and a busy host leaves its result unknown.
        for other in [step(false, false), step(true, true)] {
            assert_eq!(other.outcome(Accepted::default()), SuiteOutcome::Inconclusive);
        }
    }

    #[test]
    fn what_stands_in_the_way_of_a_pass_is_said_first() {
        let bound = BoundResult::time("p99", None, Requirement::below(1.0, time));
        let mut late = result(true);
        late.label = "live".to_owned();
        let report = report(vec![late], vec![bound]);
        let text = report.text(100);
        let at = |line: &str| text.lines().position(|found| found == line);
        let verdict =
            "INCONCLUSIVE: 1 of 1 bounds open (measurement: 1 of 1 measurements unusable)";
        assert_eq!(at(verdict), Some(1), "{text}");
        let whys =
            ["! live: the measurement is invalid: late", "! p99: too few samples, or not measured"];
        let [measurement, bound] = whys.map(|line| at(line).unwrap_or(usize::MAX));
        assert!(measurement < bound && bound < text.lines().count(), "{text}");
    }

    #[test]
    fn a_debug_build_is_said_first_and_a_report_reads_back() {
        let report = Report { debug_build: true, ..report(vec![result(false)], vec![]) };
        assert!(report.text(100).lines().next().unwrap().contains("DEBUG BUILD"));
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }

    #[test]
    fn only_our_own_gateway_is_slow_in_a_release_build() {
        let of = |build: &str, under_test: String| Report {
            environment: Environment {
                versions: [("build".to_owned(), build.to_owned())].into(),
                ..Environment::default()
            },
            setup: vec![(UNDER_TEST.to_owned(), under_test)],
            ..report(vec![result(false)], vec![])
        };
        let warns = |report: Report| report.text(100).contains("build with --profile dist");
        assert!(warns(of("release", reference())));
        assert!(!warns(of("dist", reference())));
        assert!(!warns(of("release", "http://127.0.0.1:8080".to_owned())));
    }
}
