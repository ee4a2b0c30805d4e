//! The inspected members of an object, as JSON.

use crate::json::{self, Member};

/// The members of an object without those that are `null`.
#[derive(Debug)]
pub(super) struct Members<'a>(Vec<Member<'a>>);

impl<'a> Members<'a> {
    /// # Errors
    /// It is not an object, or a member that is read occurs twice.
    pub(super) fn read(json: &'a str, read: &[&str]) -> Result<Self, String> {
        let mut members = json::members(json).map_err(|error| error.to_string())?;
        for (at, (name, _)) in members.iter().enumerate() {
            let mut before = members.iter().take(at);
            if read.contains(&&**name) && before.any(|(other, _)| other == name) {
                return Err(format!("duplicate field `{name}`"));
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
