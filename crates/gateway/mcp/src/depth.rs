//! The limit on the nesting of arguments and results, checked in one pass without recursion.

/// The deepest nesting of objects and arrays in a message, that of the gateway's other routes.
pub const MAX_DEPTH: usize = 64;

/// Whether a text is nested deeper than [`MAX_DEPTH`]. It need not be valid JSON.
pub fn is_too_deep(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_allowed_and_one_more_is_not() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        for (text, too_deep) in [
            (nested(MAX_DEPTH), false),
            (nested(MAX_DEPTH + 1), true),
            (format!("[{}1]", "[],".repeat(500)), false),
            (format!("[\"{}\\\"{}\\\\\", []]", "[".repeat(100), "{".repeat(100)), false),
            ("{\"a\":".repeat(1_000_000), true),
        ] {
            assert_eq!(is_too_deep(&text), too_deep, "{}", &text[..text.len().min(40)]);
        }
    }
}
