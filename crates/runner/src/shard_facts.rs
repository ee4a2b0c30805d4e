//! Facts of a comparison's shard besides its blocks: `facts.json` in its folder.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::Path;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{ProcessTrack, RunSummary};
use plimsoll_run_files::pairs::{Pairs, PairsWriter};
use plimsoll_versus::Facts;
use serde::{Deserialize, Serialize};

use crate::error::RunnerError;
use crate::facts::{After, complete};
use crate::folder::{RunDir, file, read_blocks};

/// Facts of a comparison's shard besides its blocks, or of several shards together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShardFacts {
    /// Facts that were known before the load.
    pub facts: Facts,
    /// By target: when it was taken out, after the run's start.
    pub taken_out: Vec<Option<Nanos>>,
    /// The CPU time of watched processes over time.
    pub tracks: Vec<ProcessTrack>,
}

impl ShardFacts {
    /// Writes them into the folder of a shard.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, folder: &RunDir) -> Result<(), RunnerError> {
        folder.write(file::FACTS, &serde_json::to_vec(self)?)
    }

    /// Facts in the folder of a shard; `None` if it compared nothing.
    ///
    /// # Errors
    /// The file cannot be read, or is of another version.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunnerError> {
        let path = folder.join(file::FACTS);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RunnerError::Read { path, source }),
        };
        let parsed = serde_json::from_slice(&bytes);
        parsed.map(Some).map_err(|source| RunnerError::Facts { path, source })
    }

    /// Adds another shard of the same run: plans add up, and an observation of one shard applies to
    /// the whole. A process that several shards watched is one process: the longest record of it
    /// counts.
    fn add(&mut self, other: Self) {
        let facts = &mut self.facts;
        facts.planned_blocks += other.facts.planned_blocks;
        facts.rate = facts.rate.zip(other.facts.rate).map(|rates| rates.0 + rates.1);
        facts.same_host &= other.facts.same_host;
        for (target, other) in facts.targets.iter_mut().zip(other.facts.targets) {
            let new = other.setup.into_iter().filter(|how| !target.setup.contains(how));
            target.setup.extend(new.collect::<Vec<_>>());
        }
        for (out, other) in self.taken_out.iter_mut().zip(other.taken_out) {
            *out = [*out, other].into_iter().flatten().min();
        }
        for track in other.tracks {
            match self.tracks.iter_mut().find(|known| known.name == track.name) {
                Some(known) if known.readings.len() < track.readings.len() => *known = track,
                Some(_) => {}
                None => self.tracks.push(track),
            }
        }
    }
}

/// The shards of a comparison together.
#[derive(Clone, Debug)]
pub struct ComparedShards {
    known: ShardFacts,
    /// All blocks.
    pub pairs: Pairs,
    /// Files that cannot be read, and how: the blocks of their shards are not among these.
    pub damaged: Vec<String>,
}

impl ComparedShards {
    /// Reads the folders of shards; `None` if they compared nothing. A shard that was late has no
    /// blocks.
    pub fn read<'f>(folders: impl IntoIterator<Item = &'f Path>) -> Option<Self> {
        let (mut all, mut damaged): (Option<Self>, _) = (None, Vec::new());
        for folder in folders {
            match (&mut all, Self::read_one(folder)) {
                (_, Ok(None)) => {}
                (_, Err(error)) => damaged.push(error.to_string()),
                (Some(all), Ok(Some(shard))) => {
                    all.known.add(shard.known);
                    all.pairs.add(shard.pairs);
                }
                (none, Ok(shard)) => *none = shard,
            }
        }
        all.map(|all| Self { damaged, ..all })
    }

    /// A single shard, if it compared targets and began.
    fn read_one(folder: &Path) -> Result<Option<Self>, RunnerError> {
        let Some(known) = ShardFacts::read(folder)? else { return Ok(None) };
        if !folder.join(file::PAIRS).exists() {
            return Ok(None);
        }
        let pairs = read_blocks(folder)?;
        Ok(Some(Self { known, pairs, damaged: Vec::new() }))
    }

    /// Facts for the judge, once the counts of the shards are added up.
    pub fn facts(&self, summary: &RunSummary) -> Facts {
        let ShardFacts { facts, taken_out, tracks } = &self.known;
        let mut facts = facts.clone();
        let one_in = self.pairs.one_in;
        complete(&mut facts, &After { summary, taken_out, tracks, one_in });
        facts
    }

    /// Writes the blocks into the folder of the whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, folder: &RunDir) -> Result<(), RunnerError> {
        let path = folder.path().join(file::PAIRS);
        let written = File::create(&path).and_then(|out| {
            let mut out = BufWriter::new(out);
            PairsWriter::write_pairs(&mut out, &self.pairs)?;
            out.flush()
        });
        written.map_err(|source| RunnerError::Write { path, source })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_rules::Finding;
    use plimsoll_versus::TargetFacts;

    use super::*;

    fn shard(setup: &[&str], out_s: Option<u64>, readings: u64) -> ShardFacts {
        let target = TargetFacts {
            name: "a".to_owned(),
            setup: setup.iter().map(|what| Finding::new(402).with("what", what)).collect(),
            ..TargetFacts::default()
        };
        let second = Nanos::from_secs;
        ShardFacts {
            facts: Facts {
                targets: vec![target],
                planned_blocks: 100,
                rate: Some(5.0),
                same_host: readings > 0,
                ..Facts::default()
            },
            taken_out: vec![out_s.map(second)],
            tracks: vec![ProcessTrack {
                name: "a".to_owned(),
                readings: (0..readings).map(|s| (second(s), second(s))).collect(),
            }],
        }
    }

    #[test]
    fn plans_add_up_and_what_one_shard_saw_holds_for_the_whole() {
        let mut all = shard(&["model"], None, 0);
        all.add(shard(&["model", "answers"], Some(9), 4));
        all.add(shard(&[], Some(7), 2));
        assert_eq!((all.facts.planned_blocks, all.facts.rate), (300, Some(15.0)));
        let setup = all.facts.targets[0].setup.iter().map(|finding| &*finding.values["what"]);
        assert_eq!(setup.collect::<Vec<_>>(), ["model", "answers"]);
        assert_eq!(all.taken_out, [Some(Nanos::from_secs(7))]);
        assert_eq!((all.tracks.len(), all.tracks[0].readings.len()), (1, 4));
        assert!(!all.facts.same_host);
    }

    #[test]
    fn a_file_of_facts_reads_back() {
        let known = shard(&["answers 500, d 200"], Some(9), 3);
        let text = serde_json::to_vec(&known).unwrap();
        let again: ShardFacts = serde_json::from_slice(&text).unwrap();
        assert_eq!(serde_json::to_vec(&again).unwrap(), text);
        assert_eq!((again.taken_out, again.tracks), (known.taken_out, known.tracks));
    }
}
