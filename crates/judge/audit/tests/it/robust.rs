//! Arbitrary bytes are parsed or rejected.

use plimsoll_audit::{AuditError, LARGEST_FILE, audit};
use proptest::prelude::*;

#[test]
fn files_without_a_table_are_refused() {
    assert_eq!(audit("a.md", &[0xff, 0xfe], &[]).unwrap_err(), AuditError::NotText);
    assert_eq!(
        audit("a.md", &vec![b'a'; LARGEST_FILE + 1], &[]).unwrap_err(),
        AuditError::TooLarge
    );
    for text in ["", "We sent 500 requests per second.", "|a|b|\n|---|---|\n|1|2|\n", "|-\n-|\n"] {
        let error = audit("a.md", text.as_bytes(), &[]).unwrap_err();
        assert!(matches!(error, AuditError::NoTable(_)), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "[|\\-:. ,%a-z0-9\n\"]{0,200}", csv: bool) {
        let _ = audit(if csv { "a.csv" } else { "a.md" }, text.as_bytes(), &[]);
    }
}
