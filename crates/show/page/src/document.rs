//! What every page has: its head, its style, and a policy that lets it load and run nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_report::printable;

use crate::style;

/// Nothing is loaded, and nothing runs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// A whole HTML document.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (printable(title)) " - Plimsoll" }
                style { (PreEscaped(style::CSS)) }
            }
            body { (body) }
        }
    };
    document.into_string()
}

/// What stands for a figure that is refused.
pub(crate) fn refused() -> Markup {
    html! {
        "A figure that the data do not carry is " b { "-" } ": "
        "fewer than 10 values beyond it, or it must not be used. Where one stands with " b { "!" }
        ", the generator's own part in it may be too large; with " b { "?" }
        ", too many requests had no end: do not use it."
    }
}
