//! Values of the configuration: their syntax, and the general sections. The section of a layer is
//! in the layer's file.

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
