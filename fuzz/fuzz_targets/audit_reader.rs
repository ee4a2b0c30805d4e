//! Any bytes as a published table: no panic, a message or a report, and findings with a line and a
//! text.
//!
//! Input: a byte for the format, then the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_audit::audit;

fuzz_target!(|input: &[u8]| {
    let [kind, file @ ..] = input else { return };
    let name = ["a.md", "a.csv", "a.tsv"][usize::from(*kind) % 3];
    match audit(name, file, &[]) {
        Ok(report) => {
            assert!(report.text().ends_with('\n') && !report.tables.is_empty());
            assert!(report.findings.iter().all(|found| found.line > 0 && !found.text.is_empty()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
