//! The reference gateway: a small, fast and correct gateway for LLM and API traffic.
//!
//! It is the default system under test of a load generator that it knows nothing of, and the standard
//! whose true costs can be planted. Layers are switched on one by one by the sections of its
//! configuration, see [`Spec`].
//!
//! ```no_run
//! let spec = plimsoll_gateway_server::Spec::from_yaml("listen: 127.0.0.1:0\nmetrics: {}")?;
//! let gateway = plimsoll_gateway_server::Gateway::spawn(&spec)?;
//! println!("http://{}/health", gateway.addr());
//! # Ok::<(), plimsoll_gateway_server::GatewayError>(())
//! ```

mod ask;
mod auth;
mod body;
mod books;
mod budget;
mod clock;
mod config;
mod connection;
mod error;
mod exchange;
mod fault;
mod framing;
mod gateway;
mod guard;
mod limits;
mod llm;
mod meters;
mod persona;
mod refusal;
mod relay;
mod router;
mod scrub;
mod service;
mod settings;
mod shared;
pub mod spec;
mod tenant;
mod tls;
mod unit;
mod upstream;
mod worker;

pub use error::GatewayError;
pub use gateway::Gateway;
pub use persona::{PERSONAS, Persona};
pub use spec::Spec;
pub use unit::{Size, Span};
