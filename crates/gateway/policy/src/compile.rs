//! Compiles rule files to a policy and reports all problems at once.

use std::collections::BTreeSet;

use crate::error::{PolicyError, RuleProblem};
use crate::policy::Policy;
use crate::prefilter::Prefilter;
use crate::rule::Rule;
use crate::spec::{RuleFile, RuleSpec};
use crate::validator;

/// The rules that come with the gateway, a file for each category.
const BUILTIN: [&str; 5] = [
    include_str!("../rules/sql_injection.yaml"),
    include_str!("../rules/dangerous.yaml"),
    include_str!("../rules/admin.yaml"),
    include_str!("../rules/pii.yaml"),
    include_str!("../rules/prompt_injection.yaml"),
];

/// A rule and its line in the file.
type LocatedRule = (u64, RuleSpec);

impl Policy {
    /// The rules that come with the gateway.
    ///
    /// # Errors
    /// None in a build that passed its tests; see [`Self::from_yaml`].
    pub fn builtin() -> Result<Self, PolicyError> {
        let files = BUILTIN.into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        compile(files.into_iter().flatten().collect())
    }

    /// The rules of a text in the format of the files in `rules/`.
    ///
    /// # Errors
    /// [`PolicyError::Syntax`] for the first place that is not YAML of the right shape, else
    /// [`PolicyError::Rules`] with all problems of all rules.
    pub fn from_yaml(text: &str) -> Result<Self, PolicyError> {
        compile(parse(text)?)
    }
}

/// The rules of one file.
///
/// # Errors
/// [`PolicyError::Syntax`].
fn parse(text: &str) -> Result<Vec<LocatedRule>, PolicyError> {
    let file: RuleFile =
        serde_saphyr::from_str(text).map_err(|error| PolicyError::Syntax(error.to_string()))?;
    Ok(file.rules.into_iter().map(|rule| (rule.referenced.line(), rule.value)).collect())
}

/// Builds a policy and checks the examples of every rule.
///
/// # Errors
/// [`PolicyError::Rules`] with all problems; examples are only checked without other problems.
fn compile(located: Vec<LocatedRule>) -> Result<Policy, PolicyError> {
    let mut problems = Problems::default();
    let mut ids = BTreeSet::new();
    let mut rules = Vec::new();
    for (line, spec) in &located {
        let mut report = |cause: String, fix: &str| problems.add(*line, spec, cause, fix);
        if !ids.insert(&spec.id) {
            report("the id is used twice".to_owned(), "give one of the rules another id");
        }
        check(spec, &mut report);
        match Rule::new(spec) {
            Ok(rule) if rule.matches_empty_text() => report(
                "the pattern matches an empty text".to_owned(),
                "make at least one part of it mandatory",
            ),
            Ok(rule) => rules.push(rule),
            Err(error) => report(format!("the pattern is wrong: {error}"), "correct it"),
        }
    }
    problems.result()?;
    let (lines, specs): (Vec<u64>, Vec<RuleSpec>) = located.into_iter().unzip();
    let prefilter =
        Prefilter::new(&specs).map_err(|error| PolicyError::Syntax(error.to_string()))?;
    let policy = Policy::new(rules, prefilter);
    check_examples(&policy, &lines, &specs)?;
    Ok(policy)
}

