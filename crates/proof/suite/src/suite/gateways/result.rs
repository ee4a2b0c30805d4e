//! The result of the gateways suite, as `suite.json` holds it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fidelity::Fidelity;
use super::figures::{Row, SIZE};

/// The result, besides comparisons and searches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewaysResult {
    /// Seed of the orders.
    pub(super) seed: u64,
    /// The order of the gateways in each round.
    pub(super) orders: Vec<Vec<String>>,
    /// The loads in a line.
    #[serde(default)]
    pub(super) loads: String,
    pub(super) gateways: Vec<GatewayFacts>,
    pub(super) rows: Vec<Row>,
}

impl GatewaysResult {
    /// Whether nothing was measured: the sizes of gateways are known without.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.name == SIZE)
            && self.gateways.iter().all(|gateway| gateway.fidelity.cells.is_empty())
    }
}

/// Other facts of the result of a gateway, besides its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GatewayFacts {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) install: String,
    pub(super) start: String,
    /// SHA-256 of each configuration file.
    pub(super) digests: BTreeMap<String, String>,
    /// Why it was not measured, or not to the end.
    pub(super) error: Option<String>,
    pub(super) fidelity: Fidelity,
}
