//! A tunnel through an HTTP proxy (RFC 9110, section 9.3.6).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_measure::ErrorClass;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::refused;
use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// Maximum size of the response head.
const MAX_HEAD: usize = 16 * 1024;

/// Opens a tunnel.
pub(super) async fn open(
    mut tcp: TcpStream,
    to: &Endpoint,
    credentials: Option<&(String, String)>,
) -> Result<TcpStream, Failure> {
    let mut request = format!("CONNECT {to} HTTP/1.1\r\nhost: {to}\r\n");
    if let Some((user, password)) = credentials {
        let basic = BASE64_STANDARD.encode(format!("{user}:{password}"));
        request.extend(["proxy-authorization: Basic ", &basic, "\r\n"]);
    }
    request.push_str("\r\n");
    tcp.write_all(request.as_bytes()).await.map_err(|error| Failure::connecting(&error))?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Reads byte by byte, because the bytes after the head belong to the tunnel.
        let byte = tcp.read_u8().await.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => refused(
                "the proxy closed instead of opening a tunnel; is it an HTTP proxy?".to_owned(),
            ),
            _ => Failure::connecting(&error),
        })?;
        head.push(byte);
        if head.len() > MAX_HEAD {
            return Err(Failure::new(ErrorClass::HeadTooLarge, "the proxy's answer to CONNECT"));
        }
    }
    judge(&head, to)?;
    Ok(tcp)
}

fn judge(head: &[u8], to: &Endpoint) -> Result<(), Failure> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut answer = httparse::Response::new(&mut headers);
    if answer.parse(head).is_err() {
        let start: String = String::from_utf8_lossy(head).chars().take(60).collect();
        return Err(refused(format!(
            "the proxy answers CONNECT with {start:?}, which is not HTTP; is it an HTTP proxy?"
        )));
    }
    let (status, reason) = (answer.code.unwrap_or(0), answer.reason.unwrap_or_default());
    match status {
        200..300 => Ok(()),
        407 => Err(refused(
            "the proxy requires credentials (407); write USER:PASSWORD@ before the host of --proxy"
                .to_owned(),
        )),
        _ => Err(refused(format!(
            "the proxy answers CONNECT {to} with {status} {reason}; check its rules and its log"
        ))),
    }
}
