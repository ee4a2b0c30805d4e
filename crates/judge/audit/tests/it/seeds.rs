//! The contradictions that requirements.md lists: as tables of our own with the same figures, and
//! in the documents themselves where they are at hand.

use plimsoll_audit::{Level, Report, audit};

use crate::support::{audit_file, fixtures, of};

use Level::{CannotTell, Contradicted};

fn fixture(name: &str) -> Report {
    audit_file(&fixtures().join("seeds").join(name))
}

/// `(rule, level, part of what it says)`
fn expect(report: &Report, wanted: &[(&str, Level, &str)]) {
    for (rule, level, part) in wanted {
        let found = of(report, rule);
        let known = found.iter().any(|(is, says)| is == level && says.contains(part));
        assert!(known, "{rule} {level:?} {part}: {}", report.text(true));
    }
}

#[test]
fn a_stack_below_its_upstream_and_a_client_that_is_the_limit_are_found() {
    let report = fixture("layers.md");
    expect(
        &report,
        &[
            ("upstream", Contradicted, "848 req/s"),
            ("overhead words", Contradicted, "negligible"),
            ("little", CannotTell, "599 req/s"),
            ("samples", CannotTell, "61.23ms"),
        ],
    );
    // By hand: 599/s x 18.43 ms = 11.04 in flight of 30 clients, 63 % idle.
    let little = report.findings.iter().find(|finding| finding.rule == "little").unwrap();
    assert!(
        little.because.contains("= 11.04 requests") && little.because.contains("63 %"),
        "{little:?}"
    );
    assert_eq!(report.findings.len(), 4, "{}", report.text(true));
}

#[test]
fn bands_stages_and_few_samples_are_found() {
    let report = fixture("policy.md");
    expect(
        &report,
        &[
            ("bands", Contradicted, "p50 6.43 ms"),
            ("bands", Contradicted, "p99 76.43 ms"),
            ("virtual users", Contradicted, "10 RPS"),
            ("samples", CannotTell, "p99 24.80 ms"),
        ],
    );
    let samples = report.findings.iter().find(|finding| finding.rule == "samples").unwrap();
    assert!(samples.because.contains("6 lie beyond p99"), "{samples:?}");
    assert!(samples.fix.contains("1,000 samples"), "{samples:?}");
    assert_eq!(report.findings.len(), 4, "{}", report.text(true));
}

#[test]
fn words_against_figures_are_found_and_consistent_figures_are_not_accused() {
    let report = fixture("quick.md");
    expect(
        &report,
        &[
            ("latency words", Contradicted, "sub-millisecond"),
            ("scaling words", Contradicted, "scales efficiently"),
        ],
    );
    // 20,550 / 21,989 = 0.9346; 9.90 / 4.59 = 2.157.
    let scaling = report.findings.iter().find(|finding| finding.rule == "scaling words").unwrap();
    assert!(scaling.because.contains("6.544 % less"), "{scaling:?}");
    assert!(scaling.because.contains("2.157 times the latency"), "{scaling:?}");
    assert_eq!(report.findings.len(), 2, "{}", report.text(true));
}

/// The documents are not part of the repository.
#[test]
fn the_documents_themselves_are_read_where_they_are_at_hand() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/seeds");
    let Ok(files) = std::fs::read_dir(folder) else { return };
    let mut rules: Vec<(String, &str)> = Vec::new();
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Ok(report) = audit(&name, &std::fs::read(&path).unwrap()) {
            let found = report.findings.iter().map(|finding| (name[..3].to_owned(), finding.rule));
            rules.extend(found);
        }
    }
    for (seed, rule) in [
        ("001", "upstream"),
        ("001", "little"),
        ("002", "bands"),
        ("002", "virtual users"),
        ("002", "samples"),
        ("004", "latency words"),
        ("004", "scaling words"),
    ] {
        assert!(
            rules.iter().any(|(of, found)| of == seed && *found == rule),
            "{seed} {rule}: {rules:?}"
        );
    }
}
