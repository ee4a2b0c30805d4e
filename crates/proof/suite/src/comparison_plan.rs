//! A comparison to be made: the same requests on several targets, close together.

use plimsoll_engine::WatchedProcess;
use plimsoll_plan::Plan;

use crate::error::SuiteError;
use crate::measurement::Measurement;
use crate::target::SuiteTarget;

/// A comparison to be made.
#[derive(Clone, Debug)]
pub(crate) struct ComparisonPlan {
    /// Its name in the report, unique in its suite.
    pub(crate) label: String,
    /// Whether the targets are variants of the first one: then each is compared with it alone.
    pub(crate) variants: bool,
    /// The requests and their load.
    pub(crate) request: Measurement,
    /// Name and target; the first is what the others are compared with.
    pub(crate) targets: Vec<(String, SuiteTarget)>,
}

impl ComparisonPlan {
    /// Its plan. In a `short` suite no time is spent on whether targets disturb each other.
    ///
    /// # Errors
    /// If an address or a header cannot be used.
    pub(crate) fn plan(&self, short: bool) -> Result<Plan, SuiteError> {
        let settings: &[&str] = if short { &["versus.alone=0s"] } else { &[] };
        self.request.comparison_plan(&self.targets, settings)
    }

    /// The processes of the targets that are known, each by the name of its target.
    pub(crate) fn watched(&self) -> Vec<WatchedProcess> {
        self.targets
            .iter()
            .filter_map(|(name, target)| {
                Some(WatchedProcess { name: name.clone(), pid: target.gateway_pid? })
            })
            .collect()
    }
}

/// A label as the name of a target, or as part of a file name.
pub(crate) fn slug(label: &str) -> String {
    let text: String = label
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Nanos;
    use plimsoll_plan::TargetRole;

    use super::*;
    use crate::fixtures::plan_path;
    use crate::measurement::Length;

    #[test]
    fn labels_make_names() {
        for (label, name) in [
            ("GET /health/live, 64 clients", "get-health-live-64-clients"),
            ("--", ""),
            ("ä+PII", "pii"),
        ] {
            assert_eq!(slug(label), name);
        }
    }

    fn target(port: u16, more: SuiteTarget) -> SuiteTarget {
        let (base, model) = (format!("http://127.0.0.1:{port}"), "m".to_owned());
        SuiteTarget { base, model, ..more }
    }

    #[test]
    fn every_target_has_its_own_address_key_and_headers_and_none_is_loaded_twice() {
        let user = SuiteTarget { external: true, ..SuiteTarget::default() };
        let keyed = SuiteTarget {
            key: Some("of $a".to_owned()),
            headers: vec!["x-team: t".to_owned()],
            gateway_pid: Some(7),
            ..user.clone()
        };
        let targets =
            vec![("direct".to_owned(), target(1, user)), ("a".to_owned(), target(2, keyed))];
        let length = Length::new(Nanos::from_millis(300), Nanos::from_secs(9));
        let chat = Measurement::chat("c", &targets[0].1, false, (8, 8));
        let builtin = Measurement::builtin("c", &targets[0].1, "perf-550-nonstream", &[]);
        for request in [chat, builtin] {
            let request = request.rate(100.0, length);
            let (label, targets) = ("c".to_owned(), targets.clone());
            let comparison = ComparisonPlan { label, variants: false, request, targets };
            let plan = comparison.plan(true).unwrap();
            let names: Vec<_> =
                plan.targets.iter().map(|target| (&*target.name, target.role)).collect();
            let expected = [("direct", TargetRole::Reference), ("a", TargetRole::Candidate)];
            assert_eq!(names, expected);
            let keys: Vec<_> = plan.targets.iter().map(|target| target.key.is_some()).collect();
            assert_eq!(keys, [false, true], "a key goes to nobody else");
            let headers: Vec<_> = plan.targets.iter().map(|target| target.headers.len()).collect();
            assert_eq!(headers[1], headers[0] + 1, "{headers:?}");
            assert_eq!(plan.targets[1].url.to_string(), "http://127.0.0.1:2");
            assert_eq!(plan.versus.unwrap().alone, Nanos::ZERO);
            let watched = comparison.watched();
            assert_eq!((watched.len(), &*watched[0].name, watched[0].pid), (1, "a", 7));
        }
    }

    #[test]
    fn a_plain_get_goes_to_the_path_of_each_address() {
        let of = |port, path: &str| target(port, SuiteTarget::default()).below(path);
        let targets =
            vec![("direct".to_owned(), of(1, "/health")), ("a".to_owned(), of(2, "/smoke"))];
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(9));
        let request = Measurement::get_base("g", &targets[0].1).rate(100.0, length);
        let label = "g".to_owned();
        let comparison = ComparisonPlan { label, variants: false, request, targets };
        let plan = comparison.plan(false).unwrap();
        let urls: Vec<_> = plan.targets.iter().map(|target| target.url.to_string()).collect();
        assert!(urls[0].ends_with("/health") && urls[1].ends_with("/smoke"), "{urls:?}");
        assert_eq!(plan_path(&plan).as_deref(), Some(""));
    }
}
