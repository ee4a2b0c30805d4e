//! A draft without the names of the gateways.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::spec::{GatewaysFile, digits_of, shuffled};

/// Members whose whole value may be a name. Elsewhere such a value may be a word of the format.
const NAMES: [&str; 3] = ["name", "model", "failure"];

impl GatewaysFile {
    /// Replaces the names of the gateways by letters in a random order, and leaves everything out
    /// of the result that tells which is which. Returns the names, for the user alone.
    pub fn anonymize(&mut self, started: &str) -> String {
        let order = shuffled(self.entries.len(), digits_of(started), u64::MAX);
        for (nth, at) in order.into_iter().enumerate() {
            let entry = &mut self.entries[at];
            let real = std::mem::replace(&mut entry.name, format!("gateway-{}", letters(nth)));
            self.real_names.insert(entry.name.clone(), real);
        }
        let names = self.real_names.iter().map(|(letter, name)| format!("{letter}: {name}\n"));
        names.collect()
    }

    /// The same result without the real names, which targets and their programs write into texts.
    pub(crate) fn hide<T: Serialize + DeserializeOwned>(&self, result: T) -> serde_json::Result<T> {
        if self.real_names.is_empty() {
            return Ok(result);
        }
        serde_json::from_value(self.hidden("", serde_json::to_value(result)?))
    }

    fn hidden(&self, member: &str, value: Value) -> Value {
        match value {
            Value::String(text) => {
                let names = self.real_names.iter();
                let names =
                    names.filter(|(_, real)| text.len() > real.len() || NAMES.contains(&member));
                names
                    .fold(text.clone(), |text, (letter, real)| replaced(&text, real, letter))
                    .into()
            }
            Value::Array(all) => all.into_iter().map(|one| self.hidden(member, one)).collect(),
            Value::Object(members) => {
                let members = members.into_iter();
                members.map(|(name, value)| (name.clone(), self.hidden(&name, value))).collect()
            }
            other => other,
        }
    }
}

/// `A` to `Z`, then `AA`, `AB`.
fn letters(nth: usize) -> String {
    let last = ('A'..='Z').nth(nth % 26).map(String::from).unwrap_or_default();
    if nth < 26 { last } else { letters(nth / 26 - 1) + &last }
}

/// The text without a name, in whatever case, and without the version behind it.
fn replaced(text: &str, name: &str, by: &str) -> String {
    let Some(at) = text.to_ascii_lowercase().find(&name.to_ascii_lowercase()) else {
        return text.to_owned();
    };
    let rest = &text[at + name.len()..];
    let version = rest.strip_prefix('/').filter(|version| version.starts_with(is_digit));
    let rest = version.map_or(rest, |version| version.trim_start_matches(is_digit));
    format!("{}{by}{}", &text[..at], replaced(rest, name, by))
}

const fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::spec::Entry;
    use super::*;

    fn anonymous(names: &[&str]) -> (GatewaysFile, String) {
        let named = |name: &&str| Entry { name: (*name).to_owned(), ..Entry::default() };
        let mut file = GatewaysFile::default();
        file.entries.extend(names.iter().map(named));
        let names = file.anonymize("20261129T120000Z");
        (file, names)
    }

    #[test]
    fn any_number_of_gateways_has_letters_and_the_user_the_names() {
        let real: Vec<_> = (0..60).map(|n| format!("real-{n}-")).collect();
        let (file, names) = anonymous(&real.iter().map(|name| &**name).collect::<Vec<_>>());
        let mut letters: Vec<_> = file.entries.iter().map(|entry| &*entry.name).collect();
        assert!(real.iter().all(|name| names.contains(name)), "{names}");
        letters.sort_by_key(|name| (name.len(), *name));
        letters.dedup();
        assert_eq!(letters.len(), 60);
        assert_eq!(
            [letters[0], letters[25], letters[26]],
            ["gateway-A", "gateway-Z", "gateway-AA"]
        );
        assert_eq!(letters[59], "gateway-BH");
    }

    #[test]
    fn names_in_texts_of_targets_are_hidden_and_words_of_the_format_stay() {
        let (file, _) = anonymous(&["nginx", "target"]);
        let [nginx, target] = ["nginx", "target"]
            .map(|real| file.real_names.iter().find(|(_, name)| *name == real).unwrap().0.clone());
        let found = file.hide(json!({
            "role": "target", "name": "target", "why": ["exec: NGINX/1.22.1: not found"],
        }));
        let expected = json!({
            "role": "target", "name": target, "why": [format!("exec: {nginx}: not found")],
        });
        assert_eq!(found.unwrap(), expected);
    }
}
