//! Describes TLS errors in sentences with a remedy.

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// webpki's name for a CA certificate that a server presents as its own.
pub(super) const CA_AS_SERVER: &str = "CaUsedAsEndEntity";
/// webpki's name for an unreadable certificate, which nearly always has no names.
const OLD_VERSION: &str = "UnsupportedCertVersion";

/// The sentence, which ends with a remedy.
pub(crate) fn sentence(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::NoCertificatesPresented => {
            "the target shows no certificate; look into its configuration".to_owned()
        }
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "what answers on this port is not TLS; write http:// in place of https://, or give the port of https".to_owned()
        }
        Error::PeerIncompatible(reason) => format!(
            "the target and Plimsoll have no version or cipher of TLS in common ({reason:?}); Plimsoll speaks TLS 1.2 and 1.3"
        ),
        Error::NoApplicationProtocol => {
            "the target offers no version of HTTP that was asked for (ALPN); try it without --http2 (`http_version`)".to_owned()
        }
        other => format!("TLS fails: {other}; look into the log of the target"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    const TRUST: &str = "give the root's certificate with --ca-file, or accept any with --insecure";
    match error {
        CertificateError::UnknownIssuer => {
            format!("no root that is trusted here has signed the target's certificate; {TRUST}")
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "the target's certificate expired {} ago; renew it, or accept any with --insecure",
            between(*not_after, *time)
        ),
        CertificateError::Expired => {
            "the target's certificate has expired; renew it, or accept any with --insecure".to_owned()
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the target's certificate is valid only in {}; check the clock of this host",
            between(*time, *not_before)
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            wrong_name(&expected.to_str(), &names)
        }
        // A root with the issuer's name, but another key.
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => format!(
            "no root that is trusted here has signed the target's certificate (one has the name of its issuer, and another key); {TRUST}"
        ),
        CertificateError::Revoked => "the target's certificate was revoked; renew it".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the target's certificate is not one for servers; give the target another, with extendedKeyUsage=serverAuth".to_owned()
        }
        other => {
            let text = format!("{other:?}");
            if text.contains(CA_AS_SERVER) {
                "the target shows a certificate of a CA (CA:TRUE) as its own, as `openssl req -x509` makes them; give exactly this certificate with --ca-file, or make one with -addext basicConstraints=CA:FALSE".to_owned()
            } else if text.contains(OLD_VERSION) {
                "the target's certificate is of X.509 version 1, which names no hosts; make one of version 3, with -addext subjectAltName=DNS:NAME".to_owned()
            } else {
                format!("the target's certificate is not accepted ({text}); accept any with --insecure")
            }
        }
    }
}

fn wrong_name(expected: &str, names: &[String]) -> String {
    let own = if expected.parse::<std::net::IpAddr>().is_ok() { "IP" } else { "DNS" };
    match names {
        [] => format!(
            "the target's certificate names no host (it has no subjectAltName; a common name does not count); make one with -addext subjectAltName={own}:{expected}, or accept any with --insecure"
        ),
        names => format!(
            "the target's certificate is for {}, not for {expected}; load the target by a name of its certificate, or accept any with --insecure",
            names.join(", ")
        ),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    const CERTIFICATE: &str = "--cert FILE and --cert-key FILE";
    match alert {
        AlertDescription::CertificateRequired => {
            format!("the target asks for a certificate of the client; give it with {CERTIFICATE}")
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied => format!(
            "the target does not accept the client's certificate ({alert:?}); give one that it trusts with {CERTIFICATE}"
        ),
        AlertDescription::CertificateExpired | AlertDescription::CertificateRevoked => format!(
            "the client's certificate has expired or was revoked, the target says; give another with {CERTIFICATE}"
        ),
        AlertDescription::HandshakeFailure => format!(
            "the target breaks the handshake off: it asks for a certificate of the client ({CERTIFICATE}), or has no cipher of TLS 1.2 or 1.3"
        ),
        AlertDescription::ProtocolVersion => {
            "the target speaks only an older version of TLS; Plimsoll speaks TLS 1.2 and 1.3".to_owned()
        }
        AlertDescription::UnrecognisedName => {
            "the target has no certificate for this host name; load it by a name that it knows".to_owned()
        }
        AlertDescription::NoApplicationProtocol => {
            "the target does not speak the version of HTTP that was asked for (ALPN); try it with or without --http2 (`http_version`)".to_owned()
        }
        other => format!("the target ends TLS with the alert {other:?}; look into its log"),
    }
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
