//! Servers that show a certificate which is trusted itself.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::sentence::CA_AS_SERVER;

/// Trusts what these certificates have signed, and servers that show one of them. `openssl req
/// -x509` makes a CA's certificate (`CA:TRUE`), which servers show all the same; OpenSSL and curl
/// accept it when it is trusted.
#[derive(Debug)]
pub(super) struct RootsAndOwn {
    roots: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl RootsAndOwn {
    /// Trusts these certificates.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(super) fn new(
        trusted: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let roots = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { roots, trusted })
    }
}

impl ServerCertVerifier for RootsAndOwn {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.roots.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // Its dates have been checked before that, and its key is proven by the handshake.
            Err(Error::InvalidCertificate(error))
                if self.trusted.iter().any(|own| own == end_entity)
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
        self.roots.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.roots.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.roots.supported_verify_schemes()
    }
}
