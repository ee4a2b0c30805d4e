//! A set of rules, ready to judge texts.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use crate::action::{Action, Actions};
use crate::category::{Category, Context, Reading};
use crate::error::PolicyError;
use crate::load;
use crate::marks::Marks;
use crate::normalise::readings;
use crate::prefilter::Prefilter;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::spec::RuleSpec;
use crate::verdict::{Match, PolicyDecision};

/// The rules that come with the gateway, a file for each category.
pub(crate) const BUILTIN: [&str; 5] = [
    include_str!("../rules/sql_injection.yaml"),
    include_str!("../rules/dangerous.yaml"),
    include_str!("../rules/admin.yaml"),
    include_str!("../rules/pii.yaml"),
    include_str!("../rules/prompt_injection.yaml"),
];

/// What every scan does, in this order, in the words of the contract's `static_checks`.
const CHECKS: [&str; 4] = ["normalise", "literals", "patterns", "validators"];

/// Rules, ready to judge texts.
///
/// Scanning takes `&self` and may be done from several threads at once; a clone for each thread
/// saves them from sharing the patterns' scratch memory.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    prefilter: Prefilter,
    /// By category, in the order of [`Category::ALL`].
    categories: [RuleSet; Category::ALL.len()],
    /// The rules which apply to any text.
    anywhere: RuleSet,
    /// The rules for streams.
    streams: RuleSet,
    names: Vec<&'static str>,
    evasions: Vec<(usize, String)>,
}

/// What a scan evaluates, for the caller's information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluated<'p> {
    /// The categories that have rules: `policies_evaluated`.
    pub policies: &'p [&'static str],
    /// The stages: `static_checks`.
    pub checks: &'static [&'static str],
}

/// A known way around a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evasion<'p> {
    /// The rule that it goes around.
    pub rule_id: &'p str,
    /// The text.
    pub text: &'p str,
    /// Whether any rule of the same category catches it nevertheless.
    pub caught: bool,
}

impl Policy {
    /// The rules that come with the gateway.
    ///
    /// # Errors
    /// None in a build that passed its tests; see [`Self::from_yaml`].
    pub fn builtin() -> Result<Self, PolicyError> {
        let files = BUILTIN.into_iter().map(load::read).collect::<Result<Vec<_>, _>>()?;
        load::build(files.into_iter().flatten().collect())
    }

    /// The rules of a text in the form of the files under `rules/`.
    ///
    /// # Errors
    /// [`PolicyError::Syntax`] at the first thing that is not YAML of the right shape, else
    /// [`PolicyError::Rules`] with all problems of all rules.
    pub fn from_yaml(text: &str) -> Result<Self, PolicyError> {
        load::build(load::read(text)?)
    }

    pub(crate) fn new(rules: Vec<Rule>, prefilter: Prefilter, specs: &[RuleSpec]) -> Self {
        let those = |wanted: &dyn Fn(&Rule) -> bool| -> RuleSet {
            rules.iter().enumerate().filter(|(_, rule)| wanted(rule)).map(|(at, _)| at).collect()
        };
        let categories = Category::ALL.map(|category| those(&|rule| rule.category == category));
        let used = |category: &Category| rules.iter().any(|rule| rule.category == *category);
        let evasions = specs.iter().enumerate();
        Self {
            categories,
            anywhere: those(&|rule| rule.context == Context::Any),
            streams: those(&|rule| rule.stream && rule.category == Category::Pii),
            names: Category::ALL.into_iter().filter(used).map(Category::name).collect(),
            evasions: evasions
                .flat_map(|(at, spec)| spec.evasion.iter().map(move |text| (at, text.clone())))
                .collect(),
            rules,
            prefilter,
        }
    }

    /// Judges a text.
    ///
    /// Time is linear in the text. A text without any rule's literal, and without anything that
    /// is encoded, costs two passes over its bytes and no allocation.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "it lives in the caller's configuration")]
    pub fn scan<'t>(
        &self,
        text: &'t str,
        reading: Reading,
        actions: &Actions,
    ) -> PolicyDecision<'t> {
        let found = self.find(text, self.applicable(reading, *actions));
        if found.is_empty() {
            return PolicyDecision::clean(text);
        }
        let matches = found.into_iter().filter_map(|(at, range)| {
            let rule = self.rules.get(at)?;
            let action = actions.of(rule.category);
            Some(Match { rule_id: Arc::clone(&rule.id), category: rule.category, action, range })
        });
        PolicyDecision::of(text, matches.collect())
    }

    /// What a scan evaluates.
    pub fn evaluated(&self) -> Evaluated<'_> {
        Evaluated { policies: &self.names, checks: &CHECKS }
    }

    /// The ids of all rules with their categories, in the order of evaluation.
    pub fn rules(&self) -> impl Iterator<Item = (&str, Category)> {
        self.rules.iter().map(|rule| (&*rule.id, rule.category))
    }

    /// The evasions that the rules list, each judged now.
    pub fn evasions(&self) -> impl Iterator<Item = Evasion<'_>> {
        self.evasions.iter().filter_map(|(at, text)| {
            let rule = self.rules.get(*at)?;
            let category = self.categories.iter().find(|set| set.iter().any(|own| own == *at))?;
            Some(Evasion { rule_id: &rule.id, text, caught: self.hits(text, *category) })
        })
    }

    /// Whether any of the rules `among` matches.
    pub(crate) fn hits(&self, text: &str, among: RuleSet) -> bool {
        !self.find(text, among).is_empty()
    }

    fn applicable(&self, reading: Reading, actions: Actions) -> RuleSet {
        let mut rules = RuleSet::default();
        for (category, own) in Category::ALL.into_iter().zip(self.categories) {
            if actions.of(category) != Action::Allow {
                rules |= own;
            }
        }
        if reading == Reading::Query { rules } else { rules & self.anywhere }
    }

    /// The places where rules of `among` match, in all readings of the text.
    fn find(&self, text: &str, among: RuleSet) -> Vec<(usize, Range<usize>)> {
        let mut found = Vec::new();
        let marks = Marks::of(text);
        self.find_in(text, marks, among, |at, range| found.push((at, range)));
        if !marks.is_suspicious() {
            return found;
        }
        let other = readings(text);
        for reading in other.iter() {
            let marks = Marks::of(reading.text());
            self.find_in(reading.text(), marks, among, |at, range| {
                found.push((at, reading.origin(&range)));
            });
        }
        if other.spaced.is_some() {
            // What two readings show is reported once, as widely as either of them shows it.
            found.retain(|(_, range)| !range.is_empty());
            found.sort_by_key(|(at, range)| (*at, range.start, Reverse(range.end)));
            found.dedup_by(|next, kept| next.0 == kept.0 && next.1.start < kept.1.end);
        }
        found
    }

    fn find_in(
        &self,
        text: &str,
        marks: Marks,
        among: RuleSet,
        mut each: impl FnMut(usize, Range<usize>),
    ) {
        for at in self.prefilter.candidates(text, marks, among).iter() {
            if let Some(rule) = self.rules.get(at) {
                rule.find_all(text, |range| each(at, range));
            }
        }
    }

    /// Calls `each` with the rule and the range of every match of the rules for streams.
    pub(crate) fn find_personal(&self, text: &str, mut each: impl FnMut(&Rule, Range<usize>)) {
        for at in self.prefilter.candidates(text, Marks::of(text), self.streams).iter() {
            if let Some(rule) = self.rules.get(at) {
                rule.find_all(text, |range| each(rule, range));
            }
        }
    }
}
