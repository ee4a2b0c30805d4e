//! TLS: ALPN, and clients that do not complete the handshake.

use std::io::Write as _;
use std::sync::Arc;

use plimsoll_gateway_server::{Gateway, Spec};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::http2::{ask, block_on, talk};
use super::support::raw::{OK, connect, fixed_upstream, proxy, read_to_end};

/// Writes a self-signed certificate and its key.
fn certify(folder: &TempDir) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["gateway".to_owned()]).unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

/// The sections of a gateway that serves this certificate.
fn sections(folder: &TempDir) -> String {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    let tls = format!("tls: {{cert: '{}', key: '{}'}}", cert.display(), key.display());
    format!("{tls}\nserver: {{header_timeout: 300ms}}")
}

/// A gateway with a self-signed certificate.
fn start(folder: &TempDir) -> (Gateway, CertificateDer<'static>) {
    let cert = certify(folder);
    (proxy(fixed_upstream(OK), "", &sections(folder)), cert)
}

#[test]
fn a_reload_serves_the_renewed_certificate_and_refuses_a_broken_one() {
    let folder = tempfile::tempdir().unwrap();
    let old = certify(&folder);
    let file = folder.path().join("g.yaml");
    let routes = "routes: [{name: r, path: /x, respond: {}}]";
    std::fs::write(&file, format!("listen: 127.0.0.1:0\n{}\n{routes}", sections(&folder))).unwrap();
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    let served = |trusted: &CertificateDer<'static>| {
        block_on(async {
            let stream = shake(&gateway, trusted, &[]).await;
            stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
        })
    };
    let new = certify(&folder);
    assert_eq!(served(&old), old);
    gateway.reload().unwrap();
    assert_eq!(served(&new), new);
    std::fs::write(folder.path().join("cert.pem"), "garbage").unwrap();
    assert!(gateway.reload().is_err());
    assert_eq!(served(&new), new);
}

async fn shake(
    gateway: &Gateway,
    cert: &CertificateDer<'static>,
    protocols: &[&str],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(gateway.addr()).await.unwrap();
    let name = ServerName::try_from("gateway").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

#[test]
fn alpn_selects_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, cert) = start(&folder);
    block_on(async {
        let stream = shake(&gateway, &cert, &["h2", "http/1.1"]).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, _) = talk(stream).await;
        for _ in 0..3 {
            assert_eq!(ask(&mut sender, "/x", "").await.unwrap().1, "hello");
        }
        for protocols in [&["http/1.1"][..], &[]] {
            let mut stream = shake(&gateway, &cert, protocols).await;
            let request = "GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            // The connection may end without a TLS close notification.
            let _ = stream.read_to_string(&mut answer).await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
        }
    });
}

#[test]
fn a_client_without_handshake_or_request_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, cert) = start(&folder);
    for begin in [&b""[..], b"\x16\x03\x01", b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n"] {
        let mut stream = connect(&gateway);
        stream.write_all(begin).unwrap();
        assert!(!read_to_end(&mut stream).contains("HTTP"));
    }
    block_on(async {
        let mut stream = shake(&gateway, &cert, &["http/1.1"]).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert_eq!(answer, b"");
    });
}
