//! Headers in which proxies name their client.
//!
//! Clients can forge them, so the gateway removes them unless a trusted proxy (`trusted_proxies`)
//! sent them, and then adds its own.

use std::net::IpAddr;
use std::sync::LazyLock;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use ipnet::IpNet;

use crate::http::header_list::{HeaderList, headers_of};
use crate::http::normal_form::dashed;

/// The client's address.
const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Sorted by length, then by name.
static CLAIMS: HeaderList = LazyLock::new(|| headers_of("claims"));

/// Addresses of proxies whose headers are trusted.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Reads `ADDRESS` and `ADDRESS/BITS`.
    ///
    /// # Errors
    /// A message about an invalid entry.
    pub(crate) fn parse(written: &[String]) -> Result<Self, String> {
        let networks = written.iter().map(|text| {
            let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            network.map_err(|_| format!("trusted_proxies: `{text}` is not ADDRESS or ADDRESS/BITS"))
        });
        networks.collect::<Result<_, _>>().map(Self)
    }

    /// The client of a request from `peer`: the last address of `x-forwarded-for` that is not a
    /// trusted proxy. Each proxy appends the address of its peer, so earlier entries may be forged.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        if !self.contains(client) {
            return client;
        }
        let lines = headers.get_all(FOR).iter().rev();
        let mut hops = lines.flat_map(|line| line.to_str().unwrap_or("").rsplit(','));
        while self.contains(client)
            && let Some(before) = hops.next().and_then(|hop| hop.trim().parse().ok())
        {
            client = before;
        }
        client
    }

    fn contains(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.0.iter().any(|network| network.contains(&client))
    }
}

/// The other end of a connection: the client, or a proxy in front of the gateway.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// The address as it is forwarded.
    text: Option<HeaderValue>,
    /// The protocol of the connection.
    protocol: &'static str,
}

impl Peer {
    pub(crate) fn new(address: IpAddr, is_tls: bool) -> Self {
        let protocol = if is_tls { "https" } else { "http" };
        let text = HeaderValue::try_from(address.to_canonical().to_string()).ok();
        Self { address, text, protocol }
    }
}

/// Replaces the client's forwarding headers with the gateway's. `host` is the requested host. The
/// headers of a trusted proxy stay, with its own address appended.
pub(crate) fn rewrite(
    headers: &mut HeaderMap,
    trusted: &TrustedProxies,
    peer: &Peer,
    host: Option<HeaderValue>,
) {
    let mut hops = peer.text.clone();
    if trusted.contains(peer.address) {
        let all = headers.get_all(FOR).iter().chain(&peer.text);
        let all: Vec<_> = all.filter_map(|value| value.to_str().ok()).collect();
        hops = HeaderValue::try_from(all.join(", ")).ok();
    } else {
        let claimed: Vec<_> = headers.keys().filter(|name| is_claim(name)).cloned().collect();
        for name in claimed {
            headers.remove(name);
        }
    }
    headers.entry(PROTO).or_insert(HeaderValue::from_static(peer.protocol));
    if let Some(host) = host {
        headers.entry(HOST).or_insert(host);
    }
    if let Some(hops) = hops {
        headers.insert(FOR, hops);
    }
}

fn is_claim(name: &HeaderName) -> bool {
    let dashed = dashed(name.as_str());
    let text = dashed.as_deref().unwrap_or(name.as_str());
    text.starts_with("x-forwarded-")
        || CLAIMS.binary_search_by_key(&by_length(text), |name| by_length(name.as_str())).is_ok()
}

/// The order of the claims, which compares the letters of few names.
const fn by_length(name: &str) -> (usize, &str) {
    (name.len(), name)
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
        let peer = Peer::new(client.parse().unwrap(), false);
        rewrite(&mut headers, &trusted, &peer, Some(HeaderValue::from_static("gw:1")));
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

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_trusted_proxy() {
        let trusted = ["127.0.0.1", "10.0.0.0/8"].map(str::to_owned);
        let trusted = TrustedProxies::parse(&trusted).unwrap();
        for (peer, lines, client) in [
            ("192.0.2.1", &["9.9.9.9"][..], "192.0.2.1"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("::ffff:127.0.0.1", &["203.0.113.7"], "203.0.113.7"),
            ("127.0.0.1", &["9.9.9.9, 203.0.113.7"], "203.0.113.7"),
            ("127.0.0.1", &["9.9.9.9, 203.0.113.7, 10.0.0.5"], "203.0.113.7"),
            ("127.0.0.1", &["9.9.9.9", "203.0.113.7"], "203.0.113.7"),
            ("127.0.0.1", &["10.0.0.6, 10.0.0.5"], "10.0.0.6"),
            ("127.0.0.1", &["9.9.9.9, x"], "127.0.0.1"),
            ("127.0.0.1", &["2001:db8::1"], "2001:db8::1"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FOR, HeaderValue::from_static(line));
            }
            let found = trusted.client(peer.parse().unwrap(), &headers);
            assert_eq!(found, client.parse::<IpAddr>().unwrap(), "{peer} {lines:?}");
        }
    }
}
