//! HTTP/2 over TLS: negotiated by ALPN, resumed, and rejected if the target does not offer it.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{Client, options, run};
use plimsoll_measure::{Clock as _, ErrorClass, Nanos};
use plimsoll_transport::{Connector, Endpoint, SocketOptions, TlsSettings};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;

/// Responds to every request with the length of its body and as many bytes.
async fn echo(acceptor: TlsAcceptor, tcp: TcpStream) {
    let Ok(tls) = acceptor.accept(tcp).await else { return };
    let Ok(mut connection) = h2::server::handshake(tls).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        spawn_local(async move {
            let (mut body, mut length) = (request.into_body(), 0);
            while let Some(Ok(data)) = body.data().await {
                length += data.len();
                body.flow_control().release_capacity(data.len()).unwrap();
            }
            let response = http::Response::builder().header("x-length", length);
            let mut stream = respond.send_response(response.body(()).unwrap(), false).unwrap();
            stream.send_data(vec![b'z'; length].into(), true).unwrap();
        });
    }
}

/// A server that offers one protocol.
async fn serve(alpn: &str) -> SocketAddr {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key =
        PrivateKeyDer::from_pem_slice(certified.signing_key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            spawn_local(echo(acceptor.clone(), tcp));
        }
    });
    address
}

fn client(address: SocketAddr, streams: u32) -> Client {
    let settings = TlsSettings { client: None, ca_file: None, insecure: true, resumption: true };
    let endpoint = Endpoint::new("localhost".to_owned(), address.port());
    let options = SocketOptions { http2_streams: Some(streams), ..options(Nanos::from_secs(2)) };
    let config = settings.client_config("h2").unwrap();
    Client::with(Connector::new(endpoint, Some(config), options).unwrap())
}

#[test]
fn large_and_small_requests_share_a_connection() {
    run(async {
        let client = client(serve("h2").await, 4);
        let pool = client.pool();
        let post = async |size: usize| {
            let checked_out = pool.checkout(client.demand()).await;
            let mut lease = checked_out.connection.unwrap();
            let (recorded, end) = client.send(&mut lease, "POST", &vec![b'x'; size]).await;
            assert_eq!((recorded.status, recorded.body.len(), end), (200, size, Ok(true)));
            let length = ("x-length".to_owned(), size.to_string().into_bytes());
            assert!(
                recorded.headers.contains(&length)
                    && recorded.body.iter().all(|byte| *byte == b'z')
            );
            assert!(recorded.sent.unwrap() <= *recorded.reads.last().unwrap());
            lease.release(client.clock.now());
            checked_out.phases.tls
        };
        let (first, ..) = tokio::join!(post(1_000_000), post(3), post(70_000), post(16_384));
        assert!(first.is_some_and(|tls| tls > Nanos::ZERO));
        assert_eq!(post(0).await, None, "no further handshake");
    });
}

#[test]
fn a_session_is_resumed() {
    run(async {
        let client = client(serve("h2").await, 1);
        let mut resumed = Vec::new();
        for _ in 0..2 {
            let pool = client.pool();
            let checked_out = pool.checkout(client.demand()).await;
            assert_eq!(client.get(&mut checked_out.connection.unwrap()).await.1, Ok(true));
            resumed.push(checked_out.phases.resumed);
        }
        assert_eq!(resumed, [false, true]);
    });
}

#[test]
fn a_target_without_http_2_fails_the_handshake() {
    run(async {
        let client = client(serve("http/1.1").await, 1);
        let pool = client.pool();
        let checked_out = pool.checkout(client.demand()).await;
        assert_eq!(checked_out.connection.err().unwrap().class, ErrorClass::TlsHandshake);
    });
}
