//! Templates with named values.

use std::collections::BTreeMap;

/// Fills a template with its values. A part in brackets is omitted if one of its values is missing.
pub(crate) fn fill(template: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('[') {
        filled += &fill_part(before, values).0;
        let (part, after) = after.split_once(']').unwrap_or((after, ""));
        let (text, is_whole) = fill_part(part, values);
        if is_whole {
            filled += &text;
        }
        rest = after;
    }
    filled + &fill_part(rest, values).0
}

/// A filled part, and whether it has all of its values.
fn fill_part(part: &str, values: &BTreeMap<String, String>) -> (String, bool) {
    let (mut filled, mut is_whole, mut rest) = (String::new(), true, part);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        filled += before;
        match values.get(name) {
            Some(value) => filled += value,
            None => is_whole = false,
        }
        rest = after;
    }
    (filled + rest, is_whole)
}
