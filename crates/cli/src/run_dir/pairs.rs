//! `pairs.bin`, written during a comparison.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result};
use plimsoll_engine::BlockSink;
use plimsoll_measure::Block;
use plimsoll_metrics::RunMetadata;
use plimsoll_report::pairs::{Pairs, PairsHeader, PairsWriter, read_pairs};

use super::{RunDir, file};

/// Sees blocks as they come, about once a second.
pub(crate) type BlockWatcher = Box<dyn FnMut(&[Block]) + Send>;

/// The file of blocks. Each call is one unbuffered write of whole records.
pub(crate) struct PairFile {
    writer: PairsWriter<File>,
    watcher: Option<BlockWatcher>,
}

impl PairFile {
    /// Creates the file before the load, so that an error shows before any request. `watcher` sees
    /// what is written.
    pub(crate) fn create(
        run_dir: &RunDir,
        metadata: &RunMetadata,
        watcher: Option<BlockWatcher>,
    ) -> Result<Self> {
        let path = run_dir.path().join(file::PAIRS);
        let header = PairsHeader {
            targets: metadata.targets.iter().map(|target| target.name.clone()).collect(),
            seed: metadata.run.seed,
            started_unix_ns: metadata.run.started_unix_ns,
        };
        let writer = File::create_new(&path).and_then(|out| PairsWriter::new(out, header));
        let writer = writer.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { writer, watcher })
    }

    /// Reads the file of a run.
    pub(crate) fn read(run: &Path) -> Result<Pairs> {
        let path = run.join(file::PAIRS);
        let opened =
            File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        read_pairs(&mut BufReader::new(opened)).with_context(|| path.display().to_string())
    }
}

impl BlockSink for PairFile {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        if let Some(watcher) = &mut self.watcher {
            watcher(blocks);
        }
        self.writer.write(blocks)
    }
}
