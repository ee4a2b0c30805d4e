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
            "the target sends no certificate; check its configuration".to_owned()
        }
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "the server on this port does not use TLS; use http:// instead of https://, or the https port".to_owned()
        }
        Error::PeerIncompatible(reason) => format!(
            "the target and Plimsoll have no TLS version or cipher in common ({reason:?}); Plimsoll supports TLS 1.2 and 1.3"
        ),
        Error::NoApplicationProtocol => {
            "the target does not offer the requested version of HTTP (ALPN); try without --http2 (`http_version`)".to_owned()
        }
        other => format!("TLS failed: {other}; check the target's log"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    const TRUST: &str = "give the root's certificate with --ca-file, or accept any with --insecure";
    match error {
        CertificateError::UnknownIssuer => {
            format!("the target's certificate is not signed by a trusted root; {TRUST}")
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
            "the target's certificate is not signed by a trusted root (one has the issuer's name, but another key); {TRUST}"
        ),
        CertificateError::Revoked => "the target's certificate was revoked; renew it".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the target's certificate is not a server certificate; give the target another, with extendedKeyUsage=serverAuth".to_owned()
        }
        other => {
            let text = format!("{other:?}");
            if text.contains(CA_AS_SERVER) {
                "the target uses a CA certificate (CA:TRUE) as its own, as made by `openssl req -x509`; give exactly this certificate with --ca-file, or make one with -addext basicConstraints=CA:FALSE".to_owned()
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
            format!("the target requires a client certificate; set it with {CERTIFICATE}")
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied => format!(
            "the target rejects the client's certificate ({alert:?}); give one that it trusts with {CERTIFICATE}"
        ),
        AlertDescription::CertificateExpired | AlertDescription::CertificateRevoked => format!(
            "the client's certificate has expired or was revoked, according to the target; use another with {CERTIFICATE}"
        ),
        AlertDescription::HandshakeFailure => format!(
            "the target aborts the handshake: it requires a client certificate ({CERTIFICATE}), or has no TLS 1.2 or 1.3 cipher in common with Plimsoll"
        ),
        AlertDescription::ProtocolVersion => {
            "the target supports only an older version of TLS; Plimsoll supports TLS 1.2 and 1.3".to_owned()
        }
        AlertDescription::UnrecognisedName => {
            "the target has no certificate for this host name; use a host name that it knows".to_owned()
        }
        AlertDescription::NoApplicationProtocol => {
            "the target does not support the requested version of HTTP (ALPN); try with or without --http2 (`http_version`)".to_owned()
        }
        other => format!("the target ended TLS with the alert {other:?}; check its log"),
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
