//! The targets of the command line: `NAME=URL,key=ENV,model=M,watch=:8080`.

use plimsoll_plan::Plan;
use serde_json::{Map, Value};

use crate::exit::UsageError;
use crate::flags::watched_process;
use crate::session::Watch;

/// A target as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::command) struct TargetFlag {
    pub(in crate::command) name: String,
    pub(in crate::command) url: String,
    /// Keys of the profile's target, and their texts.
    options: Vec<(&'static str, String)>,
}

/// Options that may follow a URL.
const OPTIONS: [&str; 5] = ["key", "model", "protocol", "store", "watch"];

/// The name of the target of `--direct`.
pub(in crate::command) const DIRECT: &str = "direct";

/// Reads `URL[,OPTION=VALUE]...`.
pub(in crate::command) fn parse_direct(text: &str) -> Result<TargetFlag, String> {
    parse(DIRECT, text)
}

/// Reads `NAME=URL[,OPTION=VALUE]...`.
pub(in crate::command) fn parse_target(text: &str) -> Result<TargetFlag, String> {
    let fix = "write NAME=URL, like a=http://127.0.0.1:8080";
    let (name, rest) = text.split_once('=').ok_or(fix)?;
    if name.contains("://") {
        return Err(fix.to_owned());
    }
    parse(name, rest)
}

/// Reads `[NAME=]URL[,OPTION=VALUE]...`; without a name it is empty.
pub(in crate::command) fn parse_named_or_not(text: &str) -> Result<TargetFlag, String> {
    match text.split_once('=') {
        Some((name, rest)) if !name.contains("://") => parse(name, rest),
        _ => parse("", text),
    }
}

fn parse(name: &str, text: &str) -> Result<TargetFlag, String> {
    let mut parts: Vec<(Option<&'static str>, String)> = Vec::new();
    for piece in text.split(',') {
        let option = piece.split_once('=').and_then(|(key, value)| {
            OPTIONS.into_iter().find(|known| *known == key).map(|known| (known, value))
        });
        match (option, parts.last_mut()) {
            (Some((key, value)), Some(_)) => parts.push((Some(key), value.to_owned())),
            // A comma of the URL or of a value.
            (_, Some((_, value))) => {
                value.push(',');
                value.push_str(piece);
            }
            (_, None) => parts.push((None, piece.to_owned())),
        }
    }
    let mut parts = parts.into_iter();
    let url = parts.next().map(|(_, url)| url).unwrap_or_default();
    if url.is_empty() {
        return Err("the URL is empty; write one like http://127.0.0.1:8080".to_owned());
    }
    let options = parts.filter_map(|(key, value)| Some((key?, value))).collect();
    Ok(TargetFlag { name: name.to_owned(), url, options })
}

impl TargetFlag {
    /// The value of an option as typed.
    pub(in crate::command) fn option(&self, key: &str) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| *known == key);
        found.map(|(_, text)| &**text)
    }

    /// Its key; `variable` looks up the variable that holds it.
    pub(in crate::command) fn key(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, UsageError> {
        let name = if self.name.is_empty() { &self.url } else { &self.name };
        self.option("key").map(|text: &str| {
            variable(text).ok_or_else(|| {
                let shown = shown_variable(text);
                UsageError(format!(
                    "--target {name}: the environment variable {shown} is not set; `key=` names the variable that holds the key"
                ))
            })
        }).transpose()
    }

    /// The target as a profile has it; `variable` looks up the variable that holds its key.
    pub(in crate::command) fn to_profile(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Value, UsageError> {
        if self.option("store").is_some() {
            let name = &self.name;
            let why = format!("--target {name}: `store=` is an option of suites; leave it out");
            return Err(UsageError(why));
        }
        let mut target = Map::new();
        target.insert("name".to_owned(), self.name.as_str().into());
        target.insert("url".to_owned(), self.url.as_str().into());
        for (key, text) in &self.options {
            target.insert((*key).to_owned(), text.as_str().into());
        }
        if let Some(key) = self.key(variable)? {
            target.insert("key".to_owned(), key.into());
        }
        Ok(target.into())
    }
}

/// The name of a variable. Anything else is hidden, because it may be the key itself.
fn shown_variable(text: &str) -> &str {
    let is_name = text.chars().all(|c| matches!(c, 'A'..='Z' | '0'..='9' | '_'));
    if is_name { text } else { "of that name" }
}

/// The processes of the targets on this host.
pub(in crate::command) fn watched(plan: &Plan) -> Result<Vec<Watch>, UsageError> {
    let watches =
        plan.targets.iter().filter_map(|target| Some((&target.name, target.watch.as_ref()?)));
    watches
        .map(|(name, watch): (&String, &String)| {
            let place = watch.strip_prefix("pid:").unwrap_or(watch);
            watched_process(&format!("{name}={place}"))
                .map(Watch::Process)
                .map_err(|error| UsageError(format!("watch of target {name}: {error}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_name_a_url_and_options() {
        for (text, name, url, options) in [
            ("a=http://h:1", "a", "http://h:1", &[][..]),
            ("a=http://h:1,key=A_KEY", "a", "http://h:1", &[("key", "A_KEY")]),
            (
                "a=http://h:1/v?x=1,2&y=3,model=m,1,watch=:8080",
                "a",
                "http://h:1/v?x=1,2&y=3",
                &[("model", "m,1"), ("watch", ":8080")],
            ),
        ] {
            let target = parse_target(text).unwrap();
            assert_eq!((target.name.as_str(), target.url.as_str()), (name, url), "{text}");
            let found: Vec<_> = target.options.iter().map(|(k, v)| (*k, v.as_str())).collect();
            assert_eq!(found, options, "{text}");
        }
        assert_eq!(parse_direct("http://h,key=K").unwrap().name, "direct");
        assert!(parse_target("a=,key=K").unwrap_err().contains("URL is empty"));
        for text in ["http://h:1?a=b", "a"] {
            assert!(parse_target(text).unwrap_err().contains("NAME=URL"), "{text}");
        }
        for (text, name, url) in [
            ("http://h:1?a=b", "", "http://h:1?a=b"),
            ("a=http://h:1?a=b,model=m", "a", "http://h:1?a=b"),
            ("nonsense", "", "nonsense"),
        ] {
            let target = parse_named_or_not(text).unwrap();
            assert_eq!((target.name.as_str(), target.url.as_str()), (name, url), "{text}");
        }
    }

    #[test]
    fn a_key_is_looked_up_and_never_typed() {
        let target = parse_target("a=http://h:1,key=A_KEY").unwrap();
        let found = target.to_profile(|name| (name == "A_KEY").then(|| "sk-1".to_owned())).unwrap();
        assert_eq!(found["key"], "sk-1");
        let error = target.to_profile(|_| None).unwrap_err().to_string();
        assert!(error.contains("A_KEY is not set"), "{error}");
    }
}
