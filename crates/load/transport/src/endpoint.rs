//! The address of a target.

use std::fmt;

/// Host and port of a target. An IPv6 address is written without brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

/// Why a text is not `HOST` or `HOST:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// What follows the colon is no port.
    #[error("the port is not a number")]
    Port,
    /// Nothing is left of the host.
    #[error("the URL has no host")]
    Host,
}

impl Endpoint {
    /// Reads the part of a URL between the user and the path: `HOST` or `HOST:PORT`, an IPv6
    /// address in brackets.
    ///
    /// # Errors
    /// Which part is wrong.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, EndpointError> {
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an IPv6 address stand in brackets.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| EndpointError::Port)?)
            }
            _ => (text, default_port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            Err(EndpointError::Host)
        } else {
            Ok(Self::new(host.to_owned(), port))
        }
    }

    /// A host name or address, and a port.
    pub const fn new(host: String, port: u16) -> Self {
        Self { host, port }
    }

    /// The host name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// As `host:port`, an IPv6 address in brackets.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_host_and_perhaps_a_port() {
        for (text, shown) in [
            ("h", Ok("h:80")),
            ("h:9", Ok("h:9")),
            ("[::1]", Ok("[::1]:80")),
            ("[::1]:9", Ok("[::1]:9")),
            ("", Err(EndpointError::Host)),
            (":9", Err(EndpointError::Host)),
            ("h:x", Err(EndpointError::Port)),
            ("h:70000", Err(EndpointError::Port)),
        ] {
            let read = Endpoint::parse(text, 80).map(|endpoint| endpoint.to_string());
            assert_eq!(read, shown.map(str::to_owned), "{text}");
        }
    }
}
