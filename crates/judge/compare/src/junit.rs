//! A comparison as `JUnit` XML, with a test case per gate.

use plimsoll_metrics::Judgement;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::comparison::Comparison;
use crate::error::CompareError;
use crate::gate_words;
use crate::gates::GateResult;
use crate::text::explanation;

impl Comparison {
    /// Formats the comparison as `JUnit` XML. A failed gate is a failure, an inconclusive one an
    /// error, or skipped with `inconclusive_passes`. A further test case reports whether the runs
    /// are comparable.
    ///
    /// # Errors
    /// [`CompareError::Write`], which a comparison built by this crate does not cause.
    pub fn junit(&self, inconclusive_passes: bool) -> Result<String, CompareError> {
        let comparable = if self.obstacles.is_empty() {
            TestCaseStatus::success()
        } else {
            let mut error = TestCaseStatus::non_success(NonSuccessKind::Error);
            error.set_type("not comparable").set_message(clean(&self.obstacles.join("; ")));
            error
        };
        let mut suite = TestSuite::new("plimsoll compare");
        suite.add_test_case(case("the runs may be compared", comparable));
        for gate in &self.gates {
            let status = match &gate.judged.judgement {
                Judgement::Pass => TestCaseStatus::success(),
                Judgement::Fail => {
                    let mut failure = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    failure.set_type("worse").set_message(clean(&message(gate)));
                    failure
                }
                Judgement::Inconclusive(_) if inconclusive_passes => {
                    let mut skipped = TestCaseStatus::skipped();
                    skipped.set_message(clean(&message(gate)));
                    skipped
                }
                Judgement::Inconclusive(_) => {
                    let mut error = TestCaseStatus::non_success(NonSuccessKind::Error);
                    error.set_type("inconclusive").set_message(clean(&message(gate)));
                    error
                }
            };
            suite.add_test_case(case(&gate.name, status));
        }
        let mut report = Report::new("plimsoll compare");
        report.add_test_suite(suite);
        report.to_string().map_err(|error| CompareError::Write(error.to_string()))
    }
}

fn case(name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(clean(name), status);
    case.set_classname("plimsoll.compare");
    case
}

fn message(gate: &GateResult) -> String {
    let why = explanation(gate).unwrap_or_default();
    format!("{} ({})", why, gate_words::change_of(gate))
}

/// Removes control characters, which XML does not allow.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
