//! Send: DNS, TCP, TLS, HTTP connections and pools. Every read and write is time-stamped here, reads by the
//! kernel where it offers that ([`RxClock`]).
//!
//! - [`Connector`]: opens [`Connection`]s and times each phase of it
//! - [`Connection::exchange`]: one request out, one response in, told to a [`ResponseHandler`] as it happens
//! - [`http1`], [`http2`]: the wire formats, sans-I/O, so that they can be tested and fuzzed by themselves
//! - [`Pool`]: idle connections, most recently used first
//!
//! A target that misbehaves is data: everything it can do ends in a [`Failure`] that names its
//! [`plimsoll_measure::ErrorClass`]. Nothing here knows JSON, LLMs, scenarios or histograms.
//!
//! The steady state of an exchange is two system calls (one vectored write, one read) and no allocation:
//! the read buffer belongs to the worker, and a connection that waits holds none.

pub mod connect;
pub mod connection;
pub mod failure;
pub mod http1;
pub mod http2;
pub mod pool;
mod resolve;
mod socket;
mod stamp;
pub mod tls;

pub use connect::{Connected, Connector, Endpoint, InvalidHost, SocketOptions};
pub use connection::{Connection, EncodedRequest, ReadBuffers, Request, ResponseHandler};
pub use failure::Failure;
pub use http1::{RequestHead, RequestHeadError, ResponseHead};
pub use pool::Pool;
pub use rustls::ClientConfig as TlsClientConfig;
pub use stamp::{RxClock, RxTime};
pub use tls::{TlsError, TlsSettings, with_own_sessions};
