//! What an answer costs is read off while it passes.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::Bytes;
use plimsoll_gateway_dialect::{Endpoint, StreamStatus, Usage, UsageObserver};
use tokio::task::spawn_local;

use crate::body::Broken;
use crate::budget::Tab;
use crate::config::Config;
use crate::relay::Tap;

/// What an answer cost, for the books.
#[derive(Debug, Default)]
pub(crate) struct Bill {
    usage: Cell<Option<Usage>>,
    truncated: Cell<bool>,
}

impl Bill {
    pub(crate) fn enter(&self, usage: Option<Usage>) {
        self.usage.set(usage);
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage.get()
    }

    /// Did the upstream's stream end before its last event, although the connection was closed politely?
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated.get()
    }
}

/// Reads usage off a passing answer, and settles with the budget when it is over. The bytes stay as they are:
/// a stream that was cut short arrives as such.
pub(crate) struct Meter {
    tap: UsageObserver,
    stream: bool,
    tab: Option<Tab>,
    bill: Rc<Bill>,
    config: Arc<Config>,
}

impl Meter {
    /// `endpoint` is the upstream's, whose words the answer uses.
    pub(crate) fn new(
        (endpoint, stream): (Endpoint, bool),
        tab: Option<Tab>,
        bill: &Rc<Bill>,
        config: &Arc<Config>,
    ) -> Self {
        let tap =
            if stream { UsageObserver::stream(endpoint) } else { UsageObserver::body(endpoint) };
        Self { tap, stream, tab, bill: Rc::clone(bill), config: Arc::clone(config) }
    }

    fn settle(&mut self) {
        let usage = self.tap.usage();
        self.bill.enter(usage);
        if let Some(tab) = self.tab.take() {
            let (config, counted) = (Arc::clone(&self.config), self.tap.content_events());
            soon(async move { tab.settle(&config, usage, counted).await });
        }
    }
}

impl Tap for Meter {
    fn piece(&mut self, piece: Bytes) -> Result<Bytes, Broken> {
        self.tap.feed(&piece);
        Ok(piece)
    }

    fn end(&mut self) -> Result<Bytes, Broken> {
        let ending = self.tap.finish();
        self.bill.truncated.set(self.stream && ending == StreamStatus::Truncated);
        self.settle();
        Ok(Bytes::new())
    }

    fn is_silent(&self) -> bool {
        true
    }
}

/// An answer that broke off costs what came of it.
impl Drop for Meter {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Carries something out now if it need not wait, else as a task of its own.
pub(crate) fn soon(work: impl Future<Output = ()> + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        spawn_local(work);
    }
}
