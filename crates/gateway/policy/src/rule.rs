//! A compiled rule.

use std::ops::Range;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};

use crate::category::{Category, Context};
use crate::spec::{Case, RuleSpec};
use crate::validator::{self, Validator};

/// A compiled rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) id: Arc<str>,
    pub(crate) category: Category,
    pub(crate) context: Context,
    pub(crate) stream: bool,
    pattern: Regex,
    /// Whether the pattern has a group called `value`.
    pub(crate) has_value: bool,
    validator: Option<&'static Validator>,
}

impl Rule {
    /// # Errors
    /// The pattern is invalid.
    pub(crate) fn new(spec: &RuleSpec) -> Result<Self, regex::Error> {
        // ASCII classes on bytes take half the memory and time of Unicode classes, and normalised
        // text needs no other letters. Matches are widened to whole characters.
        let pattern = RegexBuilder::new(&spec.pattern)
            .unicode(false)
            .case_insensitive(spec.case == Case::Any)
            .multi_line(false)
            .build()?;
        Ok(Self {
            id: Arc::from(spec.id.as_str()),
            category: spec.category,
            context: spec.context,
            stream: spec.stream,
            has_value: pattern.capture_names().flatten().any(|name| name == "value"),
            pattern,
            validator: spec.validator.as_deref().and_then(validator::by_name),
        })
    }

    pub(crate) fn matches_empty_text(&self) -> bool {
        self.pattern.is_match(b"")
    }

    /// Calls `each` with every match in `text`, as ranges on character boundaries.
    pub(crate) fn find_all(&self, text: &str, mut each: impl FnMut(Range<usize>)) {
        let mut at = 0;
        while let Some((whole, value)) = self.find_at(text, at) {
            let wide = text.floor_char_boundary(value.start)..text.ceil_char_boundary(value.end);
            let valid = match self.validator {
                Some(validator) => (validator.check)(text, wide),
                None => Some(wide),
            };
            at = match &valid {
                Some(valid) => valid.end.max(whole.start + 1),
                None if self.validator.is_some_and(|validator| validator.exhaustive) => whole.end,
                None => whole.start + 1,
            };
            if let Some(valid) = valid.filter(|valid| !valid.is_empty()) {
                each(valid);
            }
        }
    }

    /// The next match from `at` on: the whole match, and the part that is reported.
    fn find_at(&self, text: &str, at: usize) -> Option<(Range<usize>, Range<usize>)> {
        if at > text.len() {
            return None;
        }
        if !self.has_value {
            let whole = self.pattern.find_at(text.as_bytes(), at)?.range();
            return Some((whole.clone(), whole));
        }
        let captures = self.pattern.captures_at(text.as_bytes(), at)?;
        let whole = captures.get(0)?.range();
        let value = captures.name("value").map_or_else(|| whole.clone(), |value| value.range());
        Some((whole, value))
    }
}
