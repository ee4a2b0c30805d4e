//! Configuration keys of the administration and the metrics.

use std::net::SocketAddr;

use serde::Deserialize;

use super::secret::Secret;

/// Administration: who may see the build and reload the configuration, and where.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AdminSpec {
    /// Whether `/admin/build` and `/admin/reload` are served.
    pub enabled: bool,
    /// Key that administration needs, behind `authorization: Bearer`; `${NAME}` for an environment
    /// variable. Without a key and without an address of its own administration is closed.
    pub key: Option<Secret>,
    /// Without a key, open to clients on this machine, at the address of the clients, too. A proxy
    /// on this machine may pass everybody's requests on as its own: for tests only.
    pub local: bool,
    /// An address of its own, like `127.0.0.1:9901`, with a thread of its own: health, metrics and
    /// administration are served there however busy the workers are, also when all
    /// `server.connections` are taken. Metrics and administration are then served only there.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub listen: Option<SocketAddr>,
}

impl Default for AdminSpec {
    fn default() -> Self {
        Self { enabled: true, key: None, local: false, listen: None }
    }
}

/// Prometheus metrics.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MetricsSpec {
    /// Whether everybody may read them. Otherwise only those who may administrate.
    pub open: bool,
}
