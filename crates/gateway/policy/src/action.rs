//! The actions that a match can cause.

use std::fmt;

use serde::Deserialize;

use crate::category::Category;
use crate::error::PolicyError;

/// The action for a match. Ordered by severity: a text gets the severest action of its matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Rules of the category are not evaluated.
    #[default]
    Allow,
    /// The text passes; the match is only recorded for the audit.
    Log,
    /// The text passes; the caller is told.
    Warn,
    /// The text passes with every match replaced.
    Redact,
    /// The text is blocked.
    Block,
}

impl Action {
    pub(crate) const ALL: [Self; 5] =
        [Self::Allow, Self::Log, Self::Warn, Self::Redact, Self::Block];

    /// The name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Log => "log",
            Self::Warn => "warn",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| name.trim().eq_ignore_ascii_case(action.name()))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The action for each category. Keys that are missing in YAML have their default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Actions {
    /// Default: block.
    pub sql_injection: Action,
    /// Default: block.
    pub dangerous: Action,
    /// Default: block. Administrators get a copy with `allow`.
    pub admin: Action,
    /// Default: redact, so that a query passes without its personal data.
    pub pii: Action,
    /// Default: block.
    pub prompt_injection: Action,
}

impl Default for Actions {
    fn default() -> Self {
        Self { pii: Action::Redact, ..Self::all(Action::Block) }
    }
}

impl Actions {
    /// The same action for every category.
    pub const fn all(action: Action) -> Self {
        Self {
            sql_injection: action,
            dangerous: action,
            admin: action,
            pii: action,
            prompt_injection: action,
        }
    }

    /// The action for a match of `category`.
    pub const fn for_category(self, category: Category) -> Action {
        match category {
            Category::SqlInjection => self.sql_injection,
            Category::Dangerous => self.dangerous,
            Category::Admin => self.admin,
            Category::Pii => self.pii,
            Category::PromptInjection => self.prompt_injection,
        }
    }

    /// The defaults, overridden by the environment variables of the policy gateway's contract.
    ///
    /// `SQLI_ACTION` sets `sql_injection`, `DANGEROUS_QUERY_ACTION` sets `dangerous`, `PII_ACTION`
    /// sets `pii`. `SENSITIVE_DATA_ACTION` sets `admin`: catalogues, audit trails and credentials
    /// are the sensitive data besides personal data. `prompt_injection` has no variable and keeps
    /// its default.
    ///
    /// # Errors
    /// [`PolicyError::Setting`] for the first variable with an unknown action.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, PolicyError> {
        let mut actions = Self::default();
        let settings = [
            ("SQLI_ACTION", &mut actions.sql_injection),
            ("DANGEROUS_QUERY_ACTION", &mut actions.dangerous),
            ("SENSITIVE_DATA_ACTION", &mut actions.admin),
            ("PII_ACTION", &mut actions.pii),
        ];
        for (name, action) in settings {
            let Some(value) = lookup(name).filter(|value| !value.trim().is_empty()) else {
                continue;
            };
            *action = Action::from_name(&value).ok_or(PolicyError::Setting { name, value })?;
        }
        Ok(actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_variables_set_their_categories() {
        let actions = Actions::from_env(|name| match name {
            "SQLI_ACTION" => Some("warn".into()),
            "DANGEROUS_QUERY_ACTION" => Some("LOG".into()),
            "SENSITIVE_DATA_ACTION" => Some(" redact ".into()),
            "PII_ACTION" => Some("block".into()),
            _ => None,
        })
        .unwrap();
        let expected = Actions {
            sql_injection: Action::Warn,
            dangerous: Action::Log,
            admin: Action::Redact,
            pii: Action::Block,
            prompt_injection: Action::Block,
        };
        assert_eq!(actions, expected);
    }

    #[test]
    fn an_unknown_action_names_its_variable() {
        let error = Actions::from_env(|name| (name == "PII_ACTION").then(|| "hide".into()));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("PII_ACTION") && text.contains("hide"), "{text}");
    }

    #[test]
    fn unknown_keys_are_rejected_and_missing_ones_have_defaults() {
        assert!(serde_saphyr::from_str::<Actions>("sqli: block").is_err());
        let actions: Actions = serde_saphyr::from_str("pii: warn").unwrap();
        assert_eq!(actions, Actions { pii: Action::Warn, ..Actions::default() });
    }

    #[test]
    fn actions_are_ordered_by_severity() {
        assert!(Action::ALL.is_sorted());
        assert_eq!(Action::ALL.into_iter().max(), Some(Action::Block));
    }
}
