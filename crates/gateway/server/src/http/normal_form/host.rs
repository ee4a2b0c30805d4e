//! The form of a host.

use std::net::Ipv6Addr;
use std::str;

use super::Refusal;

const INVALID: Refusal =
    Refusal::host("the host is not a name or an address, with or without port");

/// Longest name (RFC 1035, 2.3.4).
const MAX_NAME: usize = 255;

/// Checks a host: `NAME`, `NAME:PORT`, `[IPV6]` or `[IPV6]:PORT`.
///
/// # Errors
/// It has another form: empty, with a user name, a path, a list, or other characters than letters,
/// digits, `-`, `.` and `_`.
pub fn host(value: &[u8]) -> Result<(), Refusal> {
    let port = match value.strip_prefix(b"[") {
        Some(rest) => after_ipv6(rest),
        None => after_name(value),
    };
    match port {
        Some([]) => Ok(()),
        Some([b':', digits @ ..]) if is_port(digits) => Ok(()),
        _ => Err(INVALID),
    }
}

/// The rest after the bracket that closes an address.
fn after_ipv6(rest: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b']', rest)?;
    let _: Ipv6Addr = str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    rest.get(end + 1..)
}

/// The rest after a name or an IPv4 address.
fn after_name(value: &[u8]) -> Option<&[u8]> {
    let end = value.iter().position(
        |byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_'),
    );
    let end = end.unwrap_or(value.len());
    let is_valid = (1..=MAX_NAME).contains(&end) && value[0] != b'.';
    is_valid.then(|| &value[end..])
}

fn is_port(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_digit)
        && str::from_utf8(digits).is_ok_and(|text| text.parse::<u16>().is_ok_and(|port| port > 0))
}
