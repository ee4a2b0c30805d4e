//! The actions that a match can cause.

use serde::Deserialize;

use crate::category::Category;

/// The action for a match. Ordered by severity: a text gets the severest action of its matches.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// Rules of the category are not evaluated.
    #[default]
    Allow,
    /// The text passes; the match is only recorded for the audit.
    Log,
    /// The text passes with a warning to the caller.
    Warn,
    /// The text passes with every match replaced.
    Redact,
    /// The text is blocked.
    Block,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_rejected_and_missing_ones_have_defaults() {
        assert!(serde_saphyr::from_str::<Actions>("sqli: block").is_err());
        let actions: Actions = serde_saphyr::from_str("pii: warn").unwrap();
        assert_eq!(actions, Actions { pii: Action::Warn, ..Actions::default() });
    }

    #[test]
    fn actions_are_ordered_by_severity() {
        let ladder = [Action::Allow, Action::Log, Action::Warn, Action::Redact, Action::Block];
        assert!(ladder.is_sorted());
    }
}
