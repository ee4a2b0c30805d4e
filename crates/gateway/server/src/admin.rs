//! Administration: who may see the metrics and the build, and reload the configuration.
//!
//! It is open to those who send its key. Without a configured key it is open to clients on this
//! machine, as long as nothing shows that they speak for somebody else: a proxy or a browser.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, FORWARDED, HeaderName, ORIGIN, VIA};
use subtle::ConstantTimeEq as _;

use crate::auth::{bearer, sha256};
use crate::error_response::ErrorResponse;
use crate::spec::{AdminSpec, Secret};

/// Headers of requests that a proxy or a browser sends for somebody else.
static FOR_ANOTHER: [HeaderName; 6] = [
    FORWARDED,
    VIA,
    ORIGIN,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("sec-fetch-site"),
];

/// Decides who may administrate. Only the digest of the key is kept.
#[derive(Debug)]
pub(crate) struct AdminGate {
    key: Option<[u8; 32]>,
}

impl AdminGate {
    /// # Errors
    /// A message about a variable that is not set, or an empty key.
    pub(crate) fn new(spec: &AdminSpec) -> Result<Self, String> {
        let key = spec.key.as_ref().map(Secret::reveal).transpose();
        let key = key.map_err(|name| {
            format!("admin: the environment variable `{name}` for its key is not set")
        })?;
        if key.as_ref().is_some_and(String::is_empty) {
            return Err("admin: the key is empty".to_owned());
        }
        Ok(Self { key: key.map(|key| sha256(key.as_bytes())) })
    }

    /// Whether a client may administrate.
    ///
    /// # Errors
    /// The answer to the client when it may not.
    pub(crate) fn admit(&self, client: IpAddr, headers: &HeaderMap) -> Result<(), ErrorResponse> {
        let Some(key) = &self.key else {
            let speaks_for_itself = !FOR_ANOTHER.iter().any(|name| headers.contains_key(name));
            return if client.to_canonical().is_loopback() && speaks_for_itself {
                Ok(())
            } else {
                Err(ErrorResponse::forbidden("only clients on the gateway's own machine may"))
            };
        };
        let sent = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        match sent {
            None => Err(ErrorResponse::auth_required("send the key of the administration")),
            Some(sent) if sha256(sent).ct_eq(key).into() => Ok(()),
            Some(_) => Err(ErrorResponse::auth_failed("the key is not that of the administration")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    fn gate(admin: &str) -> AdminGate {
        AdminGate::new(&Spec::from_yaml(&format!("admin: {admin}")).unwrap().admin).unwrap()
    }

    fn status(gate: &AdminGate, client: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        let headers: HeaderMap = headers.iter().map(pair).collect();
        gate.admit(client.parse().unwrap(), &headers).err().map(|error| error.status.as_u16())
    }

    #[test]
    fn without_a_key_only_this_machine_is_admitted() {
        let gate = gate("true");
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
            assert_eq!(status(&gate("true"), "::1", &[(name, "x")]), Some(403), "{name}");
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
