//! What is under test: a gateway of the user's, or one of ours in a process of its own.

use crate::child::Child;

/// Where a load goes, and whose CPU time is of interest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    /// Base URL.
    pub(crate) base: String,
    pub(crate) key: Option<String>,
    /// Headers of every request, `NAME: VALUE`.
    pub(crate) headers: Vec<String>,
    pub(crate) model: String,
    pub(crate) insecure: bool,
    /// Process ids; 0 where there is none of ours.
    pub(crate) gateway: i32,
    pub(crate) provider: i32,
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

    /// The provider itself as the subject: the direct way.
    pub(crate) fn subject(&self) -> Subject {
        Subject {
            base: format!("http://{}", self.address()),
            model: MODEL.to_owned(),
            provider: self.0.pid().as_raw(),
            ..Subject::default()
        }
    }
}

/// The model of the mock that answers at once.
pub(crate) const MODEL: &str = "mock-fast";

/// A gateway under test.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) subject: Subject,
    child: Option<Child>,
}

impl Gateway {
    /// One of ours.
    pub(crate) fn ours(child: Child, provider: Option<&Provider>) -> Self {
        let subject = Subject {
            base: format!("http://{}", child.address()),
            model: MODEL.to_owned(),
            gateway: child.pid().as_raw(),
            provider: provider.map_or(0, |provider| provider.0.pid().as_raw()),
            ..Subject::default()
        };
        Self { subject, child: Some(child) }
    }

    /// One of the user's.
    pub(crate) const fn theirs(subject: Subject) -> Self {
        Self { subject, child: None }
    }

    /// The same over TLS, with a certificate that nobody vouches for.
    pub(crate) fn https(&self) -> Subject {
        let base = self.subject.base.replacen("http://", "https://", 1);
        Subject { base, insecure: true, ..self.subject.clone() }
    }

    /// `HOST:PORT`, where it is one of ours.
    pub(crate) fn address(&self) -> Option<&str> {
        self.child.as_ref().map(Child::address)
    }

    /// Largest resident memory so far, in bytes.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let pid = self.child.as_ref()?.pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    }
}
