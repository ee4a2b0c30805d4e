//! Helpers: files, and findings as short lines.

use std::path::{Path, PathBuf};

use plimsoll_audit::{Level, Report, audit};

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub(crate) fn audit_file(path: &Path) -> Report {
    let bytes = std::fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    audit(&name, &bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn audit_text(name: &str, text: &str) -> Report {
    audit(name, text.as_bytes()).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// Level, rule and words of the only finding whose rule is this one.
pub(crate) fn of<'report>(report: &'report Report, rule: &str) -> Vec<(Level, &'report str)> {
    let found = report.findings.iter().filter(|finding| finding.rule == rule);
    found.map(|finding| (finding.level, finding.says.as_str())).collect()
}
