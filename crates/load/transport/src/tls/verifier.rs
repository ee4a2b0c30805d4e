//! Trust in server certificates, other than through the system's roots.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::sentence::CA_AS_SERVER;

/// Checks that the server has the key of its certificate and, if certificates are given, the
/// certificate itself.
#[derive(Debug)]
pub(super) struct Verifier {
    provider: Arc<CryptoProvider>,
    given: Option<Given>,
}

/// Trusts certificates signed by these, and servers that present one of them. `openssl req -x509`
/// makes a CA certificate (`CA:TRUE`), which servers present nevertheless; OpenSSL and curl accept
/// it if it is trusted.
#[derive(Debug)]
struct Given {
    roots: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Trusts any certificate, for `--insecure`, which every report mentions.
    pub(super) const fn of_any(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, given: None }
    }

    /// Trusts these certificates.
    ///
    /// # Errors
    /// The problem with one of them.
    pub(super) fn of(
        trusted: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let roots = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { provider, given: Some(Given { roots, trusted }) })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Given { roots, trusted }) = &self.given else {
            return Ok(ServerCertVerified::assertion());
        };
        match roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // Its dates were checked earlier, and the handshake proves its key.
            Err(Error::InvalidCertificate(error))
                if trusted.iter().any(|own| own == end_entity)
                    && format!("{error:?}").contains(CA_AS_SERVER) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
