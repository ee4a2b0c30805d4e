//! The normal form of a query.

use super::Refusal;

/// Checks a query. No rule reads it, so it is forwarded byte for byte.
///
/// # Errors
/// It has a `%` without two hexadecimal digits, an encoded NUL, or characters that must be encoded.
pub fn query(query: &str) -> Result<(), Refusal> {
    let bytes = query.as_bytes();
    if !bytes.iter().all(|byte: &u8| (0x21..0x7f).contains(byte) && *byte != b'#') {
        return Err(Refusal::query("the query has characters that must be percent-encoded"));
    }
    for at in memchr::memchr_iter(b'%', bytes) {
        match bytes.get(at + 1..at + 3) {
            Some(b"00") => return Err(Refusal::query("the query has an encoded NUL")),
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => {}
            _ => {
                let message = "the query has a `%` without two hexadecimal digits";
                return Err(Refusal::query(message));
            }
        }
    }
    Ok(())
}
