//! Describes TLS errors in sentences with a remedy.

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// webpki's name for a CA certificate that a server presents as its own.
pub(super) const CA_AS_SERVER: &str = "CaUsedAsEndEntity";
/// webpki's name for an unreadable certificate, which nearly always has no names.
const OLD_VERSION: &str = "UnsupportedCertVersion";

/// A name and its sentence in each line.
const SENTENCES: &str = include_str!("sentences.txt");

/// The sentence with this name; each `{}` in it is one of the values.
fn say(name: &str, values: &[&str]) -> String {
    let mut rows = SENTENCES.lines().filter_map(|row| row.split_once(": "));
    let text = rows.find(|(known, _)| *known == name).map_or("", |(_, text)| text);
    values.iter().fold(text.to_owned(), |text, value| text.replacen("{}", value, 1))
}

/// The sentence, which ends with a remedy.
pub(crate) fn sentence(error: &Error) -> String {
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
