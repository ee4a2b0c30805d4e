//! The reference gateway: a small, fast and correct gateway for LLM and API traffic.
//!
//! It is the default system under test of a load generator and shares no code with it. Faults of
//! known size can be injected to check measurements. A layer is enabled by its section in the
//! configuration, see [`Spec`].
//!
//! ```no_run
//! let spec = plimsoll_gateway_server::Spec::from_yaml("listen: 127.0.0.1:0\nmetrics: {}")?;
//! let gateway = plimsoll_gateway_server::Gateway::spawn(&spec)?;
//! println!("http://{}/health", gateway.addr());
//! # Ok::<(), plimsoll_gateway_server::GatewayError>(())
//! ```

#[macro_use]
mod layers;

mod assembly;
mod base;
mod config;
mod exchange;
mod gateway;
mod http;
mod routes;
mod upstream;
mod worker;

pub use assembly::preset::{PRESETS, Preset};
pub use assembly::spec::{self, Spec};
pub use config::error::GatewayError;
pub use config::units::{ByteSize, HumanDuration};
pub use gateway::Gateway;
pub use http::normal_form;
