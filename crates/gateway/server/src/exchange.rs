//! One request and its answer, from the first byte to the last, for the books.

use std::rc::Rc;
use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};

use crate::auth::Consumer;
use crate::clock;
use crate::config::Config;
use crate::llm::Bill;
use crate::router::Route;
use crate::worker::Worker;

/// One request and its answer. It enters itself into the books when it is finished or dropped.
pub(crate) struct Exchange {
    pub(crate) worker: Rc<Worker>,
    pub(crate) config: Arc<Config>,
    pub(crate) route: Arc<Route>,
    pub(crate) method: Method,
    /// Only where rows are written.
    pub(crate) path: Option<Box<str>>,
    pub(crate) agent: Option<HeaderValue>,
    pub(crate) client: std::net::SocketAddr,
    pub(crate) request_id: Option<HeaderValue>,
    pub(crate) consumer: Option<Arc<Consumer>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) status: StatusCode,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// What the answer cost, known when it is over.
    pub(crate) bill: Option<Rc<Bill>>,
    /// What LLM layers found out.
    pub(crate) notes: Option<Box<Notes>>,
    started: u64,
    done: bool,
}

/// What LLM layers found out about a request.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) model: Option<Arc<str>>,
    /// What the cache did.
    pub(crate) cache: Option<&'static str>,
    /// What the policy did, and which rules matched.
    pub(crate) verdict: Option<&'static str>,
    pub(crate) rules: Vec<String>,
}

impl Exchange {
    pub(crate) fn begin(
        worker: &Rc<Worker>,
        config: &Arc<Config>,
        route: &Arc<Route>,
        (method, client): (&Method, std::net::SocketAddr),
    ) -> Self {
        Self {
            worker: Rc::clone(worker),
            config: Arc::clone(config),
            route: Arc::clone(route),
            method: method.clone(),
            path: None,
            agent: None,
            client,
            request_id: None,
            consumer: None,
            tenant: None,
            status: StatusCode::OK,
            received: 0,
            sent: 0,
            bill: None,
            notes: None,
            started: if config.records { clock::now() } else { 0 },
            done: false,
        }
    }

    pub(crate) fn notes(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }

    /// Bytes of the answer's body that went out.
    pub(crate) const fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// The answer is over, or was broken off.
    pub(crate) fn finish(&mut self, complete: bool) {
        if std::mem::replace(&mut self.done, true) || !self.config.records {
            return;
        }
        let nanos = clock::now().saturating_sub(self.started);
        if !complete {
            self.worker.shared().meters.error("broken_off");
        }
        if self.config.metrics {
            self.worker.shared().meters.request(
                self.worker.series(),
                (&self.route.template, &self.method, self.status),
                nanos as f64 / 1e9,
            );
        }
        if self.bill.as_ref().is_some_and(|bill| bill.is_truncated()) {
            self.worker.shared().meters.error("upstream_truncated");
        }
        self.worker.pen().write(self, nanos / 1_000);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.finish(false);
    }
}
