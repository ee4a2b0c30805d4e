//! The answer of a scan.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::action::Action;
use crate::category::Category;

/// What stands in the place of what was redacted.
pub const MASK: &str = "[REDACTED]";

/// One place of a text where a rule matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The rule.
    pub rule_id: Arc<str>,
    /// The rule's category.
    pub category: Category,
    /// What the scan's [`Actions`](crate::Actions) say for the category.
    pub action: Action,
    /// The bytes of the original text, on character boundaries and never empty. Where the match
    /// was found in the normalised text, all that it was made of.
    pub range: Range<usize>,
}

/// What was found in a text, and what is to be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision<'t> {
    /// The severest action of all matches; [`Action::Allow`] without any.
    pub action: Action,
    /// All matches, ordered by where they begin and then by the rules' order.
    pub matches: Vec<Match>,
    /// The text to pass on: the original, with every match whose action is redact replaced by
    /// [`MASK`].
    pub text: Cow<'t, str>,
}

impl<'t> PolicyDecision<'t> {
    /// Nothing was found.
    pub(crate) const fn clean(text: &'t str) -> Self {
        Self { action: Action::Allow, matches: Vec::new(), text: Cow::Borrowed(text) }
    }

    pub(crate) fn of(text: &'t str, mut matches: Vec<Match>) -> Self {
        matches.sort_by_key(|found| found.range.start);
        let action = matches.iter().map(|found| found.action).max().unwrap_or_default();
        let text = redact(text, &matches);
        Self { action, matches, text }
    }

    /// Whether the text must not pass.
    pub fn blocked(&self) -> bool {
        self.action == Action::Block
    }

    /// The first of the matches that decided, for a reason in words.
    pub fn cause(&self) -> Option<&Match> {
        self.matches.iter().find(|found| found.action == self.action)
    }
}

/// The text with every match that is to be redacted replaced; matches that touch share one mask.
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
