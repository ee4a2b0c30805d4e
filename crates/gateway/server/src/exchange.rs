//! One exchange with a client: its context, the forwarding to an upstream, the response. Beside it
//! the state that exchanges share.

pub(crate) mod document;
pub(crate) mod forward;
pub(crate) mod proxy_body;
pub(crate) mod request_context;
pub(crate) mod respond;
pub(crate) mod state;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use arc_swap::{ArcSwap, Cache};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, UPGRADE};
use plimsoll_gateway_store::{RecordId, Store};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::assembly::config::Config;
use crate::base::splitmix64;
use crate::config::DialectSpec;
use crate::exchange::proxy_body::ProxyBody;
use crate::exchange::state::GatewayState;
use crate::http::BoxError;
use crate::http::error_response::ErrorResponse;
use crate::http::header_list::{HeaderList, headers_of};
use crate::http::request_body::take_frame;
use crate::layers::Serves;
use crate::layers::auth::Auth;
use crate::layers::fault_injection::FaultInjector;
use crate::layers::metrics::{Metrics, SeriesCache};
use crate::layers::tool_server::ToolConnections;
use crate::upstream::FairQueue;
use crate::upstream::{Pool, Upstream};

/// The place of a connection, taken until it is dropped. A `WebSocket` takes it over from the
/// HTTP connection that it was.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    state: Arc<GatewayState>,
    stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlot {
    pub(crate) fn new(
        state: &Arc<GatewayState>,
        stop: watch::Receiver<bool>,
        permit: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        state.metrics.connection_opened();
        Arc::new(Self { state: Arc::clone(state), stop, _permit: permit })
    }

    /// Tells when the gateway stops.
    pub(crate) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.state.metrics.connection_closed();
    }
}

static CREDENTIALS: HeaderList = LazyLock::new(|| headers_of("credentials"));
static HOP: HeaderList = LazyLock::new(|| headers_of("response-hop"));

/// Whether a header is one of [`CREDENTIALS`].
pub(crate) fn is_credential(name: &HeaderName) -> bool {
    CREDENTIALS.contains(name)
}

/// Credentials of a client that are passed on to an upstream.
pub(crate) fn passed_on<'a>(
    headers: &'a HeaderMap,
    config: &'a Config,
    upstream: &Upstream,
) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
    let own = config.layers.auth.as_ref().map(Auth::header);
    let replaced = if upstream.key.is_some() { CREDENTIALS.len() - 1 } else { 0 };
    let names = CREDENTIALS[replaced..].iter().filter(move |name| Some(*name) != own);
    names.flat_map(|name| headers.get_all(name).iter().map(move |value| (name, value)))
}

/// Prepares the headers of a request in normal form for the upstream: removes the gateway's own
/// key, and replaces the client's credentials where the upstream has a key.
pub(crate) fn prepare_request(
    headers: &mut HeaderMap,
    config: &Config,
    upstream: &Upstream,
) -> Result<(), ErrorResponse> {
    headers.remove(UPGRADE);
    headers.remove(CONTENT_LENGTH);
    if let Some(auth) = &config.layers.auth {
        headers.remove(auth.header());
    }
    if let Some(key) = &upstream.key {
        for name in &CREDENTIALS[..CREDENTIALS.len() - 1] {
            headers.remove(name);
        }
        set_credential(headers, upstream.dialect, key).ok_or_else(|| {
            ErrorResponse::bad_gateway("the upstream's key is not a header value")
        })?;
    }
    Ok(())
}

fn set_credential(headers: &mut HeaderMap, dialect: DialectSpec, key: &str) -> Option<()> {
    let (name, mut value) = match dialect {
        DialectSpec::Openai => {
            (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}")).ok()?)
        }
        DialectSpec::Anthropic => {
            (HeaderName::from_static("x-api-key"), HeaderValue::try_from(key).ok()?)
        }
    };
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}

/// Removes the hop-by-hop headers of a response, and those that `connection` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // A look at each of the few names that are there costs less than a search for each of these.
    if headers.contains_key(CONNECTION) {
        remove_listed(headers);
        headers.remove(CONNECTION);
    }
    if headers.keys().any(|name| HOP.contains(name)) {
        for name in HOP.iter() {
            headers.remove(name);
        }
    }
}

/// Removes the headers that `connection` names.
fn remove_listed(headers: &mut HeaderMap) {
    let lines = headers.get_all(CONNECTION).iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    // The usual two need no search: `keep-alive` is one of `HOP`, and `close` is no header.
    let listed = names.map(<[u8]>::trim_ascii).filter(|name| {
        !(name.eq_ignore_ascii_case(b"keep-alive") || name.eq_ignore_ascii_case(b"close"))
    });
    let listed: Vec<_> = listed.filter_map(|name| HeaderName::from_bytes(name).ok()).collect();
    for name in listed {
        headers.remove(name);
    }
}

/// An id that nobody can guess.
///
/// # Errors
/// The system gives no random numbers.
pub(crate) fn random_id() -> Result<RecordId, ErrorResponse> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ErrorResponse::internal_error("the system gives no random numbers"))?;
    Ok(RecordId(u128::from_be_bytes(bytes)))
}

/// The body of a response to a caller.
pub(crate) enum ResponseBody {
    /// In memory, sent at once.
    Full(Bytes),
    /// In memory, sent frame by frame as it was recorded.
    Frames(VecDeque<Bytes>),
    /// As it comes from an upstream.
    Proxy(Box<ProxyBody>),
}

impl ResponseBody {
    pub(crate) const EMPTY: Self = Self::Full(Bytes::new());

    pub(crate) const fn text(text: &'static str) -> Self {
        Self::Full(Bytes::from_static(text.as_bytes()))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(take_frame(bytes).map(Ok)),
            Self::Frames(frames) => {
                Poll::Ready(frames.pop_front().map(|frame| Ok(Frame::data(frame))))
            }
            Self::Proxy(proxy) => {
                proxy.poll_chunk(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Frames(frames) => frames.is_empty(),
            Self::Proxy(proxy) => proxy.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Frames(_) => SizeHint::default(),
            Self::Proxy(proxy) => proxy.size_hint(),
        }
    }
}

/// The state that the tasks of one worker share.
pub(crate) struct Worker {
    pub(crate) serves: Serves,
    pub(crate) state: Arc<GatewayState>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) fair_queue: Rc<FairQueue>,
    pub(crate) series: SeriesCache,
    pub(crate) store: Store,
    pub(crate) faults: FaultInjector,
    /// How each tool server is spoken to.
    pub(crate) tools: ToolConnections,
    requests: Cell<u64>,
    config: RefCell<Cache<Arc<ArcSwap<Config>>, Arc<Config>>>,
}

impl Worker {
    pub(crate) async fn new(state: Arc<GatewayState>, serves: Serves) -> Self {
        let config = RefCell::new(Cache::new(Arc::clone(&state.config)));
        let store = state.backend.attach().await;
        Self {
            serves,
            state,
            pool: Rc::default(),
            fair_queue: Rc::default(),
            series: SeriesCache::default(),
            store,
            faults: FaultInjector::default(),
            tools: ToolConnections::default(),
            requests: Cell::new(0),
            config,
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.state.metrics
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(self.config.borrow_mut().load())
    }

    /// A number that no other request of this gateway has.
    pub(crate) fn next_request_number(&self) -> u64 {
        self.requests.set(self.requests.get().wrapping_add(1));
        splitmix64(
            self.state.salt
                ^ (std::ptr::from_ref(self).addr() as u64)
                ^ (self.requests.get() << 20),
        )
    }
}
