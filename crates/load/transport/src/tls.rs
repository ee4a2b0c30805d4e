//! TLS configuration: trusted roots and session resumption.

mod own_certificate;
mod sentence;
mod session_cache;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    WantsVerifier,
};

use self::own_certificate::RootsAndOwn;
use self::session_cache::SessionCache;
pub(crate) use sentence::sentence;

/// Verification of targets. The default uses the system's roots and full handshakes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// A PEM file with trusted roots, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM files with the client's own certificate chain and its key, for targets that ask for one.
    pub client: Option<ClientCertificate>,
    /// Accept any certificate.
    pub insecure: bool,
    /// Resume sessions where the target offers it. Each [`TlsSettings::client_config`] has one
    /// session cache; [`with_own_session_cache`] makes copies with separate ones.
    pub resumption: bool,
}

/// A certificate of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// PEM file with the certificate, and those up to its root.
    pub cert_file: PathBuf,
    /// PEM file with the private key; may be the same file.
    pub key_file: PathBuf,
}

/// An error in the TLS configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The PEM file cannot be read or holds no certificate.
    #[error(
        "cannot read certificates from `{file}`: {cause}; it must be a PEM file with at least one CERTIFICATE"
    )]
    CaFile {
        /// The file.
        file: PathBuf,
        /// The reason.
        cause: String,
    },
    /// The client's certificate or key cannot be read.
    #[error("cannot read the client's certificate from `{file}`: {cause}; {fix}")]
    ClientFile {
        /// The file.
        file: PathBuf,
        /// The reason.
        cause: String,
        /// What the file must hold.
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
        let refuse = |cause: String| {
            let fix = "it must be a PEM file with at least one CERTIFICATE";
            TlsError::ClientFile { file: self.cert_file.clone(), cause, fix }
        };
        let chain = CertificateDer::pem_file_iter(&self.cert_file)
            .map_err(|error| refuse(error.to_string()))?
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| refuse(error.to_string()))?;
        if chain.is_empty() { Err(refuse("no certificate in it".to_owned())) } else { Ok(chain) }
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
    /// The configuration of a client for one version of HTTP, named as in ALPN: `http/1.1` or `h2`.
    ///
    /// # Errors
    /// [`TlsError`] if roots are missing or unreadable.
    pub fn client_config(&self, alpn: &str) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = if self.insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
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

    /// Trusts the system's roots, or the certificates of the file: as roots, and as those of
    /// servers themselves.
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
        let certificates =
            CertificateDer::pem_file_iter(file).map_err(|error| invalid(error.to_string()))?;
        let certificates = certificates
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(error.to_string()))?;
        if certificates.is_empty() {
            return Err(invalid("no certificate in it".to_owned()));
        }
        let verifier = RootsAndOwn::new(certificates, provider).map_err(invalid)?;
        Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
    }
}

/// The same configuration with a separate session cache, so that workers share nothing while they
/// run. `resumption` as in [`TlsSettings`].
pub fn with_own_session_cache(config: &ClientConfig, resumption: bool) -> Arc<ClientConfig> {
    let mut own = config.clone();
    if resumption {
        own.resumption = SessionCache::resumption();
    }
    Arc::new(own)
}

/// Checks signatures but not the certificate chain: for `--insecure`, which every report shows.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
