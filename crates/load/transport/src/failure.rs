//! Failures of connections and exchanges, as data.

use std::{fmt, io};

use plimsoll_measure::ErrorClass;

use crate::tls;

/// Why a connection could not be opened or an exchange could not be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Error class under which it is counted.
    pub class: ErrorClass,
    /// A readable description.
    pub detail: String,
    /// Whether the request was not sent, or the target reported that it did not process it.
    pub is_unprocessed: bool,
}

impl Failure {
    /// Creates a failure with a class and a description.
    pub fn new(class: ErrorClass, detail: impl Into<String>) -> Self {
        Self { class, detail: detail.into(), is_unprocessed: false }
    }

    /// The same for a request that the target has certainly not processed.
    pub(crate) fn unprocessed(class: ErrorClass, detail: impl Into<String>) -> Self {
        Self { is_unprocessed: true, ..Self::new(class, detail) }
    }

    /// An I/O error while a connection was being opened.
    pub(crate) fn connecting(error: &io::Error) -> Self {
        let class = local_class(error).unwrap_or_else(|| match error.kind() {
            io::ErrorKind::ConnectionRefused => ErrorClass::ConnectRefused,
            io::ErrorKind::TimedOut => ErrorClass::ConnectTimeout,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => ErrorClass::Reset,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                ErrorClass::Unreachable
            }
            _ => ErrorClass::LocalIo,
        });
        Self::new(class, error.to_string())
    }

    /// An error of TLS.
    pub(crate) fn from_tls(error: &rustls::Error) -> Self {
        let class = match error {
            rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
                ErrorClass::TlsCertificate
            }
            _ => ErrorClass::TlsHandshake,
        };
        Self::new(class, tls::tls_sentence(error))
    }

    /// An I/O error on an open connection.
    pub(crate) fn on_connection(error: &io::Error) -> Self {
        let class = local_class(error).unwrap_or_else(|| match error.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::TimedOut => ErrorClass::Reset,
            _ => ErrorClass::LocalIo,
        });
        Self::new(class, error.to_string())
    }
}

/// The class of an error that this machine caused.
fn local_class(error: &io::Error) -> Option<ErrorClass> {
    use nix::errno::Errno;
    match Errno::from_raw(error.raw_os_error()?) {
        Errno::EADDRNOTAVAIL | Errno::EADDRINUSE => Some(ErrorClass::PortExhaustion),
        Errno::EMFILE | Errno::ENFILE => Some(ErrorClass::FdExhaustion),
        Errno::ENOBUFS | Errno::ENOMEM => Some(ErrorClass::NoBuffers),
        _ => None,
    }
}

impl From<ErrorClass> for Failure {
    fn from(class: ErrorClass) -> Self {
        Self::new(class, "")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.words())?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_this_machine_and_of_the_target_are_distinguished() {
        for (errno, connecting, open) in [
            (nix::libc::EADDRNOTAVAIL, "gen_port_exhaustion", "gen_port_exhaustion"),
            (nix::libc::EMFILE, "gen_fd_exhaustion", "gen_fd_exhaustion"),
            (nix::libc::ENOBUFS, "gen_no_buffers", "gen_no_buffers"),
            (nix::libc::ECONNREFUSED, "connect_refused", "gen_io"),
            (nix::libc::ETIMEDOUT, "connect_timeout", "reset"),
            (nix::libc::EHOSTUNREACH, "unreachable", "gen_io"),
            (nix::libc::ECONNRESET, "reset", "reset"),
            (nix::libc::EPIPE, "gen_io", "reset"),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(Failure::connecting(&error).class.name(), connecting, "{error}");
            assert_eq!(Failure::on_connection(&error).class.name(), open, "{error}");
        }
    }
}
