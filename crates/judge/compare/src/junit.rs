//! A comparison as `JUnit` XML, with a test case per gate.

use plimsoll_metrics::{Judgement, Verdict};
use quick_junit::NonSuccessKind::{self, Error, Failure};
use quick_junit::{Report, TestCase, TestCaseStatus, TestSuite};

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
            let kind = if self.verdict == Verdict::Fail { Failure } else { Error };
            not_passed(kind, "not comparable", &self.obstacles.join("; "))
        };
        let mut suite = TestSuite::new("plimsoll compare");
        suite.add_test_case(case("the runs may be compared", comparable));
        for gate in &self.gates {
            let status = match &gate.judged.judgement {
                Judgement::Pass => TestCaseStatus::success(),
                Judgement::Fail => not_passed(Failure, "worse", &message(gate)),
                Judgement::Inconclusive(_) if inconclusive_passes => {
                    let mut skipped = TestCaseStatus::skipped();
                    skipped.set_message(clean(&message(gate)));
                    skipped
                }
                Judgement::Inconclusive(_) => not_passed(Error, "inconclusive", &message(gate)),
            };
            suite.add_test_case(case(&gate.name, status));
        }
        let mut report = Report::new("plimsoll compare");
        report.add_test_suite(suite);
        report.to_string().map_err(|error| CompareError::Write(error.to_string()))
    }
}

fn not_passed(kind: NonSuccessKind, word: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word).set_message(clean(message));
    status
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
