//! Who speaks for whom: headers by which proxies tell of the client before them.
//!
//! A client may write them, too, so they are removed. The gateway then writes its own. Only what a
//! trusted proxy (`trusted_proxies`) says is kept.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::http::normal_form::dashed;

/// The client's address, after those that proxies named before it.
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

/// Addresses whose word counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Vec<Network>);

/// The addresses that share the first bits of one.
#[derive(Clone, Copy, Debug)]
struct Network {
    address: IpAddr,
    bits: u32,
}

impl TrustedProxies {
    /// Reads `ADDRESS` and `ADDRESS/BITS`.
    ///
    /// # Errors
    /// A message about one that is neither.
    pub(crate) fn parse(written: &[String]) -> Result<Self, String> {
        let networks = written.iter().map(|text| {
            Network::parse(text).ok_or_else(|| {
                format!("trusted_proxies: `{text}` is neither an address nor ADDRESS/BITS")
            })
        });
        networks.collect::<Result<_, _>>().map(Self)
    }

    fn contains(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.0.iter().any(|network| network.contains(client))
    }
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = if bits.is_empty() && !text.contains('/') { most } else { bits.parse().ok()? };
        (bits <= most).then_some(Self { address, bits })
    }

    fn contains(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (u32::from(own) ^ u32::from(other)).leading_zeros() >= self.bits
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (u128::from(own) ^ u128::from(other)).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

/// The connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The address of the client, or of the proxy before the gateway.
    pub(crate) client: IpAddr,
    /// Whether it is encrypted.
    pub(crate) is_tls: bool,
}

/// Replaces what the client says of itself by what the gateway knows. `host` is the one that the
/// client asked for.
pub(crate) fn rewrite(
    headers: &mut HeaderMap,
    trusted: &TrustedProxies,
    origin: Origin,
    host: Option<HeaderValue>,
) {
    let client = origin.client.to_canonical().to_string();
    if trusted.contains(origin.client) {
        let before = headers.get_all(FOR).iter().filter_map(|value| value.to_str().ok());
        let all = before.chain([client.as_str()]).collect::<Vec<_>>().join(", ");
        insert(headers, FOR, HeaderValue::try_from(all).ok());
        if !headers.contains_key(PROTO) {
            insert(headers, PROTO, Some(protocol(origin)));
        }
        if !headers.contains_key(HOST) {
            insert(headers, HOST, host);
        }
        return;
    }
    let claimed: Vec<_> = headers.keys().filter(|name| is_claim(name)).cloned().collect();
    for name in claimed {
        headers.remove(name);
    }
    insert(headers, FOR, HeaderValue::try_from(client).ok());
    insert(headers, PROTO, Some(protocol(origin)));
    insert(headers, HOST, host);
}

fn is_claim(name: &HeaderName) -> bool {
    let dashed = dashed(name.as_str());
    let text = dashed.as_deref().unwrap_or(name.as_str());
    text.starts_with("x-forwarded-") || CLAIMS.contains(&text)
}

const fn protocol(origin: Origin) -> HeaderValue {
    HeaderValue::from_static(if origin.is_tls { "https" } else { "http" })
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(trusted: &[&str], client: &str, sent: &[(&'static str, &str)]) -> Vec<String> {
        let trusted: Vec<_> = trusted.iter().map(|text| (*text).to_owned()).collect();
        let trusted = TrustedProxies::parse(&trusted).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let origin = Origin { client: client.parse().unwrap(), is_tls: false };
        rewrite(&mut headers, &trusted, origin, Some(HeaderValue::from_static("gw:1")));
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
            assert_eq!(rewritten(&[], "10.0.0.9", &[(name, "evil")]), OWN, "{name}");
        }
        assert_eq!(rewritten(&["10.1.0.0/16"], "10.0.0.9", &[("x-forwarded-for", "a")]), OWN);
    }

    #[test]
    fn a_trusted_proxy_is_believed_and_added() {
        let sent = [("x-forwarded-for", "1.2.3.4"), ("x-forwarded-user", "u")];
        for trusted in ["10.0.0.9", "10.0.0.0/8", "0.0.0.0/0"] {
            let lines = rewritten(&[trusted], "::ffff:10.0.0.9", &sent);
            let expected = [
                "x-forwarded-for: 1.2.3.4, 10.0.0.9",
                "x-forwarded-host: gw:1",
                "x-forwarded-proto: http",
                "x-forwarded-user: u",
            ];
            assert_eq!(lines, expected, "{trusted}");
        }
    }

    #[test]
    fn a_network_is_an_address_and_bits() {
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/", "proxy.example", "::/129", "10.0.0.1/x"] {
            assert!(TrustedProxies::parse(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
