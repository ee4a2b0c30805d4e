//! The settings of the reference gateway, by name.

use serde_json::json;

use crate::error::SuiteError;
use crate::runner::SuiteRunner;
use crate::target::{Gateway, Provider};

const SETTINGS: &str = include_str!("settings.txt");

/// Every list: its name, and its lines.
fn lists() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.split("\n# ").filter_map(|text| text.split_once('\n')).skip(1)
}

/// The settings of a list, including the lists that it includes.
fn list(name: &str) -> Vec<&'static str> {
    let lines = lists().find(|(known, _)| *known == name).map_or("", |(_, lines)| lines);
    let lines = lines.lines().filter(|line| !line.is_empty());
    lines.flat_map(|line| line.strip_prefix('@').map_or_else(|| vec![line], list)).collect()
}

impl SuiteRunner<'_> {
    /// The settings of a list, with the folder of the suite and the provider's address in them.
    pub(crate) fn settings(&self, name: &str, provider: Option<&Provider>) -> Vec<String> {
        // JSON is YAML, and escapes any path.
        let quoted = json!(self.options.folder.to_string_lossy()).to_string();
        let folder = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        let address = provider.map_or("", Provider::address);
        let settings = list(name).into_iter();
        settings.map(|set| set.replace("{folder}", folder).replace("{provider}", address)).collect()
    }

    /// Starts a gateway for each variant of a comparison.
    pub(crate) fn variants(
        &mut self,
        preset: &str,
        of: &str,
        provider: Option<&Provider>,
    ) -> Result<Vec<(&'static str, Gateway)>, SuiteError> {
        let own = lists().filter_map(|(name, _)| Some((name, name.strip_prefix(of)?)));
        let own = own.filter_map(|(list, name)| Some((list, name.strip_prefix(": ")?)));
        own.map(|(list, name)| Ok((name, self.gateway(preset, list, &[], provider)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_settings_of_those_that_it_includes() {
        assert_eq!(list("off"), ["auth=null", "rate_limits=[]"]);
        let both = list("endpoint: keys and rate limits");
        assert_eq!(both.len(), 3, "{both:?}");
        assert!(both[0].starts_with("auth={") && both[2].starts_with("rate_limits=[{per: global"));
        assert!(list("no such list").is_empty());
    }

    /// A name that is written wrong would measure the wrong gateway.
    #[test]
    fn every_included_list_is_there() {
        for (name, lines) in lists() {
            let included = lines.lines().filter_map(|line| line.strip_prefix('@'));
            for included in included {
                assert!(!list(included).is_empty(), "{name} includes {included}");
            }
            assert!(!list(name).is_empty(), "{name}");
        }
    }
}
