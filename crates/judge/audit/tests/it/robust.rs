//! Any bytes: no panic, and an error has a message.

use plimsoll_audit::audit;
use proptest::prelude::*;

const NAMES: [&str; 6] = ["a.md", "a.html", "a.csv", "a.txt", "a.json", "a"];

/// Pieces of tables in any order reach further than any bytes do.
fn pieces() -> impl Strategy<Value = String> {
    const PIECES: [&str; 40] = [
        "|",
        "\n",
        "---",
        "p99",
        "p50",
        "mean",
        "max",
        "RPS",
        "conns",
        " ",
        "ms",
        "s",
        "%",
        "1",
        "0",
        "-",
        "1,234",
        "0.0001",
        "9e99",
        "99999999999999999999",
        "<td>",
        "<tr>",
        "<table>",
        "</table>",
        "```",
        "Change",
        "Target",
        "Status",
        "PASS",
        "Critical",
        "total",
        "errors",
        "requests",
        "2x faster",
        "sub-",
        "scales well",
        "wrk -c",
        "Running 1s test @ ",
        "Summary:\n",
        "\u{d7}",
    ];
    let piece = prop::sample::select(PIECES.to_vec());
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

fn survives(name: &str, bytes: &[u8]) {
    match audit(name, bytes) {
        Ok(report) => {
            let text = report.text(true);
            assert!(text.ends_with('\n'));
            for finding in &report.findings {
                assert!(!finding.says.is_empty() && !finding.fix.is_empty(), "{finding:?}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_survived(name in prop::sample::select(NAMES.to_vec()), bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survives(name, &bytes);
    }

    #[test]
    fn any_text_is_survived(name in prop::sample::select(NAMES.to_vec()), text in "\\PC{0,200}") {
        survives(name, text.as_bytes());
    }

    #[test]
    fn any_pieces_of_tables_are_survived(name in prop::sample::select(NAMES.to_vec()), text in pieces()) {
        survives(name, text.as_bytes());
    }
}
