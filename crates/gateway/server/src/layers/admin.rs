//! Administration: access to metrics, build information and reloads.
//!
//! It requires the configured key. Without a key it is closed, unless it has an address of its own
//! (or `local` is set): then it is open to clients on this machine, unless a request shows signs of
//! a proxy, or of a browser with a page of another site. Such a page can point its own host name to
//! this machine (DNS rebinding), so the host must be an address or `localhost`. At the clients'
//! address the peer address proves nothing, because a proxy on this machine forwards requests of
//! others.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use hyper::Request;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::uri::Authority;
use serde::Deserialize;
use smart_default::SmartDefault;
use subtle::ConstantTimeEq as _;

use crate::config::secret::Secret;
use crate::http::error_response::ErrorResponse;
use crate::http::header_list::{HeaderList, headers_of};
use crate::layers::auth::{bearer, sha256};

/// Administration: who may see the build and reload the configuration, and where.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AdminSpec {
    /// Whether `/admin/build` and `/admin/reload` are served.
    #[default(true)]
    pub enabled: bool,
    /// Key for administration, in `authorization: Bearer`; `${NAME}` for an environment variable.
    /// Without a key and without an address of its own administration is closed.
    pub key: Option<Secret>,
    /// Without a key, open to clients on this machine, also at the clients' address. A proxy on
    /// this machine may forward requests of others as its own: for tests only.
    pub local: bool,
    /// An address of its own, such as `127.0.0.1:9901`, with its own thread: health, metrics and
    /// administration respond there even if the workers are busy or all `server.connections` are
    /// taken. Metrics and administration are then served only there.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub listen: Option<SocketAddr>,
}

/// The role of a worker's listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerRole {
    /// Clients, at the gateway's address.
    Clients,
    /// Operators, at the administration's address.
    Administration,
}

static FOR_ANOTHER: HeaderList = LazyLock::new(|| headers_of("for-another"));

/// Controls access to the administration. Only the digest of the key is stored.
#[derive(Debug)]
pub(crate) struct AdminGate {
    key: Option<[u8; 32]>,
    /// Whether clients on this machine need no key.
    local: Local,
}

/// Whether clients on this machine need no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Local {
    Nowhere,
    /// Only at the administration's address.
    Apart,
    Everywhere,
}

impl AdminGate {
    /// # Errors
    /// A message as [`Secret::reveal`].
    pub(crate) fn new(spec: &AdminSpec) -> Result<Self, String> {
        let key = spec.key.as_ref().map(Secret::reveal).transpose();
        let key = key.map_err(|problem| format!("admin: {problem}"))?;
        let local = match (spec.local, spec.listen) {
            (true, _) => Local::Everywhere,
            (false, Some(_)) => Local::Apart,
            (false, None) => Local::Nowhere,
        };
        Ok(Self { key: key.map(|key| sha256(key.as_bytes())), local })
    }

    /// Checks whether a client may use the administration.
    ///
    /// # Errors
    /// The answer to a client that may not.
    pub(crate) fn admit<B>(
        &self,
        client: IpAddr,
        serves: ListenerRole,
        request: &Request<B>,
    ) -> Result<(), ErrorResponse> {
        let headers = request.headers();
        let Some(key) = &self.key else {
            let open = match self.local {
                Local::Nowhere => false,
                Local::Apart => serves == ListenerRole::Administration,
                Local::Everywhere => true,
            };
            if !open {
                let message = "administration is closed: give it a key (`admin.key`) or an address of its own (`admin.listen`)";
                return Err(ErrorResponse::forbidden(message));
            }
            let for_another = FOR_ANOTHER.iter().any(|name| headers.contains_key(name));
            let is_local = client.to_canonical().is_loopback();
            return if is_local && !for_another && names_this_machine(request) {
                Ok(())
            } else {
                let message = "only clients on the gateway's own machine may use administration without a key, by its loopback address";
                Err(ErrorResponse::forbidden(message))
            };
        };
        let sent = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        match sent {
            None => Err(ErrorResponse::auth_required("send the administration key")),
            Some(sent) if sha256(sent).ct_eq(key).into() => Ok(()),
            Some(_) => Err(ErrorResponse::auth_failed("the administration key is wrong")),
        }
    }
}

