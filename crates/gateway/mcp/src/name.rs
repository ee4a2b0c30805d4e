//! Names of tools and of tool servers.

/// The reserved name under which the gateway's own tools are listed and allowed.
pub const LOCAL: &str = "local";

/// Longest name of a tool, as the specification recommends.
const MAX_TOOL_NAME: usize = 128;

/// Longest name of a server.
const MAX_SERVER_NAME: usize = 64;

/// Whether a text may name a tool: 1 to 128 letters, digits, `_`, `-`, `.` and `/`.
pub fn is_tool_name(name: &str) -> bool {
    (1..=MAX_TOOL_NAME).contains(&name.len())
        && name.bytes().all(|byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/')
        })
}

/// Whether a text may name a server: 1 to 64 letters, digits, `_`, `-` and `.`. [`LOCAL`] may not.
pub fn is_server_name(name: &str) -> bool {
    (1..=MAX_SERVER_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && name != LOCAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_few_characters_and_a_length() {
        for (name, tool, server) in [
            ("echo", true, true),
            ("a/b", true, false),
            ("search.v2_x-y", true, true),
            ("local", true, false),
            ("", false, false),
            ("a b", false, false),
            ("search/*", false, false),
            ("ä", false, false),
            ("a\n", false, false),
        ] {
            assert_eq!((is_tool_name(name), is_server_name(name)), (tool, server), "{name:?}");
        }
        assert!(is_tool_name(&"x".repeat(128)) && !is_tool_name(&"x".repeat(129)));
        assert!(is_server_name(&"x".repeat(64)) && !is_server_name(&"x".repeat(65)));
    }
}
