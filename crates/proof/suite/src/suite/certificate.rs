//! A temporary certificate for the reference gateway.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::SuiteError;

/// Makes a self-signed certificate for the loopback address in a folder, and returns the gateway's
/// setting for it.
pub(super) fn make(folder: &Path) -> Result<String, SuiteError> {
    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    let path = folder.join("tls-cert.pem");
    let key = folder.join("tls-key.pem");
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other);
    let written = made.and_then(|made| {
        fs::write(&path, made.cert.pem())?;
        fs::write(&key, made.signing_key.serialize_pem())
    });
    written.map_err(|source| SuiteError::Write { path: path.clone(), source })?;
    // JSON is YAML, and escapes any path.
    let paths = serde_json::json!({"cert": path, "key": key});
    Ok(format!("tls={paths}"))
}