/// Whether the host is an address or `localhost`. Only HTTP/1.0, which browsers do not speak, may
/// omit it.
fn names_this_machine<B>(request: &Request<B>) -> bool {
    let named = request.headers().get(HOST).map(|host| host.to_str().unwrap_or_default());
    let Some(host) = request.uri().authority().map(Authority::as_str).or(named) else {
        return true;
    };
    let name =
        host.rsplit_once(':').filter(|_| !host.ends_with(']')).map_or(host, |(name, _)| name);
    let is_ipv6 = name.starts_with('[');
    is_ipv6 || name.parse::<Ipv4Addr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;
    use crate::assembly::spec::Spec;

    fn gate(admin: &str) -> AdminGate {
        AdminGate::new(&Spec::from_yaml(&format!("admin: {admin}")).unwrap().admin).unwrap()
    }

    fn status(gate: &AdminGate, client: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let mut request = Request::new(());
        *request.headers_mut() = headers
            .iter()
            .map(|(name, value): &(&'static str, &str)| {
                (HeaderName::from_static(name), value.parse().unwrap())
            })
            .collect();
        gate.admit(client.parse().unwrap(), ListenerRole::Administration, &request)
            .err()
            .map(|error| error.status.as_u16())
    }

    #[test]
    fn without_a_key_and_an_address_of_its_own_nobody_is_admitted() {
        for admin in ["{}", "{enabled: true}"] {
            assert_eq!(status(&gate(admin), "127.0.0.1", &[]), Some(403), "{admin}");
        }
        for admin in ["{listen: '127.0.0.1:0'}", "{local: true}"] {
            assert_eq!(status(&gate(admin), "127.0.0.1", &[]), None, "{admin}");
        }
    }

    #[test]
    fn without_a_key_only_this_machine_is_admitted() {
        let gate = gate("{local: true}");
        for (client, admitted) in [
            ("127.0.0.1", true),
            ("127.8.9.10", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("192.168.1.1", false),
            ("::ffff:10.0.0.1", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(status(&gate, client, &[]).is_none(), admitted, "{client}");
        }
    }

    #[test]
    fn a_proxy_or_a_browser_on_this_machine_is_not_admitted() {
        for name in ["x-forwarded-for", "forwarded", "via", "x-real-ip", "origin", "sec-fetch-site"]
        {
            assert_eq!(status(&gate("{local: true}"), "::1", &[(name, "x")]), Some(403), "{name}");
        }
    }

    #[test]
    fn a_host_that_is_a_name_of_somebody_is_not_admitted() {
        for (host, admitted) in [
            ("127.0.0.1:8080", true),
            ("localhost", true),
            ("LOCALHOST:8080", true),
            ("[::1]", true),
            ("[::1]:8080", true),
            ("evil.example:8080", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("gateway", false),
        ] {
            let found = status(&gate("{local: true}"), "127.0.0.1", &[("host", host)]);
            assert_eq!(found.is_none(), admitted, "{host}");
        }
    }

    #[test]
    fn a_key_admits_everybody_who_has_it_and_nobody_else() {
        let gate = gate("{key: sesame}");
        for (headers, expected) in [
            (&[("authorization", "Bearer sesame")][..], None),
            (&[("authorization", "Bearer sesamE")], Some(403)),
            (&[("authorization", "sesame")], Some(401)),
            (&[], Some(401)),
        ] {
            for client in ["127.0.0.1", "10.0.0.1"] {
                assert_eq!(status(&gate, client, headers), expected, "{client} {headers:?}");
            }
        }
    }
}
