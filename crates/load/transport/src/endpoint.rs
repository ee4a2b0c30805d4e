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
    /// The text after the colon is not a port number.
    #[error("the port is not a number")]
    Port,
    /// The host is empty.
    #[error("the URL has no host")]
    Host,
}

impl Endpoint {
    /// Parses the part of a URL between the user and the path: `HOST` or `HOST:PORT`, with an IPv6
    /// address in brackets.
    ///
    /// # Errors
    /// The invalid part.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, EndpointError> {
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an IPv6 address are inside brackets.
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

    /// Creates an endpoint from a host name or address, and a port.
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

/// Formats as `host:port`, with an IPv6 address in brackets.
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
