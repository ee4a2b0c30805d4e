//! Environment variables, which override keys of a profile and replace placeholders in its texts.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Fault;

/// Prefix of overriding variables: `PLIMSOLL_TARGET` overrides `target`.
const PREFIX: &str = "PLIMSOLL_";

/// The environment variables that a profile may use.
#[derive(Clone, Default)]
pub struct EnvVars(BTreeMap<String, String>);

impl EnvVars {
    /// The variables of this process, without those that are not Unicode.
    pub fn from_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// Every variable that overrides a key of the profile: its name, the key's path and the text.
    ///
    /// A name consists of `PLIMSOLL_` and the path in capitals, with two underscores between steps:
    /// `PLIMSOLL_MAX_IN_FLIGHT` is `max_in_flight`, and `PLIMSOLL_TLS__INSECURE` is `tls.insecure`.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = (&str, String, &str)> {
        self.0.iter().filter_map(|(name, text)| {
            let path = name.strip_prefix(PREFIX)?.to_lowercase().replace("__", ".");
            Some((name.as_str(), path, text.as_str()))
        })
    }

    /// The run id shared by all shards of a run. It is not a key of the profile.
    pub(crate) fn run_id(&self) -> Option<&str> {
        self.0.get("PLIMSOLL_RUN_ID").map(String::as_str)
    }

    /// Replaces `${NAME}`, `${NAME:-default}` and `$$`; any other dollar sign stays.
    ///
    /// # Errors
    /// Every variable without a value or default, and every `${` without a variable's name.
    pub(crate) fn expand(&self, text: &str) -> Result<String, Vec<Fault>> {
        let mut expanded = String::with_capacity(text.len());
        let mut faults = Vec::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            expanded.push_str(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                expanded.push('$');
                rest = after;
            } else if let Some(after) = rest.strip_prefix('{') {
                let (inside, after) = after.split_once('}').unwrap_or((after, ""));
                match self.value_of(inside) {
                    Ok(value) => expanded.push_str(value),
                    Err(fault) => faults.push(fault),
                }
                rest = after;
            } else {
                expanded.push('$');
            }
        }
        expanded.push_str(rest);
        if faults.is_empty() { Ok(expanded) } else { Err(faults) }
    }

    /// The value of the text between `${` and `}`.
    fn value_of<'v>(&'v self, inside: &'v str) -> Result<&'v str, Fault> {
        let (name, default) = inside.split_once(":-").map_or((inside, None), |(n, d)| (n, Some(d)));
        if !is_name(name) {
            return Err(Fault::new(
                "has a `${` that is not followed by a variable's name and `}`",
                "write `${NAME}` or `${NAME:-default}`; for the characters themselves write `$${`",
            ));
        }
        // An empty variable counts as unset if there is a default, as in a shell.
        let set = self
            .0
            .get(name)
            .map(String::as_str)
            .filter(|value| default.is_none() || !value.is_empty());
        set.or(default).ok_or_else(|| {
            Fault::new(
                format!("needs the environment variable {name}, which is not set"),
                format!("set it, or write `${{{name}:-default}}`"),
            )
        })
    }
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

impl FromIterator<(String, String)> for EnvVars {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

/// Hides the values, which may be secrets.
impl fmt::Debug for EnvVars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment() -> EnvVars {
        let variables = [("A", "alpha"), ("EMPTY", ""), ("PLIMSOLL_TLS__INSECURE", "true")];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect()
    }

    #[test]
    fn variables_are_replaced_in_texts() {
        for (text, expanded) in [
            ("no variable", "no variable"),
            ("${A}", "alpha"),
            ("<${A}-${A}>", "<alpha-alpha>"),
            ("${EMPTY}", ""),
            ("${EMPTY:-default}", "default"),
            ("${A:-default}", "alpha"),
            ("${NOT_SET:-a default with: colons}", "a default with: colons"),
            ("${NOT_SET:-}", ""),
            ("$${A} costs 5$, $A or $$5", "${A} costs 5$, $A or $5"),
            ("$", "$"),
        ] {
            assert_eq!(environment().expand(text).as_deref(), Ok(expanded), "{text}");
        }
    }

    #[test]
    fn every_missing_variable_of_a_text_is_named() {
        let faults = environment().expand("${X} ${A} ${Y} ${}").unwrap_err();
        let causes: Vec<_> = faults.iter().map(|fault| fault.cause.as_str()).collect();
        assert_eq!(
            causes,
            [
                "needs the environment variable X, which is not set",
                "needs the environment variable Y, which is not set",
                "has a `${` that is not followed by a variable's name and `}`",
            ]
        );
    }

    #[test]
    fn the_name_of_an_overriding_variable_is_the_path_in_capitals() {
        let environment = environment();
        let found: Vec<_> = environment.overrides().collect();
        assert_eq!(found, [("PLIMSOLL_TLS__INSECURE", "tls.insecure".to_owned(), "true")]);
    }

    proptest! {
        #[test]
        fn a_text_with_its_dollars_doubled_expands_to_itself(text in "\\PC*") {
            let doubled = text.replace('$', "$$");
            prop_assert_eq!(environment().expand(&doubled), Ok(text));
        }

        #[test]
        fn no_text_makes_the_expansion_panic(text in "[${}A:\\-é]*") {
            let faults = environment().expand(&text).err();
            prop_assert!(faults.is_none_or(|faults| !faults.is_empty()));
        }
    }
}
