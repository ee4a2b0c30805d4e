//! Sends requests: DNS, TCP, TLS, HTTP connections and pools. Every read and write is time-stamped
//! here, reads by the kernel if it supports that ([`RxClock`]).
//!
//! - [`Connector`]: opens [`Connection`]s and times each phase
//! - [`Connection::exchange`]: sends one request and passes its response to a [`ResponseHandler`]
//! - [`http1`], [`http2`], [`websocket`]: the wire formats, without I/O, so that they can be tested
//!   and fuzzed alone
//! - [`websocket::WebSocket`]: a connection of one conversation, opened by a handshake
//! - [`Pool`]: idle connections, most recently used first, and the queue for connections; generic
//!   over the [`Opener`], so that its policy is tested in virtual time
//!
//! A misbehaving target is data: every such case ends in a [`Failure`] with its
//! [`plimsoll_measure::ErrorClass`]. This crate has no notion of JSON, LLMs, scenarios or
//! histograms.
//!
//! In the steady state an exchange needs two system calls (one vectored write, one read) and no
//! allocation. The read buffers belong to the worker; a waiting connection has none.

mod addresses;
mod buffers;
pub mod connect;
pub mod connection;
pub mod failure;
pub mod http1;
pub mod http2;
mod look_times;
mod message;
pub mod pool;
mod reach;
mod rx_timestamp;
mod send_queue;
mod single_request;
mod socket;
pub mod tls;
pub mod websocket;

pub use buffers::{EncodedRequest, ReadBuffers};
pub use connect::{Connector, InvalidHost, SocketOptions};
pub use connection::{Connection, Opened};
pub use failure::Failure;
pub use look_times::{BEAT, LookTimes};
pub use message::{Request, RequestHead, RequestHeadError, ResponseHandler, ResponseHead};
pub use pool::{Acquired, Adds, Demand, Lease, Opener, Pool, PoolLimits, Poolable, TargetOpener};
pub use reach::{ConnectTo, Endpoint, EndpointError, Proxy, ProxyProtocol, Reach};
pub use rustls::ClientConfig as TlsClientConfig;
pub use rx_timestamp::{ReadCounts, RxClock, RxTime};
pub use send_queue::SendQueue;
pub use single_request::{SingleClient, SingleConnection, SingleRequest, SingleResponse};
pub use tls::{ClientCertificate, TlsError, TlsSettings, with_own_session_cache};
