//! Configuration keys of the administration and the metrics.

use std::fmt;
use std::net::SocketAddr;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::secret::Secret;

/// Administration: who may see the build and reload the configuration, and where.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema), schemars(default))]
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

/// The section, without its short form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Section {
    enabled: bool,
    key: Option<Secret>,
    local: bool,
    listen: Option<SocketAddr>,
}

impl Default for Section {
    fn default() -> Self {
        let AdminSpec { enabled, key, local, listen } = AdminSpec::default();
        Self { enabled, key, local, listen }
    }
}

impl<'de> Deserialize<'de> for AdminSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SwitchOrSection)
    }
}

struct SwitchOrSection;

impl<'de> Visitor<'de> for SwitchOrSection {
    type Value = AdminSpec;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("true, false or a section")
    }

    fn visit_bool<E: Error>(self, enabled: bool) -> Result<AdminSpec, E> {
        Ok(AdminSpec { enabled, ..AdminSpec::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AdminSpec, A::Error> {
        let section = Section::deserialize(MapAccessDeserializer::new(map))?;
        let Section { enabled, key, local, listen } = section;
        Ok(AdminSpec { enabled, key, local, listen })
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
