//! A tunnel through a SOCKS proxy, version 5 (RFC 1928, RFC 1929).

use tokio::net::TcpStream;
use tokio_socks::Error;
use tokio_socks::tcp::Socks5Stream;

use super::refused;
use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// Opens a tunnel; the proxy resolves the name.
pub(super) async fn open(
    tcp: TcpStream,
    to: &Endpoint,
    credentials: Option<&(String, String)>,
) -> Result<TcpStream, Failure> {
    let place = (to.host(), to.port());
    let opened = match credentials {
        None => Socks5Stream::connect_with_socket(tcp, place).await,
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(tcp, place, user, password).await
        }
    };
    opened.map(Socks5Stream::into_inner).map_err(|error| match error {
        Error::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Failure::connecting(&error)
        }
        Error::PasswordAuthFailure(_) => {
            refused("the proxy rejected the user and password of --proxy".to_owned())
        }
        error => refused(format!("no connection to {to} through the SOCKS 5 proxy: {error}")),
    })
}
