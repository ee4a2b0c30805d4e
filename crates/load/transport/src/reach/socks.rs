//! A tunnel through a SOCKS proxy, version 5 (RFC 1928, RFC 1929).

use std::net::IpAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::refused;
use crate::endpoint::Endpoint;
use crate::failure::Failure;

const VERSION: u8 = 5;
const NO_CREDENTIALS: u8 = 0;
const PASSWORD: u8 = 2;

/// Opens a tunnel; the proxy resolves the name.
pub(super) async fn open(
    mut tcp: TcpStream,
    to: &Endpoint,
    credentials: Option<&(String, String)>,
) -> Result<TcpStream, Failure> {
    log_in(&mut tcp, credentials).await?;
    write(&mut tcp, &connect_to(to)?).await?;
    let [_, reply, _, kind] = read(&mut tcp).await?;
    if reply != 0 {
        return Err(refused(format!("the proxy cannot connect to {to}: {}", reason(reply))));
    }
    // Skips the address from which the proxy connects.
    let rest = match kind {
        1 => 4,
        4 => 16,
        _ => {
            let [length] = read(&mut tcp).await?;
            usize::from(length)
        }
    };
    let mut address = vec![0; rest + 2];
    tcp.read_exact(&mut address).await.map_err(|error| Failure::connecting(&error))?;
    Ok(tcp)
}

/// Negotiates the authentication method, and authenticates.
async fn log_in(
    tcp: &mut TcpStream,
    credentials: Option<&(String, String)>,
) -> Result<(), Failure> {
    let methods: &[u8] = if credentials.is_some() {
        &[VERSION, 2, NO_CREDENTIALS, PASSWORD]
    } else {
        &[VERSION, 1, 0]
    };
    write(tcp, methods).await?;
    let [version, method] = read(tcp).await?;
    if version != VERSION {
        return Err(refused(format!(
            "the proxy answers with version {version}; is it a SOCKS 5 proxy?"
        )));
    }
    match (method, credentials) {
        (NO_CREDENTIALS, _) => {}
        (PASSWORD, Some((user, password))) => {
            let mut own = vec![1];
            push(&mut own, user)?;
            push(&mut own, password)?;
            write(tcp, &own).await?;
            let [_, status] = read(tcp).await?;
            if status != 0 {
                return Err(refused(
                    "the proxy does not accept the user and password of --proxy".to_owned(),
                ));
            }
        }
        _ => {
            return Err(refused(
                "the proxy wants credentials; write USER:PASSWORD@ before the host of --proxy"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

/// The request for a connection.
fn connect_to(to: &Endpoint) -> Result<Vec<u8>, Failure> {
    let mut request = vec![VERSION, 1, 0];
    match to.host().parse() {
        Ok(IpAddr::V4(ip)) => {
            request.push(1);
            request.extend(ip.octets());
        }
        Ok(IpAddr::V6(ip)) => {
            request.push(4);
            request.extend(ip.octets());
        }
        Err(_) => {
            request.push(3);
            push(&mut request, to.host())?;
        }
    }
    request.extend(to.port().to_be_bytes());
    Ok(request)
}

async fn write(tcp: &mut TcpStream, bytes: &[u8]) -> Result<(), Failure> {
    tcp.write_all(bytes).await.map_err(|error| Failure::connecting(&error))
}

async fn read<const N: usize>(tcp: &mut TcpStream) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    tcp.read_exact(&mut bytes).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => refused(
            "the proxy closed instead of opening a tunnel; is it a SOCKS 5 proxy?".to_owned(),
        ),
        _ => Failure::connecting(&error),
    })?;
    Ok(bytes)
}

fn push(out: &mut Vec<u8>, text: &str) -> Result<(), Failure> {
    let length = u8::try_from(text.len())
        .map_err(|_| refused("a name or password is longer than SOCKS allows".to_owned()))?;
    out.push(length);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

const fn reason(reply: u8) -> &'static str {
    match reply {
        2 => "its rules forbid it",
        3 => "the network is unreachable",
        4 => "the host is unreachable",
        5 => "the connection is refused",
        6 => "it took too long",
        7 => "the command is unsupported",
        8 => "this type of address is unsupported",
        _ => "general failure",
    }
}
