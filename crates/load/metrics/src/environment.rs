//! The machine that the load came from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The generator's machine, as Plimsoll found it. `None` means that it could not be found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Environment {
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Logical CPUs of the machine.
    pub cpu_count: Option<u32>,
    /// CPU time that the control group allows, in CPUs.
    pub cpu_quota: Option<f64>,
    /// The CPUs that this process may run on, like `0-3,8`.
    pub cpu_affinity: Option<String>,
    /// Frequency governor.
    pub cpu_governor: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Operating system and kernel version.
    pub kernel: Option<String>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Limit on open file descriptors, after it was raised.
    pub fd_limit: Option<u64>,
    /// First and last local port for outgoing connections.
    pub port_range: Option<(u16, u16)>,
    /// Speed of the fastest network link, in Mbit/s.
    pub link_mbit: Option<f64>,
    /// Load average of 1, 5 and 15 minutes at the start.
    pub load_average: Option<(f64, f64, f64)>,
    /// Share of CPU time that the hypervisor withheld, shortly before the start.
    pub steal_share: Option<f64>,
    /// Versions of the tool and its parts.
    pub versions: BTreeMap<String, String>,
}
