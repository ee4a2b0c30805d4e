//! Removes credentials from texts of the target: an error message may quote the key that it
//! refuses.

mod disguise;

use std::fmt;

use disguise::Disguises;
use plimsoll_plan::{
    HeaderValue, Plan, REDACTED, Secret, is_shown_header, names_credential, secrets_of_query,
};

/// Shorter values are not credentials, and replacing them would garble other words.
const SHORTEST: usize = 4;
/// The same limit for values that only their place suggests to be credentials.
const SHORTEST_BY_PLACE: usize = 8;

/// The credentials of a plan.
#[derive(Clone)]
pub struct Secrets {
    /// Keys, and values of headers and queries that are named like credentials: replaced wherever
    /// they occur.
    known: Vec<String>,
    /// Other values of headers and queries: replaced where they stand alone.
    by_place: Vec<String>,
    /// The known ones, as servers may quote them.
    disguises: Disguises,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Collects the keys, and the values of headers and queries that may be credentials.
    pub fn of(plan: &Plan) -> Self {
        let keys = plan.targets.iter().filter_map(|target| target.key.as_ref().map(Secret::reveal));
        let of_targets = plan.targets.iter().flat_map(|target| {
            target.headers.iter().map(|(name, value)| (name.as_str(), HeaderValue::reveal(value)))
        });
        let of_scenarios = plan.scenarios.iter().flat_map(|scenario| {
            let http = scenario.http.iter().flat_map(|http| &http.headers);
            let headers = scenario.headers.iter().chain(http);
            headers.map(|(name, value)| (name.as_str(), value.as_str()))
        });
        let paths = plan.scenarios.iter().filter_map(|scenario| scenario.http.as_ref());
        let of_urls = plan.targets.iter().flat_map(|target| secrets_of_query(target.url.query()));
        let queries = paths.flat_map(|http| secrets_of_query(&http.path)).chain(of_urls);
        let headers = of_targets.chain(of_scenarios).filter(|(name, _)| !is_shown_header(name));
        let (named, others): (Vec<_>, Vec<_>) =
            headers.chain(queries).partition(|(name, _)| names_credential(name));
        let proxy = plan.reach.proxy.as_ref().and_then(|proxy| proxy.credentials.as_ref());
        let proxy = proxy.map(|(_, password)| password.as_str());
        let named = named.into_iter().map(|(_, value)| value).chain(proxy);
        let others = others.into_iter().map(|(_, value)| value);
        Self::new(keys.chain(named), others)
    }

    fn new<'a>(
        known: impl Iterator<Item = &'a str>,
        by_place: impl Iterator<Item = &'a str>,
    ) -> Self {
        // In `Bearer KEY`, the key alone is a secret too.
        let parts =
            |value: &'a str| [value].into_iter().chain(value.split_whitespace().next_back());
        let known: Vec<&str> = known.collect();
        // The word before a key is not part of it.
        let words = known.iter().filter_map(|value| value.split_whitespace().next_back());
        Self {
            disguises: Disguises::new(words),
            known: longest_first(known.iter().copied().flat_map(parts), SHORTEST),
            by_place: longest_first(by_place.flat_map(parts), SHORTEST_BY_PLACE),
        }
    }

    /// Whether a credential was not given: stored profiles have a word in its place, which the
    /// target would be sent.
    pub fn is_missing_one(&self) -> bool {
        self.known.iter().chain(&self.by_place).any(|secret| secret == REDACTED)
    }

    /// The text, with every credential replaced, also where it is quoted in part or in another
    /// spelling.
    pub fn redact(&self, text: &str) -> String {
        let mut text = self.known.iter().fold(text.to_owned(), |text: String, secret: &String| {
            text.replace(secret.as_str(), REDACTED)
        });
        for range in self.disguises.find(&text).into_iter().rev() {
            text.replace_range(range, REDACTED);
        }
        self.by_place.iter().fold(text, |text, secret| replace_words(&text, secret))
    }
}

/// The longest first, so that a shorter one does not leave half a key behind.
fn longest_first<'a>(values: impl Iterator<Item = &'a str>, shortest: usize) -> Vec<String> {
    let mut all: Vec<_> = values.map(str::to_owned).collect();
    all.retain(|secret| secret.len() >= shortest);
    all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    all.dedup();
    all
}

/// Replaces a secret where it is not part of a longer word.
fn replace_words(text: &str, secret: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(secret) {
        let (before, after) = (&rest[..at], &rest[at + secret.len()..]);
        let joined =
            before.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric);
        shown.push_str(before);
        shown.push_str(if joined { secret } else { REDACTED });
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_redacted_anywhere_in_a_text() {
        let known = ["sk-1234", "Bearer abcdef", "x", ""];
        let by_place = ["production", "beta", "s1g=nature"];
        let secrets = Secrets::new(known.into_iter(), by_place.into_iter());
        for (text, shown) in [
            ("wrong key sk-1234!", "wrong key <redacted>!"),
            ("again\\nsk-1234", "again\\n<redacted>"),
            ("got `Bearer abcdef`", "got `<redacted>`"),
            ("token abcdef, again abcdef", "token <redacted>, again <redacted>"),
            ("an x is no secret", "an x is no secret"),
            ("?sig=s1g=nature&x", "?sig=<redacted>&x"),
            ("no beta; reproductions of production", "no beta; reproductions of <redacted>"),
        ] {
            assert_eq!(secrets.redact(text), shown);
        }
    }
}
