//! The reference gateway: a small, fast and correct gateway for LLM and API traffic.
//!
//! It is the default system under test of a load generator with which it shares no code. Faults of
//! known size can be injected, so that measurements of it can be checked. Each layer is enabled by
//! the presence of its section in the configuration, see [`Spec`].
//!
//! ```no_run
//! let spec = plimsoll_gateway_server::Spec::from_yaml("listen: 127.0.0.1:0\nmetrics: {}")?;
//! let gateway = plimsoll_gateway_server::Gateway::spawn(&spec)?;
//! println!("http://{}/health", gateway.addr());
//! # Ok::<(), plimsoll_gateway_server::GatewayError>(())
//! ```

mod admin;
mod agent_layer;
mod agent_route;
mod agent_routes;
mod auth;
mod body_filter;
mod budget;
mod builtin_routes;
mod client_socket;
mod clock;
mod config;
mod config_check;
mod config_error;
mod connection;
mod connection_slot;
mod content;
mod cors;
mod decode;
mod dispatch;
mod document;
mod error;
mod error_response;
mod fault_injection;
mod forward;
mod forwarded;
mod gateway;
mod headers;
mod http2_streams;
mod identify;
mod identity;
mod judge;
mod jwt;
mod llm;
mod llm_info;
mod memory;
mod metrics;
pub mod normal_form;
mod overrides;
mod owners;
mod policy;
mod policy_endpoint;
mod poll_or_spawn;
mod preset;
mod process_metrics;
mod proxy;
mod proxy_body;
mod random_id;
mod rate_limit;
mod request_body;
mod request_context;
mod request_log;
mod respond;
mod response_body;
mod rng;
mod router;
mod scrub;
mod server;
mod smuggling;
pub mod spec;
mod state;
mod store_error;
mod tenant;
mod tls;
mod tool_route;
mod tool_server;
mod tools;
mod turns;
mod units;
mod upstream;
mod websocket;
mod websocket_chat;
mod whole_body;
mod worker;

pub use error::GatewayError;
pub use gateway::Gateway;
pub use preset::{PRESETS, Preset};
pub use request_log::LostRows;
pub use spec::Spec;
pub use units::{ByteSize, HumanDuration};
