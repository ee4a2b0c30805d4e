//! TLS configuration: trusted roots and session resumption.

mod sentence;
mod session_cache;
mod verifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

use self::session_cache::SessionCache;
use self::verifier::Verifier;
pub(crate) use sentence::sentence;

/// Verification of targets. By default, it uses the system's roots and full handshakes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// A PEM file with trusted roots, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM files with the client's own certificate chain and its key, for targets that request one.
    pub client: Option<ClientCertificate>,
    /// Accept any certificate.
    pub insecure: bool,
    /// Whether to resume sessions if the target offers it. Each [`TlsSettings::client_config`] has
    /// one session cache; [`with_own_session_cache`] makes copies with separate ones.
    pub resumption: bool,
}

/// A certificate of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// PEM file with the certificate chain.
    pub cert_file: PathBuf,
    /// PEM file with the private key; may be the same file.
    pub key_file: PathBuf,
}

/// An error in the TLS configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The PEM file cannot be read or has no certificate.
    #[error(
        "cannot read certificates from `{file}`: {cause}; it must be a PEM file with at least one CERTIFICATE"
    )]
    CaFile {
        /// Path of the file.
        file: PathBuf,
        /// The reason.
        cause: String,
    },
    /// The client's certificate or key cannot be read.
    #[error("cannot read the client's certificate from `{file}`: {cause}; {fix}")]
    ClientFile {
        /// Path of the file.
        file: PathBuf,
        /// The reason.
        cause: String,
        /// The required content of the file.
        fix: &'static str,
    },
    /// The system has no usable root certificates.
    #[error(
        "this system has no root certificates{0}; install the package `ca-certificates` or give --ca-file"
    )]
    NoRoots(String),
    /// rustls rejects the configuration.
    #[error("TLS cannot be configured: {0}")]
    Config(#[from] rustls::Error),
}

impl ClientCertificate {
    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        certificates(&self.cert_file).map_err(|cause| {
            let fix = "it must be a PEM file with at least one CERTIFICATE";
            TlsError::ClientFile { file: self.cert_file.clone(), cause, fix }
        })
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_file(&self.key_file).map_err(|error| TlsError::ClientFile {
            file: self.key_file.clone(),
            cause: error.to_string(),
            fix: "it must be a PEM file with a PRIVATE KEY without a password",
        })
    }
}

impl TlsSettings {
    /// Creates the configuration of a client for one version of HTTP, named as in ALPN: `http/1.1`
    /// or `h2`.
    ///
    /// # Errors
    /// [`TlsError`] if roots are missing or unreadable.
    pub fn client_config(&self, alpn: &str) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = if self.insecure {
            let verifier = Arc::new(Verifier::of_any(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            self.verifier(builder, provider)?
        };
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some(client) => builder.with_client_auth_cert(client.chain()?, client.key()?)?,
        };
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        config.resumption =
            if self.resumption { SessionCache::resumption() } else { Resumption::disabled() };
        Ok(Arc::new(config))
    }

    /// Creates a verifier that trusts the system's roots, or the certificates of the file: as
    /// roots, and as server certificates.
    fn verifier(
        &self,
        builder: ConfigBuilder<ClientConfig, WantsVerifier>,
        provider: Arc<CryptoProvider>,
    ) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, TlsError> {
        let Some(file) = &self.ca_file else {
            let mut roots = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            let cause = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
            return if roots.is_empty() {
                Err(TlsError::NoRoots(cause))
            } else {
                Ok(builder.with_root_certificates(roots))
            };
        };
        let invalid = |cause: String| TlsError::CaFile { file: file.clone(), cause };
        let trusted = certificates(file).map_err(invalid)?;
        let verifier = Verifier::of(trusted, provider).map_err(invalid)?;
        Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
    }
}

/// The certificates of a PEM file, at least one, or a description of the problem.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| error.to_string())?;
    if read.is_empty() { Err("no certificate in it".to_owned()) } else { Ok(read) }
}

/// A copy of the configuration with a separate session cache, so that workers share nothing while
/// they run. `resumption` as in [`TlsSettings`].
pub fn with_own_session_cache(config: &ClientConfig, resumption: bool) -> Arc<ClientConfig> {
    let mut own = config.clone();
    if resumption {
        own.resumption = SessionCache::resumption();
    }
    Arc::new(own)
}
