//! The scripts that draw the charts, embedded in the page.

use maud::{Markup, PreEscaped, html};

const SCRIPTS: [&str; 4] = [
    include_str!("../assets/vega.min.js"),
    include_str!("../assets/vega-lite.min.js"),
    include_str!("../assets/vega-interpreter.min.js"),
    include_str!("../assets/page.js"),
];

/// SHA-256 of each script, so that the page's policy allows no others.
pub(crate) const HASHES: &str = include_str!("../assets/scripts.sha256");

/// The scripts of a page with charts.
pub(crate) fn render() -> Markup {
    html! {
        @for script in SCRIPTS { script { (PreEscaped(script)) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_scripts() {
        use base64::Engine as _;
        use sha2::Digest as _;
        let hashes = SCRIPTS.map(|script| {
            let hash = sha2::Sha256::digest(script.as_bytes());
            format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(hash))
        });
        assert_eq!(HASHES.trim_end(), hashes.join(" "));
    }

    #[test]
    fn no_script_ends_its_own_element() {
        for script in SCRIPTS {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }
}