/// Checks what can be checked without running the rule.
fn check(spec: &RuleSpec, report: &mut impl FnMut(String, &str)) {
    if spec.id.is_empty()
        || !spec
            .id
            .bytes()
            .all(|byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    {
        report("the id is invalid".into(), "use lower-case letters, digits and hyphens");
    }
    if spec.description.trim().is_empty() {
        report("the description is missing".into(), "describe in a few words what it looks for");
    }
    if spec.literals.is_empty() && spec.digits == 0 {
        let fix = "list what every match contains in `literals`, or the minimum number of `digits`";
        report("its pattern would run on every text".into(), fix);
    }
    for literal in spec.lists().flatten() {
        if literal.is_empty() || literal.contains(char::is_whitespace) {
            let cause = format!("the literal `{literal}` is empty or has white space");
            report(cause, "use one word: a text may have more white space than one space");
        }
    }
    if let Some(name) = spec.validator.as_deref().filter(|name| validator::by_name(name).is_none())
    {
        let fix = format!("use one of {}", validator::names().collect::<Vec<_>>().join(", "));
        report(format!("unknown validator `{name}`"), &fix);
    }
    if spec.positive.is_empty() || spec.negative.is_empty() {
        let fix = "give at least one `positive` and one `negative` example";
        report("it has too few examples".into(), fix);
    }
}

fn check_examples(policy: &Policy, lines: &[u64], specs: &[RuleSpec]) -> Result<(), PolicyError> {
    let mut problems = Problems::default();
    for (line, spec) in lines.iter().zip(specs) {
        for text in spec.positive.iter().filter(|text| !policy.rule_matches(&spec.id, text)) {
            let cause = format!("the positive example `{text}` does not match");
            problems.add(*line, spec, cause, "correct the literals, the pattern or the example");
        }
        for text in spec.negative.iter().filter(|text| policy.rule_matches(&spec.id, text)) {
            let cause = format!("the negative example `{text}` matches");
            problems.add(*line, spec, cause, "make the pattern narrower or correct the example");
        }
    }
    problems.result()
}

#[derive(Default)]
struct Problems(Vec<RuleProblem>);

impl Problems {
    fn add(&mut self, line: u64, spec: &RuleSpec, cause: String, fix: &str) {
        self.0.push(RuleProblem { rule: spec.id.clone(), line, cause, fix: fix.to_owned() });
    }

    fn result(self) -> Result<(), PolicyError> {
        if self.0.is_empty() { Ok(()) } else { Err(PolicyError::Rules(self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "id: a, category: pii, description: d, literals: [xy], pattern: xy, \
                         positive: [xy], negative: [y]";

    /// The causes of all problems of one rule.
    fn causes(rule: &str) -> Vec<String> {
        match Policy::from_yaml(&format!("rules: [{{{rule}}}]")) {
            Ok(_) => Vec::new(),
            Err(PolicyError::Rules(problems)) => {
                problems.into_iter().map(|problem| problem.cause).collect()
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn each_problem_is_reported_by_itself() {
        assert_eq!(causes(SOUND), Vec::<String>::new());
        let rows = [
            ("id: a", "id: 'A b'", "the id is invalid"),
            ("description: d", "description: ' '", "the description is missing"),
            ("literals: [xy]", "literals: []", "its pattern would run on every text"),
            ("literals: [xy]", "literals: [xy, '']", "the literal `` is empty or has white space"),
            ("literals: [xy]", "literals: [xy], validator: v", "unknown validator `v`"),
            ("positive: [xy]", "positive: []", "it has too few examples"),
            ("negative: [y]", "negative: []", "it has too few examples"),
            ("pattern: xy", "pattern: 'x*'", "the pattern matches an empty text"),
            ("positive: [xy]", "positive: [xx]", "the positive example `xx` does not match"),
            ("negative: [y]", "negative: [xyz]", "the negative example `xyz` matches"),
        ];
        for (sound, broken, cause) in rows {
            assert_eq!(causes(&SOUND.replace(sound, broken)), [cause], "{broken}");
        }
    }

    #[test]
    fn ids_are_unique() {
        let text = format!("rules: [{{{SOUND}}}, {{{SOUND}}}]");
        let error = Policy::from_yaml(&text).unwrap_err().to_string();
        assert!(error.contains("a (line 1): the id is used twice; give one of"), "{error}");
    }

    #[test]
    fn unknown_keys_and_other_text_are_syntax_errors() {
        for text in ["rules: [{colour: 1}]", "rules: 1", "", "[}"] {
            assert!(matches!(Policy::from_yaml(text), Err(PolicyError::Syntax(_))), "{text}");
        }
    }
}
