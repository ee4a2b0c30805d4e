//! Removes credentials from texts of the target: an error message may quote the key that it
//! refuses.

use plimsoll_profile::{HeaderValue, Plan, REDACTED, Secret, is_sensitive};

/// Shorter values are no credentials, and replacing them would garble other words.
const SHORTEST: usize = 4;

/// The credentials of a plan.
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Collects the keys and the values of headers that carry credentials.
    pub(crate) fn of(plan: &Plan) -> Self {
        let targets = plan.targets.iter().flat_map(|target| {
            let headers = target.headers.values().filter(|value| value.shown() == REDACTED);
            target
                .key
                .as_ref()
                .map(Secret::reveal)
                .into_iter()
                .chain(headers.map(HeaderValue::reveal))
        });
        let scenarios = plan.scenarios.iter().flat_map(|scenario| {
            let http = scenario.http.iter().flat_map(|http| &http.headers);
            let headers = scenario.headers.iter().chain(http);
            headers.filter(|(name, _)| is_sensitive(name)).map(|(_, value)| value.as_str())
        });
        targets.chain(scenarios).collect()
    }

    /// The text, with every credential replaced.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), REDACTED))
    }
}

impl<'a> FromIterator<&'a str> for Secrets {
    /// In `Bearer KEY`, the key alone is a secret too.
    fn from_iter<I: IntoIterator<Item = &'a str>>(values: I) -> Self {
        let parts =
            |value: &'a str| [value].into_iter().chain(value.split_whitespace().next_back());
        let mut all: Vec<_> = values.into_iter().flat_map(parts).map(str::to_owned).collect();
        all.retain(|secret| secret.len() >= SHORTEST);
        // The longest first, so that a shorter one does not leave half a key behind.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Self(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_redacted_anywhere_in_a_text() {
        let secrets: Secrets = ["sk-1234", "Bearer abcdef", "x", ""].into_iter().collect();
        for (text, shown) in [
            ("wrong key sk-1234!", "wrong key <redacted>!"),
            ("got `Bearer abcdef`", "got `<redacted>`"),
            ("token abcdef, again abcdef", "token <redacted>, again <redacted>"),
            ("an x is no secret", "an x is no secret"),
        ] {
            assert_eq!(secrets.redact(text), shown);
        }
    }
}
