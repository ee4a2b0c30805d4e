//! The transport against servers on loopback: raw scripts, hyper, the `h2` crate and rustls.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, and their raw servers may sleep"
)]

mod busy_worker;
mod exchange;
mod http2;
mod http2_scripted;
mod http2_tls;
mod hyper_oracle;
mod rx_timestamp;
mod single_request;
mod support;
mod tls;
mod tls_certificates;
mod websocket;
