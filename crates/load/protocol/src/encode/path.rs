//! The request path: the target's path joined with the dialect's endpoint.

use std::borrow::Cow;

/// Joins the path of a target's base URL with the dialect's endpoint (`/chat/completions`).
///
/// - empty or `/`: `/v1` and the endpoint;
/// - ends in `/v1`: the endpoint is appended;
/// - already ends with the endpoint: unchanged;
/// - any other prefix: `/v1` and the endpoint are appended.
///
/// Trailing slashes of the base are ignored. Its query (`?api-version=...`) stays at the end.
pub(super) fn join(base: &str, endpoint: &str) -> String {
    let (path, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let path = path.trim_end_matches('/');
    let (version, endpoint) = match () {
        () if path.ends_with(endpoint) => ("", ""),
        () if path == "v1" || path.ends_with("/v1") => ("", endpoint),
        () => ("/v1", endpoint),
    };
    with_leading_slash(&[path, version, endpoint, query].concat()).into_owned()
}

/// The same for an endpoint outside the API below `/v1`, which replaces `/v1`.
pub(super) fn join_unversioned(base: &str, endpoint: &str) -> String {
    let (path, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let path = path.trim_end_matches('/');
    let prefix = match () {
        () if path.ends_with(endpoint) => return with_leading_slash(path).into_owned() + query,
        () if path == "v1" => "",
        () => path.strip_suffix("/v1").unwrap_or(path),
    };
    with_leading_slash(&[prefix, endpoint, query].concat()).into_owned()
}

/// A request's own path with the query of the target, which every request keeps.
pub(super) fn with_query_of<'a>(path: &'a str, base: &str) -> Cow<'a, str> {
    let path = with_leading_slash(path);
    match base.split_once('?').map(|(_, query)| query).filter(|query| !query.is_empty()) {
        None => path,
        Some(query) => {
            let join = if path.contains('?') { '&' } else { '?' };
            Cow::Owned(format!("{path}{join}{query}"))
        }
    }
}

/// A request's own path below the path of the target, whose query is kept. `/v1` is a prefix of the
/// LLM dialects, not of plain requests. A path that begins with the prefix is unchanged.
pub(super) fn below<'a>(base: &str, own: &'a str) -> Cow<'a, str> {
    let (prefix, _) = base.split_at(base.find('?').unwrap_or(base.len()));
    let prefix = with_leading_slash(prefix.trim_end_matches('/'));
    let own_path = with_leading_slash(own);
    let rest = own_path.strip_prefix(&*prefix);
    let has_it = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    if matches!(&*prefix, "/" | "/v1") || has_it {
        return with_query_of(own, base);
    }
    Cow::Owned(with_query_of(&format!("{prefix}{own_path}"), base).into_owned())
}

/// The path with a leading `/`.
pub(super) fn with_leading_slash(path: &str) -> Cow<'_, str> {
    if path.starts_with('/') { Cow::Borrowed(path) } else { Cow::Owned(format!("/{path}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_query_is_kept_on_a_requests_own_path() {
        for (path, base, whole) in [
            ("/x", "/base", "/x"),
            ("x", "/base?", "/x"),
            ("/x", "/base?v=1", "/x?v=1"),
            ("/x?a=2", "?v=1&w=2", "/x?a=2&v=1&w=2"),
        ] {
            assert_eq!(with_query_of(path, base), whole);
        }
    }

    #[test]
    fn a_requests_own_path_is_below_that_of_the_target() {
        for (base, own, whole) in [
            ("", "/x", "/x"),
            ("/", "x", "/x"),
            ("/v1", "/x", "/x"),
            ("/v2", "/x", "/v2/x"),
            ("/gw/", "/x?a=2", "/gw/x?a=2"),
            ("/gw?k=1", "/x", "/gw/x?k=1"),
            ("/gw", "/gw/x", "/gw/x"),
            ("/gw", "/gw", "/gw"),
            ("/gw", "/gwx", "/gw/gwx"),
            ("/gw", "/?a=1", "/gw/?a=1"),
        ] {
            assert_eq!(below(base, own), whole, "{own} below {base}");
        }
    }

    #[test]
    fn an_endpoint_without_a_version_takes_its_place() {
        for (base, path) in [
            ("", "/ws/chat"),
            ("/", "/ws/chat"),
            ("/v1", "/ws/chat"),
            ("v1/", "/ws/chat"),
            ("/proxy/v1?k=1", "/proxy/ws/chat?k=1"),
            ("/proxy", "/proxy/ws/chat"),
            ("/rev1", "/rev1/ws/chat"),
            ("/my/ws/chat/", "/my/ws/chat"),
            ("/ws/chat?k=1", "/ws/chat?k=1"),
        ] {
            assert_eq!(join_unversioned(base, "/ws/chat"), path, "{base:?}");
        }
    }

    #[test]
    fn base_paths_are_joined_with_the_endpoint() {
        for (base, path, rule) in [
            ("", "/v1/messages", "nothing gets the default"),
            ("/", "/v1/messages", "a bare slash is nothing"),
            ("/v1", "/v1/messages", "the version gets the rest"),
            ("/v1/", "/v1/messages", "a slash at the end does not count"),
            ("v1", "/v1/messages", "a slash at the start is added"),
            ("/proxy/v1", "/proxy/v1/messages", "so does a version below a prefix"),
            ("/v1/messages", "/v1/messages", "a whole path is used as it is"),
            ("/v1/messages/", "/v1/messages", "also with a slash at its end"),
            ("/my/messages", "/my/messages", "also below another prefix"),
            ("/gateway", "/gateway/v1/messages", "a prefix is put before the default"),
            ("/gateway/", "/gateway/v1/messages", "with one slash between"),
            ("/rev1", "/rev1/v1/messages", "only the whole word is a version"),
            ("/xmessages", "/xmessages/v1/messages", "only the whole word is an endpoint"),
            ("/v1?k=1", "/v1/messages?k=1", "a query stays at the end"),
            ("/v1/messages?k=/v1", "/v1/messages?k=/v1", "also of a whole path"),
            ("?k=1", "/v1/messages?k=1", "also of nothing"),
        ] {
            assert_eq!(join(base, "/messages"), path, "{rule}: {base:?}");
        }
    }
}
