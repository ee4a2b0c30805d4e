//! The form of a host.

use std::net::Ipv6Addr;
use std::str;

use super::Refusal;

const INVALID: Refusal =
    Refusal::host("the host is not a name or an address, with or without port");

/// Checks a host: `NAME`, `NAME:PORT`, `[IPV6]` or `[IPV6]:PORT`.
///
/// # Errors
/// It is anything else: empty, with a user name, a path, a list, or other characters than letters,
/// digits, `-`, `.` and `_`.
pub fn host(value: &[u8]) -> Result<(), Refusal> {
    let port = match value {
        [b'[', rest @ ..] => {
            let end = memchr::memchr(b']', rest).ok_or(INVALID)?;
            let text = str::from_utf8(&rest[..end]).map_err(|_| INVALID)?;
            let _: Ipv6Addr = text.parse().map_err(|_| INVALID)?;
            &rest[end + 1..]
        }
        _ => {
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
            let end = value.iter().position(|byte| !is_name(byte)).unwrap_or(value.len());
            if end == 0 || end > 255 || value[0] == b'.' {
                return Err(INVALID);
            }
            &value[end..]
        }
    };
    match port {
        [] => Ok(()),
        [b':', digits @ ..] if is_port(digits) => Ok(()),
        _ => Err(INVALID),
    }
}

fn is_port(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_digit)
        && str::from_utf8(digits).is_ok_and(|text| text.parse::<u16>().is_ok_and(|port| port > 0))
}
