//! The state that all workers share: configuration, metrics, store, request log, TLS.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arc_swap::{ArcSwap, ArcSwapOption};
use plimsoll_gateway_store::{Backend, RedisSettings, Sizes};
use rustls::ServerConfig;
use tokio::sync::watch;

use crate::assembly::config::{Config, Source};
use crate::assembly::spec::{Spec, StoreSpec};
use crate::base::memory::MemoryBudget;
use crate::config::error::GatewayError;
use crate::config::tls;
use crate::layers::metrics::Metrics;
use crate::layers::owners::Owners;
use crate::layers::request_log::RequestLog;
use crate::layers::tool_server::ToolDirectory;

/// The state that all workers share.
pub(crate) struct GatewayState {
    pub(crate) config: Arc<ArcSwap<Config>>,
    pub(crate) metrics: Metrics,
    pub(crate) backend: Backend,
    pub(crate) request_log: RequestLog,
    pub(crate) tls: ArcSwapOption<ServerConfig>,
    pub(crate) memory: Arc<MemoryBudget>,
    /// Owners of chats and runs in progress.
    pub(crate) owners: Arc<Owners>,
    /// Runs in progress.
    pub(crate) runs: Arc<AtomicUsize>,
    pub(crate) tools: ToolDirectory,
    /// Mixed into request ids, so that two gateway processes generate different ones.
    pub(crate) salt: u64,
    /// Notifies the first worker of a new configuration.
    pub(crate) reloaded: watch::Sender<()>,
    source: Source,
    /// The configuration at the start.
    started: Spec,
}

impl std::fmt::Debug for GatewayState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = &self.config.load().spec.name;
        f.debug_struct("GatewayState").field("config", name).finish_non_exhaustive()
    }
}

impl GatewayState {
    pub(crate) fn new(spec: &Spec, source: Source) -> Result<Self, GatewayError> {
        let config = Config::new(spec)?;
        let metrics = Metrics::new();
        metrics.set_layers(&config.layer_names);
        let tools = ToolDirectory::new(config.layers.tools.as_ref());
        let memory = MemoryBudget::new(spec.server.memory.0);
        Ok(Self {
            tools,
            config: Arc::new(ArcSwap::from_pointee(config)),
            metrics,
            backend: open_backend(spec)?,
            request_log: RequestLog::open(spec.audit.as_ref(), spec.access_log.as_ref())?,
            owners: Owners::new(&memory, &spec.server),
            memory,
            runs: Arc::default(),
            tls: spec.tls.as_ref().map(tls::config).transpose()?.into(),
            salt: crate::base::clock::unix_ms().wrapping_mul(0x9e37_79b9)
                ^ u64::from(std::process::id()) << 40,
            reloaded: watch::channel(()).0,
            source,
            started: spec.clone(),
        })
    }

    /// Runs all checks of a start, except for the listening addresses. Writes and sends nothing.
    pub(crate) fn check(spec: &Spec) -> Result<(), GatewayError> {
        Config::new(spec)?;
        RequestLog::check(spec.audit.as_ref(), spec.access_log.as_ref())?;
        spec.tls.as_ref().map(tls::config).transpose()?;
        open_backend(spec).map(drop)
    }

    /// Reads the configuration file again and applies it, with the TLS files that it names. An
    /// invalid file, or one that needs a restart, changes nothing.
    pub(crate) fn reload(&self) -> Result<Arc<Config>, GatewayError> {
        let Source::File(path) = &self.source else {
            return Err(GatewayError::NoFile);
        };
        let spec = Spec::open(path)?;
        // A partly written file may be valid.
        if spec.routes.is_empty() && !self.config.load().spec.routes.is_empty() {
            return Err(GatewayError::Empty);
        }
        let config = Arc::new(Config::new(&spec)?);
        let unable = self.started.needs_restart(&spec);
        if !unable.is_empty() {
            return Err(GatewayError::Restart(unable));
        }
        self.tls.store(spec.tls.as_ref().map(tls::config).transpose()?);
        self.metrics.set_layers(&config.layer_names);
        self.metrics.upstreams.clear();
        self.memory.set_limit(config.server.memory.0);
        self.owners.configure(&config.server);
        self.tools.configure(config.layers.tools.as_ref());
        self.config.store(Arc::clone(&config));
        self.reloaded.send_replace(());
        Ok(config)
    }

    /// Updates the gauges.
    pub(crate) fn update_gauges(&self) {
        self.metrics.store_errors.set(self.backend.errors().cast_signed());
        self.metrics.memory.set(i64::try_from(self.memory.reserved()).unwrap_or(i64::MAX));
        let (up, down) = self.tools.counts();
        self.metrics.set_tool_servers(up, down);
        self.metrics.audit_failing.set(self.request_log.failing().next().is_some().into());
        if let Some(stats) = self.request_log.stats() {
            let states = [
                ("accepted", stats.accepted),
                ("written", stats.written),
                ("dropped", stats.dropped.total()),
                ("queued", stats.queued),
            ];
            for (state, rows) in states {
                self.metrics.set_audit_rows(state, rows);
            }
        }
    }
}

fn open_backend(spec: &Spec) -> Result<Backend, GatewayError> {
    let Some(url) = &spec.store.redis else {
        let cache_bytes = usize::try_from(spec.cache_bytes()).unwrap_or(usize::MAX);
        return Ok(Backend::memory(Sizes { cache_bytes, ..Sizes::default() }));
    };
    let url = url.reveal().map_err(GatewayError::Store)?;
    let StoreSpec { on_loss, timeout, .. } = spec.store;
    let settings = RedisSettings { timeout: timeout.0, on_loss, ..RedisSettings::new(url) };
    Backend::redis(settings).map_err(|error| GatewayError::Store(error.to_string()))
}
