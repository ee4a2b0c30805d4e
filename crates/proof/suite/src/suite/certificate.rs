//! A temporary certificate for the reference gateway.

use std::io;

use crate::error::SuiteError;
use crate::runner::SuiteRunner;

/// Makes a self-signed certificate for the loopback address, and returns the gateway's setting for
/// it.
pub(super) fn make(runner: &SuiteRunner<'_>) -> Result<String, SuiteError> {
    let made = rcgen::generate_simple_self_signed(["localhost", "127.0.0.1"].map(str::to_owned));
    let made = made.map_err(io::Error::other).map_err(SuiteError::system("write tls-cert.pem"))?;
    let cert = runner.write("tls-cert.pem", made.cert.pem().as_bytes())?;
    let key = runner.write("tls-key.pem", made.signing_key.serialize_pem().as_bytes())?;
    // JSON is YAML, and escapes any path.
    Ok(format!("tls={}", serde_json::json!({"cert": cert, "key": key})))
}
