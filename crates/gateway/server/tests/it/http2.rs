//! HTTP/2 by prior knowledge, and the end of a gateway.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};

use super::support::raw::{OK, gateway, head, proxy, upstream};

type Sender = SendRequest<Full<Bytes>>;

/// A connection, and the task that runs it.
pub(super) async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> (Sender, JoinHandle<hyper::Result<()>>) {
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

async fn dial(addr: SocketAddr) -> (Sender, JoinHandle<hyper::Result<()>>) {
    talk(TcpStream::connect(addr).await.unwrap()).await
}

pub(super) async fn ask(
    sender: &mut Sender,
    path: &str,
    body: &'static str,
) -> hyper::Result<(StatusCode, String)> {
    let request = Request::builder().uri(format!("http://gateway{path}"));
    let request = request.method(if body.is_empty() { "GET" } else { "POST" });
    let request = request.version(Version::HTTP_2).body(Full::from(body)).unwrap();
    let answer: Response<_> = sender.send_request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(body.to_vec()).unwrap()))
}

pub(super) fn block_on<F: Future>(test: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), test).await }).unwrap()
}

#[test]
fn concurrent_streams_get_their_own_responses() {
    let up = upstream(|mut stream| {
        while let Some(head) = head(&mut stream) {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let length = path.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{path}");
            std::thread::sleep(Duration::from_millis(5));
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let gateway = proxy(up, "", "");
    block_on(async {
        let (sender, _) = dial(gateway.addr()).await;
        let mut asked = JoinSet::new();
        for number in 0..300 {
            let mut sender = sender.clone();
            asked.spawn(async move {
                let path = format!("/n/{number}");
                assert_eq!(ask(&mut sender, &path, "").await.unwrap(), (StatusCode::OK, path));
            });
        }
        while let Some(asked) = asked.join_next().await {
            asked.unwrap();
        }
    });
}

#[test]
fn errors_are_the_same_as_over_http1() {
    let gateway = gateway("");
    block_on(async {
        let (mut sender, _) = dial(gateway.addr()).await;
        let (status, body) = ask(&mut sender, "/health/live", "").await.unwrap();
        assert_eq!((status.as_u16(), &*body), (200, "{\"alive\":true}"));
        let (status, body) = ask(&mut sender, "/nowhere", "").await.unwrap();
        assert!(status == 404 && body.contains("not_found"), "{body}");
        let (status, body) = ask(&mut sender, "/health/live", "body").await.unwrap();
        assert!(status == 405 && body.contains("method_not_allowed"), "{body}");
    });
}

#[test]
fn a_stopping_gateway_sends_goaway_and_lets_streams_finish() {
    let (release, released) = channel();
    let released = Arc::new(Mutex::new(released));
    let up = upstream(move |mut stream| {
        while head(&mut stream).is_some() {
            released.lock().unwrap().recv().unwrap();
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let mut gateway = proxy(up, "", "");
    let addr = gateway.addr();
    block_on(async {
        let (mut sender, connection) = dial(addr).await;
        let mut other = sender.clone();
        let asked = tokio::spawn(async move { ask(&mut other, "/x", "").await });
        while gateway.served() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let stopped = tokio::task::spawn_blocking(move || gateway.shutdown());
        while TcpStream::connect(addr).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        release.send(()).unwrap();
        assert_eq!(asked.await.unwrap().unwrap(), (StatusCode::OK, "hello".to_owned()));
        // GOAWAY without an error ends the connection properly; no more requests are accepted.
        connection.await.unwrap().unwrap();
        ask(&mut sender, "/x", "").await.unwrap_err();
        stopped.await.unwrap();
        TcpStream::connect(addr).await.unwrap_err();
    });
}
