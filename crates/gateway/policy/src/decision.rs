//! The result of a scan: the matches, and the decision that follows from them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::action::Action;
use crate::category::Category;

/// The replacement of redacted text.
pub const MASK: &str = "[REDACTED]";

/// One place of a text where a rule matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The rule.
    pub rule_id: Arc<str>,
    /// The rule's category.
    pub category: Category,
    /// The action for the category, from the scan's [`Actions`](crate::Actions).
    pub action: Action,
    /// The bytes of the original text, on character boundaries and never empty. For a match in
    /// normalised text, the original bytes behind it.
    pub range: Range<usize>,
}

/// The matches in a text and the action to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision<'t> {
    /// The severest action of all matches; [`Action::Allow`] without any.
    pub action: Action,
    /// All matches, by position and then by the order of the rules.
    pub matches: Vec<Match>,
    /// The text to pass on: the original, with every match whose action is redact replaced by
    /// [`MASK`].
    pub text: Cow<'t, str>,
}

impl<'t> PolicyDecision<'t> {
    pub(crate) fn from_matches(text: &'t str, mut matches: Vec<Match>) -> Self {
        matches.sort_by_key(|found| found.range.start);
        let action = matches.iter().map(|found| found.action).max().unwrap_or_default();
        let text = redact(text, &matches);
        Self { action, matches, text }
    }
}

/// Replaces every match whose action is redact. Adjacent matches share one mask.
fn redact<'t>(text: &'t str, matches: &[Match]) -> Cow<'t, str> {
    let mut masked = String::new();
    let mut done = 0;
    let mut any = false;
    for found in matches.iter().filter(|found| found.action == Action::Redact) {
        if !any || found.range.start > done {
            masked.push_str(text.get(done..found.range.start).unwrap_or_default());
            masked.push_str(MASK);
        }
        any = true;
        done = done.max(found.range.end);
    }
    if !any {
        return Cow::Borrowed(text);
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(masked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(range: Range<usize>, action: Action) -> Match {
        Match { rule_id: Arc::from("r"), category: Category::Pii, action, range }
    }

    #[test]
    fn the_severest_action_decides() {
        let matches =
            vec![found(4..5, Action::Block), found(0..1, Action::Warn), found(2..3, Action::Block)];
        let decision = PolicyDecision::from_matches("abcdef", matches);
        assert_eq!(decision.action, Action::Block);
        let ranges: Vec<_> = decision.matches.iter().map(|found| found.range.clone()).collect();
        assert_eq!(ranges, [0..1, 2..3, 4..5], "by position");
        assert_eq!(decision.text, "abcdef", "only redact changes the text");
    }

    #[test]
    fn overlapping_and_adjacent_matches_share_a_mask() {
        let rows: [(&[Range<usize>], &str); 5] = [
            (&[0..2, 1..4], "[REDACTED]ef"),
            (&[0..2, 2..4], "[REDACTED]ef"),
            (&[0..4, 1..2], "[REDACTED]ef"),
            (&[0..1, 3..6], "[REDACTED]bc[REDACTED]"),
            (&[2..3, 3..4], "ab[REDACTED]ef"),
        ];
        for (ranges, expected) in rows {
            let matches = ranges.iter().map(|range| found(range.clone(), Action::Redact));
            assert_eq!(PolicyDecision::from_matches("abcdef", matches.collect()).text, expected);
        }
    }

    #[test]
    fn without_matches_the_text_is_allowed() {
        let decision = PolicyDecision::from_matches("x", Vec::new());
        assert_eq!((decision.action, &*decision.text), (Action::Allow, "x"));
    }
}
