//! TLS targets: trusted, untrusted, and without TLS.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::{Client, options, run, send, serve};
use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_transport::{
    Connection, Connector, Endpoint, Opened, TlsSettings, with_own_session_cache,
};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

/// A TLS server for `localhost` that sends `response` to every request. Returns its address and its
/// root certificate as PEM.
fn serve_tls(response: Vec<u8>) -> (SocketAddr, String) {
    let (address, pem, _) = serve_counted(response);
    (address, pem)
}

/// The configuration of a server for `localhost`, and its certificate as PEM.
fn server_config() -> (Arc<ServerConfig>, String) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key =
        PrivateKeyDer::from_pem_slice(certified.signing_key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    (Arc::new(config), certified.cert.pem())
}

/// The server of [`serve_tls`], with the number of connections that resumed a session, as it sees
/// them.
fn serve_counted(response: Vec<u8>) -> (SocketAddr, String, Arc<AtomicU32>) {
    let resumed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&resumed);
    let (config, pem) = server_config();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let (config, response, count) =
                (Arc::clone(&config), response.clone(), Arc::clone(&count));
            std::thread::spawn(move || respond_to_all(tcp.unwrap(), config, &response, &count));
        }
    });
    (address, pem, resumed)
}

fn respond_to_all(tcp: TcpStream, config: Arc<ServerConfig>, response: &[u8], resumed: &AtomicU32) {
    let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), tcp);
    let mut buffer = [0; 4096];
    let mut counted = false;
    while let Ok(received @ 1..) = tls.read(&mut buffer) {
        if !std::mem::replace(&mut counted, true)
            && tls.conn.handshake_kind() == Some(HandshakeKind::Resumed)
        {
            resumed.fetch_add(1, Ordering::Relaxed);
        }
        let ends = buffer[..received].ends_with(b"\r\n\r\n");
        if ends && tls.write_all(response).is_err() {
            return;
        }
    }
}

fn client(address: SocketAddr, host: &str, settings: &TlsSettings) -> Client {
    let endpoint = Endpoint::new(host.to_owned(), address.port());
    let config = settings.client_config("http/1.1").unwrap();
    Client::with(Connector::new(endpoint, Some(config), options(Nanos::from_secs(2))).unwrap())
}

async fn connect(client: &Client) -> Opened<Connection> {
    client.connector.connect(&client.clock).await
}

fn trust(pem: &str) -> (tempfile::NamedTempFile, TlsSettings) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pem).unwrap();
    let settings = TlsSettings {
        client: None,
        ca_file: Some(file.path().to_owned()),
        insecure: false,
        resumption: true,
    };
    (file, settings)
}

#[test]
fn a_trusted_target_is_reached_and_its_handshake_is_timed() {
    run(async {
        // Larger than a TLS record and than one read.
        let body = "0123456789".repeat(30_000);
        let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let (address, pem) = serve_tls(response.into_bytes());
        let (_file, settings) = trust(&pem);
        let client = client(address, "localhost", &settings);
        let connected = connect(&client).await;
        assert!(connected.phases.tls.is_some_and(|tls| tls > Nanos::ZERO));
        let mut connection = connected.connection.unwrap();
        for _ in 0..3 {
            let (recorded, end) = client.get(&mut connection).await;
            assert_eq!(
                (recorded.status, recorded.body == body.as_bytes(), end),
                (200, true, Ok(true))
            );
            // The unrequested tickets of a TLS 1.3 server do not make the connection unusable.
            assert!(connection.is_idle());
        }
    });
}

/// A connection can wait long for its first request, and the target must not count its handshake as
/// unfinished.
#[test]
fn the_target_ends_its_handshake_before_the_first_request() {
    run(async {
        let (config, pem) = server_config();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let mut tcp = listener.accept().unwrap().0;
            tcp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut tls = ServerConnection::new(config).unwrap();
            while tls.is_handshaking() {
                tls.complete_io(&mut tcp)?;
            }
            Ok::<_, std::io::Error>(())
        });
        let (_file, settings) = trust(&pem);
        let opened = connect(&client(address, "localhost", &settings)).await;
        assert!(opened.connection.is_ok(), "and it stays open without a request");
        assert!(server.join().unwrap().is_ok());
    });
}

