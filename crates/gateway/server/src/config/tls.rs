//! TLS towards clients.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::error::GatewayError;
use crate::config::file;
use crate::config::server::TlsSpec;

/// TLS 1.2 and 1.3 with the current certificate and key of the files; HTTP/2 is preferred if the
/// client supports it.
pub(crate) fn config(spec: &TlsSpec) -> Result<Arc<ServerConfig>, GatewayError> {
    let chain = CertificateDer::pem_reader_iter(open(&spec.cert)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| invalid(&spec.cert, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_reader(open(&spec.key)?)
        .map_err(|error| invalid(&spec.key, error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| invalid(&spec.cert, error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn invalid(path: &Path, reason: String) -> GatewayError {
    GatewayError::File { path: path.to_owned(), source: io::Error::other(reason) }
}

fn open(path: &Path) -> Result<File, GatewayError> {
    file::open(path).map_err(|source| GatewayError::File { path: path.to_owned(), source })
}
