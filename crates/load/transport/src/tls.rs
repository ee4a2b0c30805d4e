//! TLS configuration: trusted roots and session resumption.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    WantsClientCert, WebPkiServerVerifier, verify_server_name,
};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error,
    InvalidMessage, NamedGroup, RootCertStore, SignatureScheme, WantsVerifier,
};

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
    Config(#[from] Error),
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

/// Maximum number of tickets per target. A ticket is used once (RFC 8446, appendix C.4), and every
/// connection receives one or two. The cache of rustls keeps 8, so that of 64 connections opened at
/// once most could not resume.
const MAX_TICKETS: usize = 1_024;

/// The session cache of one worker. No other thread uses it, so its lock is never contended.
#[derive(Default)]
struct SessionCache(Mutex<HashMap<ServerName<'static>, Server>>);

/// Sessions of one target.
#[derive(Default)]
struct Server {
    group: Option<NamedGroup>,
    /// TLS 1.2: one session, which can be resumed many times.
    session: Option<Tls12ClientSessionValue>,
    /// TLS 1.3: tickets, the newest last.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl SessionCache {
    /// Resumption with a new, empty cache.
    fn resumption() -> Resumption {
        Resumption::store(Arc::new(Self::default()))
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, Server>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, name: ServerName<'static>, update: impl FnOnce(&mut Server)) {
        update(self.servers().entry(name).or_default());
    }
}

/// Hides the content, because sessions are secrets.
impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCache").finish_non_exhaustive()
    }
}

impl ClientSessionStore for SessionCache {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.update(name, |server| server.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.servers().get(name)?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.update(name, |server| server.session = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.servers().get(name)?.session.clone()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.update(name.clone(), |server| server.session = None);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.update(name, |server| {
            if server.tickets.len() >= MAX_TICKETS {
                server.tickets.pop_front();
            }
            server.tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.servers().get_mut(name)?.tickets.pop_back()
    }
}

/// Checks that the server has the key of its certificate and, if certificates are given, the
/// certificate itself.
#[derive(Debug)]
struct Verifier {
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
    const fn of_any(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, given: None }
    }

    /// Trusts these certificates.
    ///
    /// # Errors
    /// The problem with one of them.
    fn of(
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

// Describes TLS errors in sentences with a remedy.

/// webpki's name for a CA certificate that a server presents as its own.
const CA_AS_SERVER: &str = "CaUsedAsEndEntity";
/// webpki's name for an unreadable certificate, which nearly always has no names.
const OLD_VERSION: &str = "UnsupportedCertVersion";

/// A name and its sentence in each line.
const SENTENCES: &str = include_str!("tls/sentences.txt");

/// The sentence with this name; each `{}` in it is one of the values.
fn say(name: &str, values: &[&str]) -> String {
    let mut rows = SENTENCES.lines().filter_map(|row| row.split_once(": "));
    let text = rows.find(|(known, _)| *known == name).map_or("", |(_, text)| text);
    values.iter().fold(text.to_owned(), |text, value| text.replacen("{}", value, 1))
}

/// The sentence, which ends with a remedy.
pub(crate) fn tls_sentence(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::NoCertificatesPresented => say("no certificate", &[]),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => say("not TLS", &[]),
        Error::PeerIncompatible(reason) => say("nothing in common", &[&format!("{reason:?}")]),
        Error::NoApplicationProtocol => say("version of HTTP not offered", &[]),
        other => say("other error", &[&other.to_string()]),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => say("unknown issuer", &[]),
        CertificateError::ExpiredContext { time, not_after } => {
            say("expired ago", &[&between(*not_after, *time)])
        }
        CertificateError::Expired => say("expired", &[]),
        CertificateError::NotValidYetContext { time, not_before } => {
            say("not yet valid", &[&between(*time, *not_before)])
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            wrong_name(&expected.to_str(), &names)
        }
        // A root with the issuer's name, but another key.
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            say("another key", &[])
        }
        CertificateError::Revoked => say("revoked", &[]),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            say("not of a server", &[])
        }
        other => match format!("{other:?}") {
            text if text.contains(CA_AS_SERVER) => say("CA as server", &[]),
            text if text.contains(OLD_VERSION) => say("old version", &[]),
            text => say("not accepted", &[&text]),
        },
    }
}

fn wrong_name(expected: &str, names: &[String]) -> String {
    let own = if expected.parse::<std::net::IpAddr>().is_ok() { "IP" } else { "DNS" };
    match names {
        [] => say("names no host", &[own, expected]),
        names => say("wrong name", &[&names.join(", "), expected]),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    let name = match alert {
        AlertDescription::CertificateRequired => "client certificate required",
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied => "client certificate rejected",
        AlertDescription::CertificateExpired | AlertDescription::CertificateRevoked => {
            "client certificate expired"
        }
        AlertDescription::HandshakeFailure => "handshake aborted",
        AlertDescription::ProtocolVersion => "older version",
        AlertDescription::UnrecognisedName => "unknown host name",
        AlertDescription::NoApplicationProtocol => "version of HTTP not supported",
        _ => "other alert",
    };
    say(name, &[&format!("{alert:?}")])
}

/// Extracts `localhost` from `DnsName("localhost")`, which is how rustls formats names.
fn bare(name: &str) -> String {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner.trim_end_matches(')'));
    inner.trim_matches('"').to_owned()
}

fn between(from: UnixTime, to: UnixTime) -> String {
    let seconds = to.as_secs().saturating_sub(from.as_secs());
    let (number, unit) = match seconds {
        172_800.. => (seconds / 86_400, "days"),
        7_200.. => (seconds / 3_600, "hours"),
        120.. => (seconds / 60, "minutes"),
        _ => (seconds, "seconds"),
    };
    format!("{number} {unit}")
}
