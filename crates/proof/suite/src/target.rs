//! The gateway under test: the user's, or the reference gateway in a child process.

use crate::child::Child;

/// The destination of a load, and the processes whose CPU time is measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct SuiteTarget {
    /// Base URL.
    pub(crate) base: String,
    pub(crate) key: Option<String>,
    /// Headers of every request, `NAME: VALUE`.
    pub(crate) headers: Vec<String>,
    pub(crate) model: String,
    pub(crate) insecure: bool,
    /// The gateway's process, if it is a child.
    pub(crate) gateway_pid: Option<u32>,
    /// The provider's process, if it is a child.
    pub(crate) provider_pid: Option<u32>,
}

/// The mock provider.
#[derive(Debug)]
pub(crate) struct Provider(Child);

impl Provider {
    pub(crate) const fn new(child: Child) -> Self {
        Self(child)
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.0.address()
    }

    /// The provider itself as the target: the path without a gateway.
    pub(crate) fn target(&self) -> SuiteTarget {
        SuiteTarget {
            base: format!("http://{}", self.address()),
            model: MODEL.to_owned(),
            provider_pid: pid(&self.0),
            ..SuiteTarget::default()
        }
    }
}

/// The mock's model that answers at once.
pub(crate) const MODEL: &str = "mock-fast";

/// A gateway under test.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) target: SuiteTarget,
    child: Option<Child>,
}

impl Gateway {
    /// The reference gateway.
    pub(crate) fn reference(child: Child, provider: Option<&Provider>) -> Self {
        let target = SuiteTarget {
            base: format!("http://{}", child.address()),
            model: MODEL.to_owned(),
            gateway_pid: pid(&child),
            provider_pid: provider.and_then(|provider| pid(&provider.0)),
            ..SuiteTarget::default()
        };
        Self { target, child: Some(child) }
    }

    /// The user's.
    pub(crate) const fn external(target: SuiteTarget) -> Self {
        Self { target, child: None }
    }

    /// The same over TLS, with a self-signed certificate.
    pub(crate) fn https(&self) -> SuiteTarget {
        let base = self.target.base.replacen("http://", "https://", 1);
        SuiteTarget { base, insecure: true, ..self.target.clone() }
    }

    /// `HOST:PORT` of the reference gateway.
    pub(crate) fn address(&self) -> Option<&str> {
        self.child.as_ref().map(Child::address)
    }

    /// Largest resident memory so far, in bytes.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let pid = self.child.as_ref()?.pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        peak_resident_bytes(&status)
    }
}

/// `VmHWM` of `/proc/PID/status` (proc(5)), in bytes.
fn peak_resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn pid(child: &Child) -> Option<u32> {
    u32::try_from(child.pid().as_raw()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_memory_is_read_from_the_status_of_a_process() {
        let status = "Name:\tplimsoll\nVmPeak:\t  999 kB\nVmHWM:\t   2048 kB\nVmRSS:\t  7 kB\n";
        assert_eq!(peak_resident_bytes(status), Some(2_097_152));
        assert_eq!(peak_resident_bytes("VmRSS:\t7 kB\n"), None);
    }

    #[test]
    fn the_secure_variant_differs_in_its_scheme_alone() {
        let base = "http://127.0.0.1:1/http://".to_owned();
        let target = SuiteTarget { base, model: MODEL.to_owned(), ..SuiteTarget::default() };
        let secure = Gateway::external(target).https();
        assert_eq!(secure.base, "https://127.0.0.1:1/http://");
        assert!(secure.insecure && secure.model == MODEL);
    }
}