#[test]
fn certificates_are_verified_by_default() {
    run(async {
        let (address, pem) = serve_tls(b"HTTP/1.1 204 Fine\r\n\r\n".to_vec());
        let (_other, other_pem) = serve_tls(Vec::new());
        let class = async |host: &str, settings: &TlsSettings| {
            connect(&client(address, host, settings))
                .await
                .connection
                .err()
                .map(|failure| failure.class)
        };
        let (_right_file, right) = trust(&pem);
        let (_wrong_file, wrong) = trust(&other_pem);
        assert_eq!(class("localhost", &right).await, None);
        assert_eq!(class("localhost", &wrong).await, Some(ErrorClass::TlsCertificate));
        assert_eq!(
            class("127.0.0.1", &right).await,
            Some(ErrorClass::TlsCertificate),
            "another name"
        );
        let insecure =
            TlsSettings { client: None, ca_file: None, insecure: true, resumption: true };
        assert_eq!(class("127.0.0.1", &insecure).await, None);
    });
}

#[test]
fn a_target_without_tls_fails_with_its_class() {
    run(async {
        let insecure =
            TlsSettings { client: None, ca_file: None, insecure: true, resumption: true };
        let response = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        // The plain server waits for the end of a request head, which never comes.
        let plain = serve(vec![vec![send(response)]]);
        let connector = Connector::new(
            Endpoint::new("127.0.0.1".to_owned(), plain.port()),
            Some(insecure.client_config("http/1.1").unwrap()),
            options(Nanos::from_millis(200)),
        );
        let silent = Client::with(connector.unwrap());
        let failure = connect(&silent).await.connection.unwrap_err();
        assert_eq!(failure.class, ErrorClass::TlsHandshake);
        for part in ["accepted the connection", "within 200ms", "use http://", "`connect_timeout`"]
        {
            assert!(failure.detail.contains(part), "{failure}");
        }

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut tcp, _) = listener.accept().unwrap();
            tcp.write_all(response.as_bytes()).unwrap();
            let _ = tcp.read(&mut [0; 4096]);
        });
        let talking = client(address, "127.0.0.1", &insecure);
        assert_eq!(connect(&talking).await.connection.unwrap_err().class, ErrorClass::TlsHandshake);
    });
}

#[test]
fn unusable_roots_are_an_error_that_names_the_file() {
    let (file, settings) = trust("no certificate here");
    let error = settings.client_config("http/1.1").unwrap_err().to_string();
    assert!(error.contains(&file.path().display().to_string()), "{error}");
    let missing = TlsSettings {
        client: None,
        ca_file: Some("no/such/file.pem".into()),
        insecure: false,
        resumption: true,
    };
    assert!(
        missing.client_config("http/1.1").unwrap_err().to_string().contains("no/such/file.pem")
    );
}

/// Opens this many connections one after another, with one request on each. Returns how many
/// resumed a session.
async fn open_many(client: &Client, connections: u32) -> u32 {
    let mut resumed = 0;
    for _ in 0..connections {
        let connected = connect(client).await;
        assert!(connected.phases.tls.is_some_and(|tls| tls > Nanos::ZERO));
        resumed += u32::from(connected.phases.resumed);
        let mut connection = connected.connection.unwrap();
        assert_eq!(client.get(&mut connection).await.1, Ok(true));
    }
    resumed
}

#[test]
fn sessions_are_resumed_by_default_and_both_ends_report_it() {
    run(async {
        let (address, pem, seen) =
            serve_counted(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec());
        let (_file, on) = trust(&pem);
        let off = TlsSettings { resumption: false, ..on.clone() };
        assert_eq!(open_many(&client(address, "localhost", &off), 5).await, 0);
        assert_eq!(seen.load(Ordering::Relaxed), 0);
        let resuming = client(address, "localhost", &on);
        assert_eq!(open_many(&resuming, 6).await, 5, "all but the first");
        assert_eq!(seen.swap(0, Ordering::Relaxed), 5);
        let config = with_own_session_cache(&on.client_config("http/1.1").unwrap(), true);
        let endpoint = Endpoint::new("localhost".to_owned(), address.port());
        let stranger = Connector::new(endpoint, Some(config), options(Nanos::from_secs(2)));
        assert_eq!(open_many(&Client::with(stranger.unwrap()), 1).await, 0, "a separate cache");
    });
}

#[test]
fn many_connections_at_once_are_resumed_with_enough_tickets() {
    run(async {
        let (address, pem, seen) =
            serve_counted(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec());
        let (_file, on) = trust(&pem);
        let client = client(address, "localhost", &on);
        for (round, resumed) in [(0, 0), (1, 20)] {
            let mut open = Vec::new();
            // All handshakes happen before the first request, so tickets of this round come too
            // late.
            for _ in 0..20 {
                open.push(connect(&client).await.connection.unwrap());
            }
            for connection in &mut open {
                assert_eq!(client.get(connection).await.1, Ok(true));
            }
            assert_eq!(seen.swap(0, Ordering::Relaxed), resumed, "round {round}");
        }
    });
}
