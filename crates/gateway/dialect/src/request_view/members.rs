//! The inspected members of an object, as JSON.

use serde::de::Error as _;

use crate::json::{self, Member};

/// The members of an object without those that are `null`.
#[derive(Debug)]
pub(super) struct Members<'a>(Vec<Member<'a>>);

impl<'a> Members<'a> {
    /// # Errors
    /// It is not an object, or a member that is read occurs twice.
    pub(super) fn read(json: &'a str, read: &[&'static str]) -> Result<Self, serde_json::Error> {
        let mut members = json::members(json)?;
        for name in read {
            if members.iter().filter(|(own, _)| own == name).nth(1).is_some() {
                return Err(serde_json::Error::duplicate_field(name));
            }
        }
        members.retain(|(_, value)| *value != "null");
        Ok(Self(members))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Member<'a>> {
        self.0.iter()
    }
}
