//! Serves the page. Scrapers that are slow, many or hostile cost the run next to nothing: few
//! connections at once, a bounded number in a second, one answer for each, and a page is written at
//! most once for each snapshot.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::live::LiveMetrics;

/// Where metrics are served, if nothing else is said: only for this host.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:9797";

/// Connections at once; others wait in the kernel.
const CONNECTIONS: usize = 16;
/// Time between two connections, at least.
const PAUSE: Duration = Duration::from_millis(5);
/// Time for the head of a request.
const HEAD: Duration = Duration::from_secs(2);
/// Time for a whole connection.
const CONNECTION: Duration = Duration::from_secs(10);
/// Largest head of a request, in bytes.
const BUFFER: usize = 16 << 10;
/// Content type of the text format.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Serves metrics until it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    final_page_was_read: Arc<AtomicBool>,
    stop: Arc<Semaphore>,
}

impl MetricsServer {
    /// Listens, and serves on a thread of its own.
    ///
    /// # Errors
    /// Where the address is taken or cannot be used.
    pub fn start(address: SocketAddr, live: LiveMetrics) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let (address, read) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let stop = Arc::new(Semaphore::new(0));
        let page = Page { live, final_page_was_read: Arc::clone(&read) };
        let stopped = Arc::clone(&stop);
        thread::Builder::new()
            .name("plimsoll-metrics".to_owned())
            .spawn(move || serve(&runtime, &listener, &page, &stopped))?;
        Ok(Self { address, final_page_was_read: read, stop })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether somebody read the page since the last run was over.
    pub fn final_page_was_read(&self) -> bool {
        self.final_page_was_read.load(Ordering::Acquire)
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.add_permits(1);
    }
}

fn serve(runtime: &Runtime, listener: &TcpListener, page: &Page, stop: &Semaphore) {
    runtime.block_on(async {
        tokio::select! {
            () = accept(listener, page) => {}
            _ = stop.acquire() => {}
        }
    });
}

async fn accept(listener: &TcpListener, page: &Page) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        if let Ok((stream, _)) = listener.accept().await {
            let page = page.clone();
            tokio::spawn(async move {
                let _ = timeout(CONNECTION, exchange(stream, page)).await;
                drop(slot);
            });
        }
        // Also pauses when file descriptors run out.
        sleep(PAUSE).await;
    }
}

async fn exchange(stream: TcpStream, page: Page) {
    let answer = service_fn(|request: Request<Incoming>| {
        let response = page.answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(BUFFER);
    // Errors of a scraper do not concern the run.
    let _ = server.keep_alive(false).serve_connection(TokioIo::new(stream), answer).await;
}

#[derive(Clone, Debug)]
struct Page {
    live: LiveMetrics,
    final_page_was_read: Arc<AtomicBool>,
}

impl Page {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() != "/metrics" {
            return text(StatusCode::NOT_FOUND, "metrics are at /metrics\n".into());
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".into());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let (page, over) = self.live.page();
        self.final_page_was_read.store(over, Ordering::Release);
        text(StatusCode::OK, Bytes::copy_from_slice(page.as_bytes()))
    }
}

fn text(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}
