//! An event loop beside the load.

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::error::EngineError;

/// An event loop of this thread, for work other than load.
pub(crate) fn local_runtime() -> Result<LocalRuntime, EngineError> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build_local(LocalOptions::default()).map_err(EngineError::Worker)
}
