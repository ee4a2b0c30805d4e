//! From the text of rules to rules that can be run, with everything that is wrong said at once.

use std::collections::BTreeSet;

use crate::error::{PolicyError, Problem};
use crate::policy::Policy;
use crate::prefilter::Prefilter;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::spec::{RuleFile, RuleSpec};
use crate::validator;

/// A rule and the line on which it begins.
pub(crate) type Placed = (u64, RuleSpec);

/// The rules of one file.
///
/// # Errors
/// [`PolicyError::Syntax`].
pub(crate) fn read(text: &str) -> Result<Vec<Placed>, PolicyError> {
    let file: RuleFile =
        serde_saphyr::from_str(text).map_err(|error| PolicyError::Syntax(error.to_string()))?;
    Ok(file.rules.into_iter().map(|rule| (rule.referenced.line(), rule.value)).collect())
}

/// Builds a policy and judges every example of every rule.
///
/// # Errors
/// [`PolicyError::Rules`] with all problems; examples are judged only when nothing else is wrong.
pub(crate) fn build(placed: Vec<Placed>) -> Result<Policy, PolicyError> {
    let mut problems = Problems::default();
    let mut ids = BTreeSet::new();
    let mut rules = Vec::new();
    for (line, spec) in &placed {
        let mut report = |cause: String, mend: &str| problems.add(*line, spec, cause, mend);
        if !ids.insert(&spec.id) {
            report("the id is used twice".to_owned(), "give one of the rules another id");
        }
        check(spec, &mut report);
        match Rule::new(spec) {
            Ok(rule) if rule.matches_nothing_at_all() => report(
                "the pattern matches an empty text".to_owned(),
                "make at least one part of it necessary",
            ),
            Ok(rule) => rules.push(rule),
            Err(error) => report(format!("the pattern is wrong: {error}"), "correct it"),
        }
    }
    if let Some((line, spec)) = placed.get(RuleSet::CAPACITY) {
        let cause = format!("there are more than {} rules", RuleSet::CAPACITY);
        problems.add(*line, spec, cause, "merge rules that look for the same thing");
    }
    problems.result()?;
    let (lines, specs): (Vec<u64>, Vec<RuleSpec>) = placed.into_iter().unzip();
    let prefilter =
        Prefilter::new(&specs).map_err(|error| PolicyError::Syntax(error.to_string()))?;
    let policy = Policy::new(rules, prefilter, &specs);
    judge_examples(&policy, &lines, &specs)?;
    Ok(policy)
}

/// What can be seen without running the rule.
fn check(spec: &RuleSpec, report: &mut impl FnMut(String, &str)) {
    let named = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if spec.id.is_empty() || !spec.id.bytes().all(named) {
        report("the id is not a name".into(), "use lower-case letters, digits and hyphens");
    }
    if spec.description.trim().is_empty() {
        report("there is no description".into(), "say what it looks for in a few words");
    }
    if spec.literals.is_empty() && spec.digits == 0 {
        let mend = "name what every match contains in `literals`, or the least number of `digits`";
        report("every text would be searched for it".into(), mend);
    }
    for literal in spec.lists().flatten() {
        if literal.is_empty() || literal.contains(char::is_whitespace) {
            let cause = format!("the literal `{literal}` is empty or has white space");
            report(cause, "use one word of it: there may be more white space than one space");
        }
    }
    if let Some(name) = spec.validator.as_deref().filter(|name| validator::named(name).is_none()) {
        let mend = format!("use one of {}", validator::names().collect::<Vec<_>>().join(", "));
        report(format!("there is no validator `{name}`"), &mend);
    }
    if spec.positive.is_empty() || spec.negative.is_empty() {
        let mend = "give at least one `positive` and one `negative` example";
        report("it cannot be seen whether it works".into(), mend);
    }
}

fn judge_examples(policy: &Policy, lines: &[u64], specs: &[RuleSpec]) -> Result<(), PolicyError> {
    let mut problems = Problems::default();
    for (at, (line, spec)) in lines.iter().zip(specs).enumerate() {
        let only: RuleSet = [at].into_iter().collect();
        for text in spec.positive.iter().filter(|text| !policy.hits(text, only)) {
            let cause = format!("the positive example `{text}` does not match");
            problems.add(*line, spec, cause, "correct the literals, the pattern or the example");
        }
        for text in spec.negative.iter().filter(|text| policy.hits(text, only)) {
            let cause = format!("the negative example `{text}` matches");
            problems.add(*line, spec, cause, "make the pattern narrower or correct the example");
        }
    }
    problems.result()
}

#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn add(&mut self, line: u64, spec: &RuleSpec, cause: String, mend: &str) {
        self.0.push(Problem { rule: spec.id.clone(), line, cause, mend: mend.to_owned() });
    }

    fn result(self) -> Result<(), PolicyError> {
        if self.0.is_empty() { Ok(()) } else { Err(PolicyError::Rules(self.0)) }
    }
}
