//! The lists of headers in `headers.txt`.

use std::sync::LazyLock;

use hyper::header::HeaderName;

/// A list, read when it is first needed.
pub(crate) type HeaderList = LazyLock<Vec<HeaderName>>;

/// The headers of a list, in the order of the file.
pub(crate) fn headers_of(list: &str) -> Vec<HeaderName> {
    let lists = include_str!("headers.txt").lines().filter_map(|line| line.split_once(": "));
    let own = lists.filter(|(name, _)| *name == list).flat_map(|(_, headers)| headers.split(' '));
    own.filter_map(|name| HeaderName::from_lowercase(name.as_bytes()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_list_is_a_header() {
        for (list, count) in [
            ("single", 12),
            ("kept", 7),
            ("hop", 8),
            ("response-hop", 7),
            ("framing", 6),
            ("overrides", 10),
            ("claims", 26),
            ("for-another", 6),
            ("credentials", 7),
            ("harmless", 24),
        ] {
            assert_eq!(headers_of(list).len(), count, "{list}");
        }
        let claims = headers_of("claims");
        assert!(claims.is_sorted_by_key(|name| (name.as_str().len(), name.to_string())));
    }
}
