//! Any bytes as a published page: no panic, a message or a text, findings that say something, and
//! headings that a user explains change nothing in files that do not have them.
//!
//! Input: a byte for the format, then the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_audit::{Mapping, Vocabulary, audit, audit_with};

const NAMES: [&str; 6] = ["a.md", "a.html", "a.csv", "a.txt", "a.json", "a"];

fuzz_target!(|input: &[u8]| {
    let [kind, file @ ..] = input else { return };
    let name = NAMES[usize::from(*kind) % NAMES.len()];
    let entries = ["no such heading=p99:ms", "zzz=", "p50 of the moon=max"];
    let entries = entries.map(|entry| Mapping::parse(entry).expect("it is an explanation"));
    let explained = audit_with(name, file, &Vocabulary::new(entries.to_vec()));
    match audit(name, file) {
        Ok(report) => {
            let text = report.text(true);
            assert!(report.figures > 0 && text.ends_with('\n'));
            for finding in &report.findings {
                assert!(!finding.says.is_empty() && !finding.because.is_empty());
                assert!(!finding.fix.is_empty() && finding.line > 0);
            }
            let explained = explained.expect("it is read without an explanation");
            assert!(!explained.mapped.is_empty() || explained.text(true) == text);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
