//! A screen for CI: as `JUnit` XML, and as annotations of GitHub Actions.

use quick_junit::NonSuccessKind::{Error, Failure};
use quick_junit::{Report, SerializeError, TestCase, TestCaseStatus, TestSuite, XmlString};

use super::{Item, Part, Screen, Tone};

const NAME: &str = "plimsoll";

impl Screen {
    /// `JUnit` XML with a test case for each judgement, finding and the verdict: broken is a
    /// failure, undecided an error, and a warning the output of a test case that passes.
    ///
    /// # Errors
    /// None that a screen causes.
    pub fn junit(&self) -> Result<String, SerializeError> {
        junit(NAME, self.judgements())
    }

    /// Commands that make GitHub Actions annotate a job with all that is broken or uncertain.
    pub fn annotations(&self) -> String {
        let bad = self.judgements().filter(|(_, item)| item.tone() != Tone::Good);
        let lines = bad.map(|(name, item)| {
            let level = if item.tone() == Tone::Bad { "error" } else { "warning" };
            let name = name.replace('%', "%25").replace(':', "%3A").replace(',', "%2C");
            format!("::{level} title={NAME}: {name}::{}", message(item).replace('%', "%25"))
        });
        lines.flat_map(|line| [line, "\n".to_owned()]).collect()
    }

    /// Each sentence that judges, with its name, which is the same in every run.
    fn judgements(&self) -> impl Iterator<Item = (String, &Item)> {
        let items = self.parts().filter_map(|part| match part {
            Part::Judged { items, .. } => Some(items),
            Part::Title(_) | Part::Table { .. } => None,
        });
        let named = items.flatten().chain(&self.stands_out).map(|item| {
            let name = item.text().split(": ").next().unwrap_or_default();
            let name = if item.word().starts_with("PL") { item.word() } else { name };
            (name.trim().to_owned(), item)
        });
        named.chain(self.verdict.iter().map(|last| ("verdict".to_owned(), last)))
    }
}

/// The word of an item that is neither right nor wrong.
pub const SKIPPED: &str = "SKIPPED";

/// `JUnit` XML with a test case for each of these items, by their names.
///
/// # Errors
/// None that an item causes.
pub fn junit<'i>(
    suite_name: &str,
    items: impl Iterator<Item = (String, &'i Item)>,
) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(suite_name);
    suite
        .add_test_cases(items.map(|(name, item)| case(&name, &suite_name.replace(' ', "."), item)));
    let mut report = Report::new(suite_name);
    report.add_test_suite(suite);
    report.to_string()
}

fn case(name: &str, class: &str, item: &Item) -> TestCase {
    let is_open = item.word() == "INCONCLUSIVE" || name == "verdict";
    let kind = match item.tone() {
        Tone::Bad => Some(Failure),
        Tone::Unsure if is_open => Some(Error),
        Tone::Good | Tone::Unsure => None,
    };
    let other =
        if item.word() == SKIPPED { TestCaseStatus::skipped } else { TestCaseStatus::success };
    let status = kind.map_or_else(other, |kind| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_type(item.word()).set_message(message(item));
        status
    });
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    if kind.is_none() {
        case.set_system_out(XmlString::new(message(item)));
    }
    case
}

fn message(item: &Item) -> String {
    let text = item.text().trim_start_matches(':').trim();
    let fix = item.advice().map(|fix| format!("; {fix}"));
    format!("{text}{}", fix.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Rest;

    fn screen() -> Screen {
        let mut screen = Screen::new(Rest::Flag);
        let pass = Item::judged(Tone::Good, "PASS", "error_rate <1%: measured 0%");
        let fail = Item::judged(Tone::Bad, "FAIL", "ttft p(50)<1ms: measured 4ms & <more>");
        let open = Item::judged(Tone::Unsure, "INCONCLUSIVE", "tpot p(99)<1ms: too few");
        screen.judged("", "thresholds", vec![pass, fail, open], 1);
        screen.stands_out([Item::judged(Tone::Unsure, "PL210", "p50 changed.").fix("look")]);
        screen.verdict(Tone::Bad, "FAIL: ttft p(50)<1ms (measurement: valid)");
        screen
    }

    #[test]
    fn every_judgement_is_a_test_case() {
        let xml = screen().junit().unwrap();
        assert!(xml.contains(r#"tests="5" skipped="0" errors="1" failures="2""#), "{xml}");
        for (name, tag) in [
            ("error_rate &lt;1%", "<system-out>error_rate &lt;1%: measured 0%"),
            (
                "ttft p(50)&lt;1ms",
                "<failure message=\"ttft p(50)&lt;1ms: measured 4ms &amp; &lt;more",
            ),
            ("tpot p(99)&lt;1ms", "<error message=\"tpot p(99)&lt;1ms: too few\""),
            ("PL210", "<system-out>p50 changed.; fix: look"),
            ("verdict", "<failure message=\"ttft p(50)&lt;1ms (measurement: valid)\""),
        ] {
            let (_, after) = xml.split_once(&format!("<testcase name=\"{name}\"")).unwrap();
            let (case, _) = after.split_once("</testcase>").unwrap();
            assert!(case.contains(tag), "{name}: {case}");
        }
    }

    #[test]
    fn annotations_name_what_is_broken_or_uncertain() {
        let text = screen().annotations();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[2], "::warning title=plimsoll: PL210::p50 changed.; fix: look");
        assert!(lines[3].starts_with("::error title=plimsoll: verdict::ttft p(50)<1ms"));
    }
}
