//! Scans texts with a set of compiled rules.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use crate::action::{Action, Actions};
use crate::byte_classes::ByteClasses;
use crate::category::{Category, Context, InputKind};
use crate::decision::{Match, PolicyDecision};
use crate::normalise::{Variants, is_encoded, variants, words};
use crate::prefilter::Prefilter;
use crate::rule::Rule;
use crate::rule_bitset::RuleBitSet;
use crate::spec::RuleSpec;

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
    /// By category, in the order of [`Category::ALL`].
    categories: [RuleBitSet; Category::ALL.len()],
    /// The rules that apply to any kind of input.
    any_input: RuleBitSet,
    /// The rules that the scrubber of streams applies.
    stream_rules: RuleBitSet,
    /// The rules that also read the words of identifiers: all but those for personal data, whose
    /// hyphens and capitals mean something.
    word_rules: RuleBitSet,
    category_names: Vec<&'static str>,
    /// The index of a rule, and a text that evades it.
    evasions: Vec<(usize, String)>,
}

/// The categories and stages that a scan evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluatedChecks<'p> {
    /// The categories that have rules: `policies_evaluated`.
    pub policies: &'p [&'static str],
    /// The stages: `static_checks`.
    pub checks: &'static [&'static str],
}

/// A known evasion of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evasion<'p> {
    /// The rule that it evades.
    pub rule_id: &'p str,
    /// The text.
    pub text: &'p str,
    /// Whether any rule of the same category catches it.
    pub caught: bool,
}

impl Policy {
    pub(crate) fn new(rules: Vec<Rule>, prefilter: Prefilter, specs: &[RuleSpec]) -> Self {
        let select = |wanted: &dyn Fn(&Rule) -> bool| -> RuleBitSet {
            rules.iter().enumerate().filter(|(_, rule)| wanted(rule)).map(|(at, _)| at).collect()
        };
        let categories = Category::ALL.map(|category| select(&|rule| rule.category == category));
        let evasions = specs.iter().enumerate();
        Self {
            categories,
            any_input: select(&|rule| rule.context == Context::Any),
            stream_rules: select(&|rule| rule.stream && rule.category == Category::Pii),
            word_rules: select(&|rule| rule.category != Category::Pii),
            category_names: Category::ALL
                .into_iter()
                .filter(|category: &Category| rules.iter().any(|rule| rule.category == *category))
                .map(Category::name)
                .collect(),
            evasions: evasions
                .flat_map(|(at, spec)| spec.evasion.iter().map(move |text| (at, text.clone())))
                .collect(),
            rules,
            prefilter,
        }
    }

