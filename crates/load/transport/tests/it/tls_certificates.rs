//! Certificates made with `openssl`: accepted as by curl, or rejected with a sentence that names
//! the remedy.

#![expect(clippy::excessive_nesting, reason = "a small server in threads")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_transport::{ClientCertificate, Connector, Endpoint, Failure, TlsSettings};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion,
};

use crate::support::{Client, Recorded, options, run};

/// A folder of certificates; `NAME.pem` has the certificate, `NAME.key` its key.
struct Authority(tempfile::TempDir);

impl Authority {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn openssl(&self, line: &str) {
        let output =
            Command::new("openssl").args(line.split(' ')).current_dir(self.0.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Made as in every guide.
    fn self_signed(&self, name: &str, more: &str) {
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        self.openssl(&format!(
            "req -x509 {key} -keyout {name}.key -out {name}.pem -days 2 -subj /CN=localhost{more}"
        ));
    }

    /// Signed by `ca` for `localhost`, valid between two dates such as `20200101000000Z`.
    fn signed(&self, ca: &str, name: &str, dates: (&str, &str)) {
        let config = "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nnew_certs_dir=.\ndefault_md=sha256\n\
             policy=p\nx509_extensions=x\nrand_serial=yes\n[p]\ncommonName=supplied\n[x]\n\
             subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n";
        fs::write(self.path("ca.cnf"), config).unwrap();
        fs::write(self.path("index"), "").unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        self.openssl(&format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        self.openssl(&format!(
            "ca -batch -notext -config ca.cnf -in {name}.csr -out {name}.pem -cert {ca}.pem -keyfile \
             {ca}.key -startdate {} -enddate {}",
            dates.0, dates.1
        ));
    }

    fn chain(&self, name: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let pem = CertificateDer::pem_file_iter(self.path(&format!("{name}.pem"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.path(&format!("{name}.key"))).unwrap();
        (pem.map(Result::unwrap).collect(), key)
    }

    /// A server with this certificate that answers every request; with `clients` it requests client
    /// certificates signed by these.
    fn serve(
        &self,
        name: &str,
        version: &'static SupportedProtocolVersion,
        clients: Option<&str>,
    ) -> SocketAddr {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                roots.add(self.chain(ca).0.remove(0)).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let (chain, key) = self.chain(name);
        let config = Arc::new(builder.with_single_cert(chain, key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for tcp in listener.incoming() {
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut tls = StreamOwned::new(session, tcp.unwrap());
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(1..) = tls.read(&mut buffer) {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                        tls.write_all(answer).unwrap();
                    }
                    // The client receives the reason for the end of the session.
                    let _ = tls.flush();
                });
            }
        });
        address
    }
}

/// Sends one request. A TLS 1.3 server refuses the client's certificate only after the handshake.
async fn ask(address: SocketAddr, host: &str, settings: &TlsSettings) -> Result<u16, Failure> {
    let endpoint = Endpoint::new(host.to_owned(), address.port());
    let config = settings.client_config("http/1.1").unwrap();
    let connector = Connector::new(endpoint, Some(config), options(Nanos::from_secs(5)));
    let client = Client::with(connector.unwrap());
    let mut connection = client.connector.connect(&client.clock).await.connection?;
    let mut recorded = Recorded::default();
    client.try_send(&mut connection, "GET", b"", &mut recorded).await?;
    Ok(recorded.status)
}

fn trusting(file: &Path) -> TlsSettings {
    TlsSettings { ca_file: Some(file.to_owned()), ..TlsSettings::default() }
}

fn refused(result: Result<u16, Failure>, class: ErrorClass, parts: &[&str]) {
    let failure = result.unwrap_err();
    assert_eq!(failure.class, class, "{}", failure.detail);
    for part in parts {
        assert!(failure.detail.contains(part), "{part}: {}", failure.detail);
    }
    assert!(failure.detail.contains("; "), "no fix: {}", failure.detail);
}

#[test]
fn a_certificate_of_openssl_req_works_for_the_server_that_shows_it() {
    let files = Authority::new();
    files.self_signed("own", " -addext subjectAltName=DNS:localhost,IP:127.0.0.1");
    files.self_signed(
        "plain",
        " -addext basicConstraints=CA:FALSE -addext subjectAltName=DNS:localhost",
    );
    files.self_signed("other", " -addext subjectAltName=DNS:localhost");
    files.self_signed("nameless", "");
    run(async {
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let address = files.serve("own", version, None);
            let own = trusting(&files.path("own.pem"));
            assert_eq!(ask(address, "localhost", &own).await, Ok(200));
            assert_eq!(ask(address, "127.0.0.1", &own).await, Ok(200));
            let names = ["is for localhost, 127.0.0.1, not for 127.0.0.2"];
            refused(ask_at(address, "127.0.0.2", &own).await, ErrorClass::TlsCertificate, &names);
            // Trusting another certificate with the same name must not make this one trusted.
            let other = trusting(&files.path("other.pem"));
            let refusal = ask(address, "localhost", &other).await;
            refused(refusal, ErrorClass::TlsCertificate, &["--ca-file"]);
        }
        let address = files.serve("plain", &rustls::version::TLS13, None);
        let plain = trusting(&files.path("plain.pem"));
        assert_eq!(ask(address, "localhost", &plain).await, Ok(200));
        let address = files.serve("nameless", &rustls::version::TLS13, None);
        let nameless = trusting(&files.path("nameless.pem"));
        let parts = ["names no host", "subjectAltName=DNS:localhost"];
        refused(ask(address, "localhost", &nameless).await, ErrorClass::TlsCertificate, &parts);
    });
}

/// A connection to 127.0.0.1 whose server must be `host`.
async fn ask_at(address: SocketAddr, host: &str, settings: &TlsSettings) -> Result<u16, Failure> {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let own = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut from, mut to) =
            (listener.accept().unwrap().0, std::net::TcpStream::connect(address).unwrap());
        let (mut back_from, mut back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        let _ = std::io::copy(&mut from, &mut to);
    });
    ask(own, host, settings).await
}

