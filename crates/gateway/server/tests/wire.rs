//! What comes over the wire: connections that say nothing or nonsense, HTTP/2, TLS, floods, and reloads under load.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::excessive_nesting,
    reason = "tests may fail loudly, and their servers and clients may sleep"
)]

mod wire {
    pub(crate) mod help;

    mod broken;
    mod floods;
    mod http1;
    mod http2;
    mod reload;
    mod tls;
}
