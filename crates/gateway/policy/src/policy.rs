//! Scans texts with a set of compiled rules.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use crate::action::{Action, Actions};
use crate::category::{Category, Context, InputKind};
use crate::decision::{Match, PolicyDecision};
use crate::normalise::{variants, words};
use crate::prefilter::Prefilter;
use crate::rule::Rule;

/// The stages of every scan, in this order, as the response of the policy endpoint names them in
/// `static_checks`.
const CHECKS: [&str; 4] = ["normalise", "literals", "patterns", "validators"];

/// A set of compiled rules.
///
/// Scanning takes `&self` and may run on several threads at once. With a clone per thread they do
/// not share the patterns' scratch memory.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    prefilter: Prefilter,
    category_names: Vec<&'static str>,
}

/// The categories and stages that a scan evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluatedChecks<'p> {
    /// The categories that have rules: `policies_evaluated`.
    pub policies: &'p [&'static str],
    /// The stages: `static_checks`.
    pub checks: &'static [&'static str],
}

impl Policy {
    pub(crate) fn new(rules: Vec<Rule>, prefilter: Prefilter) -> Self {
        let used = Category::ALL.iter().copied().filter(|category: &Category| {
            rules.iter().any(|rule: &Rule| rule.category == *category)
        });
        Self { category_names: used.map(<&str>::from).collect(), rules, prefilter }
    }

    /// Scans a text. Time is linear in the text.
    pub fn scan<'t>(
        &self,
        text: &'t str,
        kind: InputKind,
        actions: &Actions,
    ) -> PolicyDecision<'t> {
        let found = self.find(text, kind, |rule| {
            actions.for_category(rule.category) != Action::Allow
                && (kind == InputKind::Query || rule.context == Context::Any)
        });
        let matches = found.into_iter().filter_map(|(at, range)| {
            let rule = self.rules.get(at)?;
            let action = actions.for_category(rule.category);
            Some(Match { rule_id: Arc::clone(&rule.id), category: rule.category, action, range })
        });
        PolicyDecision::from_matches(text, matches.collect())
    }

    /// The categories and stages that a scan evaluates.
    pub fn evaluated(&self) -> EvaluatedChecks<'_> {
        EvaluatedChecks { policies: &self.category_names, checks: &CHECKS }
    }

    /// Whether the rule with this id matches in a query.
    pub(crate) fn rule_matches(&self, id: &str, text: &str) -> bool {
        !self.find(text, InputKind::Query, |rule| &*rule.id == id).is_empty()
    }

    /// The places where rules that apply match, in all variants of the text.
    fn find(
        &self,
        text: &str,
        kind: InputKind,
        applies: impl Fn(&Rule) -> bool,
    ) -> Vec<(usize, Range<usize>)> {
        let mut found = Vec::new();
        let mut candidates = self.find_in(text, &applies, |at, range| found.push((at, range)));
        let variants = variants(text);
        for variant in variants.iter() {
            candidates.extend(self.find_in(variant.text(), &applies, |at, range| {
                found.push((at, variant.origin(&range)));
            }));
        }
        // Hyphens and capitals mean something in personal data.
        candidates.retain(|at| self.rules[*at].category != Category::Pii);
        candidates.sort_unstable();
        candidates.dedup();
        // Splitting adds no literal, so no other rule can match in the words.
        let reads_words = kind == InputKind::Text && !candidates.is_empty();
        let words = reads_words.then(|| words(text, &variants)).flatten();
        if let Some(words) = &words {
            let origin = |range: Range<usize>| {
                let range = words.origin(&range);
                text.floor_char_boundary(range.start)..range.end
            };
            for at in candidates {
                self.rules[at].find_all(words.text(), |range| found.push((at, origin(range))));
            }
        }
        if words.is_some() || variants.spaced.is_some() {
            merge(&mut found);
        }
        found
    }

    /// Calls `each` with the number of the rule and the range of every match of the rules that
    /// apply, in a text as it is. Returns the rules whose literals are in the text.
    pub(crate) fn find_in(
        &self,
        text: &str,
        applies: impl Fn(&Rule) -> bool,
        mut each: impl FnMut(usize, Range<usize>),
    ) -> Vec<usize> {
        let candidates = self.prefilter.candidates(text, |at| applies(&self.rules[at]));
        for at in &candidates {
            self.rules[*at].find_all(text, |range| each(*at, range));
        }
        candidates
    }
}

/// A match in several variants is reported once, with the widest range.
fn merge(found: &mut Vec<(usize, Range<usize>)>) {
    found.retain(|(_, range)| !range.is_empty());
    found.sort_by_key(|(at, range)| (*at, range.start, Reverse(range.end)));
    found.dedup_by(|next, kept| next.0 == kept.0 && next.1.start < kept.1.end);
}
