//! Who speaks for whom: headers by which proxies tell of the client before them.
//!
//! A client may write them, too, so they are removed. The gateway then writes its own.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::http::normal_form::dashed;

/// The client's address.
const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Names besides `x-forwarded-*` by which common proxies and networks name the client, or tell what
/// it asked for before they rewrote it; and those that servers take for settings of their own.
const CLAIMS: [&str; 26] = [
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-envoy-external-address",
    "x-envoy-internal",
    "x-envoy-original-host",
    "x-envoy-original-path",
    "x-host",
    "x-method",
    "x-ms-original-url",
    "x-original-host",
    "x-original-uri",
    "x-waws-unencoded-url",
    "x-script-name",
    "script-name",
    "path-info",
    "request-uri",
    "x-accel-mapping",
    "x-accel-redirect",
    "x-sendfile",
    // Servers that pass headers on as variables of an environment make `HTTP_PROXY` of it.
    "proxy",
];

/// The connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The address of the client, or of a proxy in front of the gateway.
    pub(crate) client: IpAddr,
    /// Whether it is encrypted.
    pub(crate) is_tls: bool,
}

/// Replaces what the client says of itself by what the gateway knows. `host` is the one that the
/// client asked for.
pub(crate) fn rewrite(headers: &mut HeaderMap, origin: Origin, host: Option<HeaderValue>) {
    let client = origin.client.to_canonical().to_string();
    let claimed: Vec<_> = headers.keys().filter(|name| is_claim(name)).cloned().collect();
    for name in claimed {
        headers.remove(name);
    }
    insert(headers, FOR, HeaderValue::try_from(client).ok());
    let protocol = if origin.is_tls { "https" } else { "http" };
    insert(headers, PROTO, Some(HeaderValue::from_static(protocol)));
    insert(headers, HOST, host);
}

fn is_claim(name: &HeaderName) -> bool {
    let dashed = dashed(name.as_str());
    let text = dashed.as_deref().unwrap_or(name.as_str());
    text.starts_with("x-forwarded-") || CLAIMS.contains(&text)
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(client: &str, sent: &[(&'static str, &str)]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let origin = Origin { client: client.parse().unwrap(), is_tls: false };
        rewrite(&mut headers, origin, Some(HeaderValue::from_static("gw:1")));
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines
    }

    const OWN: [&str; 3] =
        ["x-forwarded-for: 10.0.0.9", "x-forwarded-host: gw:1", "x-forwarded-proto: http"];

    #[test]
    fn what_a_client_says_of_itself_is_replaced() {
        for name in [
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-user",
            "x-forwarded-access-token",
            "forwarded",
            "x-real-ip",
            "cf-connecting-ip",
        ] {
            assert_eq!(rewritten("10.0.0.9", &[(name, "evil")]), OWN, "{name}");
        }
        assert_eq!(rewritten("::ffff:10.0.0.9", &[]), OWN);
    }
}
