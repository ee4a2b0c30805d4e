//! The common parts of all pages: the head, the style, and a content security policy that forbids
//! loading and allows only the page's own scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_report::printable;

use crate::chart::Chart;

/// Forbids loading, and all scripts except for charts.
fn policy() -> String {
    let hashes = HASHES.trim_end();
    format!("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}")
}

/// A whole HTML document with this body and these charts.
pub(crate) fn document(title: &str, body: &Markup, charts: &[Chart]) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (printable(title)) " - Plimsoll" }
                // Light and dark, on paper, from 320 pixels on. Series use the colours of Okabe and
                // Ito, which people with colour blindness can distinguish, and lines also differ by
                // their dashes.
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                (body)
                @if !charts.is_empty() { (render()) }
            }
        }
    };
    document.into_string()
}

/// Converts text in backticks to code.
pub(crate) fn with_code(text: &str) -> Markup {
    let text = printable(text);
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        // An odd number of backticks leaves the last one without a partner.
        @if parts.len().is_multiple_of(2) { (text) } @else {
            @for (nth, part) in parts.into_iter().enumerate() {
                @if nth % 2 == 1 { code { (part) } } @else { (part) }
            }
        }
    }
}

/// Explains the notation of figures.
pub(crate) fn notation() -> Markup {
    html! {
        b { "-" } ": too few values for it (fewer than 10 beyond a percentile). "
        b { "(-12us)" } ": up to so much less without Plimsoll. "
        b { ">=" } ": at least: requests without an end may make a time longer, and Plimsoll may have held a rate back."
    }
}

// The scripts that draw the charts, embedded in the page.

const SCRIPTS: [&str; 4] = [
    include_str!("../assets/vega.min.js"),
    include_str!("../assets/vega-lite.min.js"),
    include_str!("../assets/vega-interpreter.min.js"),
    include_str!("../assets/page.js"),
];

/// SHA-256 of each script, so that the page's policy allows no others.
const HASHES: &str = include_str!("../assets/scripts.sha256");

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
    fn backticks_become_code_and_nothing_else_is_markup() {
        assert_eq!(
            with_code("set `a<b` or `c`").into_string(),
            "set <code>a&lt;b</code> or <code>c</code>"
        );
        assert_eq!(with_code("one ` alone").into_string(), "one ` alone");
    }
}

#[cfg(test)]
mod scripts_tests {
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