    /// Scans a text.
    ///
    /// Time is linear in the text. A text without any rule's literals and without anything encoded
    /// takes two passes over its bytes and no allocation.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "it lives in the caller's configuration")]
    pub fn scan<'t>(
        &self,
        text: &'t str,
        kind: InputKind,
        actions: &Actions,
    ) -> PolicyDecision<'t> {
        let found = self.find(text, self.applicable(kind, *actions), kind);
        if found.is_empty() {
            return PolicyDecision::clean(text);
        }
        let matches = found.into_iter().filter_map(|(at, range)| {
            let rule = self.rules.get(at)?;
            let action = actions.for_category(rule.category);
            Some(Match { rule_id: Arc::clone(&rule.id), category: rule.category, action, range })
        });
        PolicyDecision::from_matches(text, matches.collect())
    }

    /// Whether any rule can match in a text, or in any part of it: the sieve before [`Self::scan`].
    ///
    /// If not, no rule matches in any text whose literals are all in this one, so that several
    /// texts can be joined by line breaks and sieved at once. It does not allocate.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "it lives in the caller's configuration")]
    pub fn may_match(&self, text: &str, kind: InputKind, actions: &Actions) -> bool {
        let classes = ByteClasses::from_text(text);
        let among = self.applicable(kind, *actions);
        !self.prefilter.candidates(text, classes, among).is_empty()
            || classes.is_suspicious() && is_encoded(text)
    }

    /// The categories and stages that a scan evaluates.
    pub fn evaluated(&self) -> EvaluatedChecks<'_> {
        EvaluatedChecks { policies: &self.category_names, checks: &CHECKS }
    }

    /// The ids of all rules with their categories, in the order of evaluation.
    pub fn rules(&self) -> impl Iterator<Item = (&str, Category)> {
        self.rules.iter().map(|rule| (&*rule.id, rule.category))
    }

    /// The evasions that the rules list, each scanned now.
    pub fn evasions(&self) -> impl Iterator<Item = Evasion<'_>> {
        self.evasions.iter().filter_map(|(at, text)| {
            let rule = self.rules.get(*at)?;
            let category = self.categories.iter().find(|set| set.iter().any(|own| own == *at))?;
            Some(Evasion { rule_id: &rule.id, text, caught: self.any_match(text, *category) })
        })
    }

    /// Whether any of the rules `among` matches.
    pub(crate) fn any_match(&self, text: &str, among: RuleBitSet) -> bool {
        !self.find(text, among, InputKind::Query).is_empty()
    }

    fn applicable(&self, kind: InputKind, actions: Actions) -> RuleBitSet {
        let mut rules = RuleBitSet::default();
        for (category, own) in Category::ALL.into_iter().zip(self.categories) {
            if actions.for_category(category) != Action::Allow {
                rules |= own;
            }
        }
        if kind == InputKind::Query { rules } else { rules & self.any_input }
    }

    /// The places where rules of `among` match, in all variants of the text.
    fn find(&self, text: &str, among: RuleBitSet, kind: InputKind) -> Vec<(usize, Range<usize>)> {
        let mut found = Vec::new();
        let classes = ByteClasses::from_text(text);
        let mut candidates =
            self.find_in(text, classes, among, |at, range| found.push((at, range)));
        let variants = if classes.is_suspicious() { variants(text) } else { Variants::default() };
        for variant in variants.iter() {
            let classes = ByteClasses::from_text(variant.text());
            candidates |= self.find_in(variant.text(), classes, among, |at, range| {
                found.push((at, variant.origin(&range)));
            });
        }
        let worded = candidates & self.word_rules;
        if kind == InputKind::Text
            && !worded.is_empty()
            && let Some(words) = words(text, &variants)
        {
            let classes = ByteClasses::from_text(words.text());
            self.find_in(words.text(), classes, worded, |at, range| {
                let range = words.origin(&range);
                found.push((at, text.floor_char_boundary(range.start)..range.end));
            });
            merge(&mut found);
        } else if variants.spaced.is_some() {
            merge(&mut found);
        }
        found
    }

    /// Returns the rules whose literals are in the text.
    fn find_in(
        &self,
        text: &str,
        classes: ByteClasses,
        among: RuleBitSet,
        mut each: impl FnMut(usize, Range<usize>),
    ) -> RuleBitSet {
        let candidates = self.prefilter.candidates(text, classes, among);
        for at in candidates.iter() {
            if let Some(rule) = self.rules.get(at) {
                rule.find_all(text, |range| each(at, range));
            }
        }
        candidates
    }

    /// Calls `each` with the rule and range of every match of the rules for streams.
    pub(crate) fn find_in_stream(&self, text: &str, mut each: impl FnMut(&Rule, Range<usize>)) {
        for at in
            self.prefilter.candidates(text, ByteClasses::from_text(text), self.stream_rules).iter()
        {
            if let Some(rule) = self.rules.get(at) {
                rule.find_all(text, |range| each(rule, range));
            }
        }
    }
}

/// A match in several variants is reported once, with the widest range.
fn merge(found: &mut Vec<(usize, Range<usize>)>) {
    found.retain(|(_, range)| !range.is_empty());
    found.sort_by_key(|(at, range)| (*at, range.start, Reverse(range.end)));
    found.dedup_by(|next, kept| next.0 == kept.0 && next.1.start < kept.1.end);
}
