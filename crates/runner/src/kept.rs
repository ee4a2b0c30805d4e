//! Samples and blocks that are kept in memory.

use std::io;
use std::sync::{Arc, Mutex};

use plimsoll_engine::{BlockSink, SampleBatch, SampleSink};
use plimsoll_measure::{Block, Sample};

/// Keeps every sample in memory, in batches: one list would be copied for milliseconds whenever it
/// grows, on a core that may be the generator's.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptSamples(Arc<Mutex<Vec<Vec<Sample>>>>);

impl KeptSamples {
    pub(crate) fn take(&self) -> Vec<Sample> {
        self.0.lock().map(|mut batches| std::mem::take(&mut *batches).concat()).unwrap_or_default()
    }
}

impl SampleSink for KeptSamples {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let mut kept = self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        kept.push(batch.samples.clone());
        Ok(())
    }
}

/// Keeps every block in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptBlocks(Arc<Mutex<Vec<Block>>>);

impl KeptBlocks {
    pub(crate) fn take(&self) -> Vec<Block> {
        self.0.lock().map(|mut blocks| std::mem::take(&mut *blocks)).unwrap_or_default()
    }
}

impl BlockSink for KeptBlocks {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        let mut kept = self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        kept.extend_from_slice(blocks);
        Ok(())
    }
}
