//! Where a redirect leads, and how the request is sent there (RFC 9110, section 15.4).

use plimsoll_plan::{Scheme, TargetUrl};

/// A request that is sent to another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) method: String,
    /// Scheme and authority.
    pub(crate) origin: String,
    /// Path and query.
    pub(crate) path: String,
    /// Whether the request keeps its body.
    pub(crate) with_body: bool,
}

/// Where a request went: `http://host` and `/path?query`, by this method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) method: &'a str,
    pub(crate) origin: &'a str,
    pub(crate) path: &'a str,
}

/// Whether a status sends the client elsewhere.
pub(crate) const fn redirects(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

impl Hop {
    /// The request that follows a redirect with this status and `Location`. `None` if the location
    /// is not an HTTP URL.
    pub(crate) fn new(from: Place<'_>, status: u16, location: &str) -> Option<Self> {
        let (origin, path) = resolve(from, location.trim())?;
        // Like other clients, switch to GET after a form was sent.
        let becomes_get = match status {
            303 => from.method != "HEAD",
            301 | 302 => from.method == "POST",
            _ => false,
        };
        let method = if becomes_get { "GET" } else { from.method };
        let with_body = !becomes_get;
        Some(Self { method: method.to_owned(), origin, path, with_body })
    }

    /// Whether it keeps a header of the request to `first`: credentials stay with their server, and
    /// headers that describe a body are dropped with the body.
    pub(crate) fn keeps(&self, name: &str, first: &str) -> bool {
        let of_body = is_one_of(name, &["content-type", "content-length", "content-encoding"]);
        let of_server = name.eq_ignore_ascii_case("host") || !is_one_of(name, HARMLESS);
        (self.with_body || !of_body) && (self.origin == first || !of_server)
    }

    /// The same, borrowed.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { method: &self.method, origin: &self.origin, path: &self.path }
    }

    /// Formats the URL without its query, which may contain a key.
    pub(crate) fn shown(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{}{path}", self.origin)
    }
}

fn is_one_of(name: &str, known: &[&str]) -> bool {
    known.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Headers that another server may see. All others may be credentials.
const HARMLESS: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-encoding",
    "content-type",
    "range",
    "user-agent",
];

/// Origin and path of a reference (RFC 3986, section 5.2).
fn resolve(from: Place<'_>, location: &str) -> Option<(String, String)> {
    let location = location.split('#').next().unwrap_or_default();
    if let Some(rest) = location.strip_prefix("//") {
        let scheme = from.origin.split("://").next().unwrap_or_default();
        return absolute(&format!("{scheme}://{rest}"));
    }
    let scheme = location.split(['/', '?']).next().unwrap_or_default();
    if scheme.contains(':') {
        return absolute(location);
    }
    let (base, query) = from.path.split_at(from.path.find('?').unwrap_or(from.path.len()));
    let path = match location.as_bytes().first() {
        None => format!("{base}{query}"),
        Some(b'?') => format!("{base}{location}"),
        Some(b'/') => without_dots(location),
        Some(_) => {
            let folder = base.rfind('/').map_or("/", |end| &base[..=end]);
            without_dots(&format!("{folder}{location}"))
        }
    };
    Some((from.origin.to_owned(), path))
}

fn absolute(url: &str) -> Option<(String, String)> {
    let url: TargetUrl = url.parse().ok()?;
    let path = without_dots(&url.path_and_query());
    Some((format!("{}://{}", url.scheme().name(), url.authority()), path))
}

/// A path without `.` and `..` segments; never empty.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut kept: Vec<&str> = Vec::new();
    let mut ends_in_folder = false;
    for segment in path.split('/').skip(1) {
        ends_in_folder = matches!(segment, "" | "." | "..");
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    if ends_in_folder && kept.last().is_some_and(|last| !last.is_empty()) {
        kept.push("");
    }
    format!("/{}{query}", kept.join("/"))
}

/// The host, the port and whether it is TLS, of an origin that a [`Hop`] has.
pub(crate) fn endpoint(origin: &str) -> Option<(String, u16, bool)> {
    let url: TargetUrl = origin.parse().ok()?;
    Some((url.host().to_owned(), url.port(), url.scheme() == Scheme::Https))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Place<'static> = Place { method: "POST", origin: "http://a:81", path: "/x/y?q=1" };

    #[test]
    fn a_location_may_be_a_url_or_relative() {
        for (location, place) in [
            ("http://b/z", "http://b/z"),
            ("https://b:443", "https://b/"),
            ("https://b/./k/../z?a=b#c", "https://b/z?a=b"),
            ("//b:82/z", "http://b:82/z"),
            ("/z", "http://a:81/z"),
            ("/z/", "http://a:81/z/"),
            ("z", "http://a:81/x/z"),
            ("../z", "http://a:81/z"),
            ("../../../z", "http://a:81/z"),
            ("./", "http://a:81/x/"),
            ("?r=2", "http://a:81/x/y?r=2"),
            ("", "http://a:81/x/y?q=1"),
            ("a/b:c", "http://a:81/x/a/b:c"),
        ] {
            let hop = Hop::new(FROM, 307, location).unwrap();
            assert_eq!(format!("{}{}", hop.origin, hop.path), place, "{location}");
            assert_eq!((hop.method.as_str(), hop.with_body), ("POST", true));
        }
        for location in ["ftp://b/", "mailto:me", "http://", "http://u:p@b/", "javascript:x"] {
            assert_eq!(Hop::new(FROM, 302, location), None, "{location}");
        }
    }

    #[test]
    fn a_post_becomes_a_get_where_clients_make_it_one() {
        for (status, method, becomes, with_body) in [
            (301, "POST", "GET", false),
            (302, "POST", "GET", false),
            (302, "PUT", "PUT", true),
            (303, "PUT", "GET", false),
            (303, "HEAD", "HEAD", true),
            (307, "POST", "POST", true),
            (308, "POST", "POST", true),
            (301, "GET", "GET", true),
        ] {
            let hop = Hop::new(Place { method, ..FROM }, status, "/z").unwrap();
            assert_eq!((hop.method.as_str(), hop.with_body), (becomes, with_body), "{status}");
        }
    }

    #[test]
    fn credentials_do_not_go_to_another_server() {
        let here = Hop::new(FROM, 307, "/z").unwrap();
        let there = Hop::new(FROM, 307, "http://b/z").unwrap();
        let fetched = Hop::new(FROM, 303, "/z").unwrap();
        for (name, kept) in [
            ("Authorization", (true, false, true)),
            ("x-api-key", (true, false, true)),
            ("cookie", (true, false, true)),
            ("Host", (true, false, true)),
            ("accept", (true, true, true)),
            ("Content-Type", (true, true, false)),
        ] {
            let keeps = |hop: &Hop| hop.keeps(name, FROM.origin);
            assert_eq!((keeps(&here), keeps(&there), keeps(&fetched)), kept, "{name}");
        }
    }
}
