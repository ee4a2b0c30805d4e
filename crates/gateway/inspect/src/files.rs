//! The handling of content other than text.

use serde::Deserialize;
use smart_default::SmartDefault;

use crate::error::Unreadable;
use crate::names::{TEXT_TYPES, lists_with};

/// The handling of content in which texts cannot be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// it is refused
    #[default]
    Refuse,
    /// it passes as it is
    Pass,
}

/// The rule for content other than text.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq)]
pub struct FileRule {
    /// The rule for all types except `pass_types`.
    pub unreadable: Unread,
    /// Types that pass without being read, such as `image/png`, or `image/*` for all images.
    #[default(["image/*", "audio/*", "video/*", "font/*"].map(str::to_owned).into())]
    pub pass_types: Vec<String>,
}

impl FileRule {
    /// Whether the media type is text: `text/*`, JSON, XML, scripts.
    pub fn is_text(media_type: &str) -> bool {
        let kind = media_type.trim().to_ascii_lowercase();
        let Some((group, name)) = kind.split_once('/') else { return false };
        let name = name.trim_start_matches("x-");
        group == "text"
            || name.ends_with("+json")
            || name.ends_with("+xml")
            || group == "application" && lists_with(name) & TEXT_TYPES != 0
    }

    /// Whether content of a media type other than text may pass.
    ///
    /// # Errors
    /// [`Unreadable::File`] with the type.
    pub fn check(&self, media_type: &str) -> Result<(), Unreadable> {
        let kind = media_type.trim().to_ascii_lowercase();
        if self.unreadable == Unread::Pass
            || self.pass_types.iter().any(|rule: &String| match rule.strip_suffix('*') {
                Some(group) => kind.starts_with(group),
                None => kind == *rule,
            })
        {
            return Ok(());
        }
        Err(Unreadable::File(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_text_or_pass_or_are_refused() {
        let rule = FileRule::default();
        for kind in [
            "text/plain",
            "Text/HTML",
            "application/json",
            "application/problem+json",
            "image/svg+xml",
        ] {
            assert!(FileRule::is_text(kind), "{kind}");
        }
        for kind in ["image/png", "application/pdf", "text", "application/octet-stream"] {
            assert!(!FileRule::is_text(kind), "{kind}");
        }
        assert_eq!(rule.check("Image/PNG"), Ok(()));
        assert_eq!(
            rule.check("application/PDF"),
            Err(Unreadable::File("application/pdf".to_owned()))
        );
        assert_eq!(rule.check("imagery/x"), Err(Unreadable::File("imagery/x".to_owned())));
        let open = FileRule { unreadable: Unread::Pass, ..rule };
        assert_eq!(open.check("application/pdf"), Ok(()));
    }
}
