//! `pairs.bin`, written during a comparison.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use plimsoll_engine::BlockSink;
use plimsoll_measure::Block;
use plimsoll_metrics::RunMetadata;
use plimsoll_run_files::pairs::{Pairs, PairsHeader, PairsWriter, read_pairs};

use super::{RunDir, file};
use crate::error::RunnerError;

/// Sees blocks as they come, about once a second.
pub type BlockWatcher = Box<dyn FnMut(&[Block]) + Send>;

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
    ) -> Result<Self, RunnerError> {
        let path = run_dir.path().join(file::PAIRS);
        let header = PairsHeader {
            targets: metadata.targets.iter().map(|target| target.name.clone()).collect(),
            seed: metadata.run.seed,
            started_unix_ns: metadata.run.started_unix_ns,
        };
        let writer = File::create_new(&path).and_then(|out| PairsWriter::new(out, header));
        let writer = writer.map_err(|source| RunnerError::Write { path, source })?;
        Ok(Self { writer, watcher })
    }
}

/// Reads the blocks of a run that compared targets.
///
/// # Errors
/// The folder has no such file, or it cannot be read.
pub fn read_blocks(run: &Path) -> Result<Pairs, RunnerError> {
    let path = run.join(file::PAIRS);
    let opened = match plimsoll_input::open(&path) {
        Ok(opened) => opened,
        Err(source) => return Err(RunnerError::Read { path, source }),
    };
    read_pairs(&mut BufReader::new(opened)).map_err(|source| RunnerError::Blocks { path, source })
}

impl BlockSink for PairFile {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        if let Some(watcher) = &mut self.watcher {
            watcher(blocks);
        }
        self.writer.write(blocks)
    }
}
