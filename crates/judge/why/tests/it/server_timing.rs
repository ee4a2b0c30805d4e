//! Times that the target reports in its headers.

use plimsoll_metrics::ServerTiming;
use plimsoll_why::{Why, text};

use crate::support::{Case, times};

/// 1,000 responses whose first byte took 12.3 ms.
fn why(refused: u64, change: impl FnOnce(&mut ServerTiming)) -> Why {
    let mut timing = ServerTiming {
        responses: 1_000,
        refused,
        ttfb_sum_ms: 12_300.0,
        parts: [
            ("gateway".to_owned(), times(1_000, 2.1)),
            // Half of the responses do not involve the upstream.
            ("up\u{1b}stream".to_owned(), times(500, 18.0)),
        ]
        .into(),
    };
    change(&mut timing);
    let case = Case::closed(50).with(|case| {
        case.0.results.by_stage.last_mut().unwrap().server_timing = Some(timing);
    });
    case.why()
}

#[test]
fn the_parts_are_shown_as_the_targets_own_word() {
    let found = why(10, |_| ());
    let own = found.own_word.as_ref().unwrap();
    let parts: Vec<_> = own.parts.iter().map(|part| (&*part.name, part.mean_ms)).collect();
    assert_eq!(parts, [("gateway", 2.1), ("up\u{1b}stream", 9.0)]);
    assert!((own.rest_ms - 1.2).abs() < 1e-9 && (own.ttfb_ms - 12.3).abs() < 1e-9, "{own:?}");
    let shown = text(&found);
    for row in ["  gateway", "  up\\u{1b}stream", "  network, rest"] {
        assert!(shown.contains(row), "{row}\n{shown}");
    }
    let without = Case::closed(50).why();
    assert_eq!((found.answer, without.own_word), (without.answer, None), "it accuses nobody");
}

#[test]
fn a_header_that_cannot_be_true_is_not_believed() {
    // 11 of 1,011 are more than 1 %.
    let found = why(11, |_| ());
    assert_eq!(found.own_word, None);
    let nothing = why(0, |timing| *timing = ServerTiming::default());
    assert!(nothing.own_word.is_none(), "{nothing:?}");
}
