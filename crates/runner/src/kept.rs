//! Samples and blocks that are kept in memory.

use std::io;
use std::sync::{Arc, Mutex};

use plimsoll_engine::{BlockSink, SampleBatch, SampleSink};
use plimsoll_measure::{Block, Sample};

/// Keeps every sample or block in memory, in batches: one list would be copied for milliseconds
/// whenever it grows, on a core that may be the generator's.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T>(Arc<Mutex<Vec<Vec<T>>>>);

impl<T: Clone> Kept<T> {
    pub(crate) fn take(&self) -> Vec<T> {
        self.0.lock().map(|mut batches| std::mem::take(&mut *batches).concat()).unwrap_or_default()
    }

    fn keep(&self, batch: &[T]) -> io::Result<()> {
        let mut kept = self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        kept.push(batch.to_vec());
        Ok(())
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl SampleSink for Kept<Sample> {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        self.keep(&batch.samples)
    }
}

impl BlockSink for Kept<Block> {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        self.keep(blocks)
    }
}