#[test]
fn a_signed_certificate_is_judged_by_its_root_and_its_dates() {
    let files = Authority::new();
    files.self_signed("root", " -addext keyUsage=keyCertSign");
    files.self_signed("stranger", "");
    files.signed("root", "good", ("20200101000000Z", "20990101000000Z"));
    files.signed("root", "old", ("20200101000000Z", "20210101000000Z"));
    files.signed("root", "early", ("20980101000000Z", "20990101000000Z"));
    run(async {
        let tls13 = &rustls::version::TLS13;
        let root = trusting(&files.path("root.pem"));
        let good = files.serve("good", tls13, None);
        assert_eq!(ask(good, "localhost", &root).await, Ok(200));
        let stranger = trusting(&files.path("stranger.pem"));
        let class = ErrorClass::TlsCertificate;
        refused(ask(good, "localhost", &stranger).await, class, &["--ca-file", "--insecure"]);
        let system = TlsSettings::default();
        refused(ask(good, "localhost", &system).await, class, &["a trusted root", "--ca-file"]);
        let old = files.serve("old", tls13, None);
        refused(ask(old, "localhost", &root).await, class, &["expired", "days ago"]);
        let early = files.serve("early", tls13, None);
        refused(ask(early, "localhost", &root).await, class, &["valid only in", "clock"]);
        let any = TlsSettings { insecure: true, ..TlsSettings::default() };
        assert_eq!(ask(old, "localhost", &any).await, Ok(200));
    });
}

#[test]
fn a_target_that_asks_for_a_certificate_of_the_client_gets_it_or_is_named() {
    let files = Authority::new();
    files.self_signed("root", " -addext keyUsage=keyCertSign");
    files.signed("root", "server", ("20200101000000Z", "20990101000000Z"));
    files.signed("root", "client", ("20200101000000Z", "20990101000000Z"));
    files.self_signed("stranger", "");
    run(async {
        let root = trusting(&files.path("root.pem"));
        let with = |name: &str| TlsSettings {
            client: Some(ClientCertificate {
                cert_file: files.path(&format!("{name}.pem")),
                key_file: files.path(&format!("{name}.key")),
            }),
            ..root.clone()
        };
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let address = files.serve("server", version, Some("root"));
            assert_eq!(ask(address, "localhost", &with("client")).await, Ok(200));
            let class = ErrorClass::TlsHandshake;
            refused(
                ask(address, "localhost", &root).await,
                class,
                &["client certificate", "--cert"],
            );
            let stranger = ask(address, "localhost", &with("stranger")).await;
            refused(stranger, class, &["client's certificate", "--cert"]);
        }
    });
}
