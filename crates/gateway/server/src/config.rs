//! Values of the configuration: how they are written, and what each section holds. A layer has its
//! section in its own file.

pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod place;
pub(crate) mod route;
pub(crate) mod secret;
pub(crate) mod server;
pub(crate) mod tls;
pub(crate) mod units;
pub(crate) mod upstream;
pub(crate) mod yaml_error;
