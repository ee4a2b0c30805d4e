//! How often each target called its upstream, by the upstream's own log.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result};
use plimsoll_measure::{Block, ConversationKey, IdSeed, Nanos, TargetId};
use plimsoll_metrics::{LoadModel, RunMetadata};
use plimsoll_workload::conversation_id;
use serde::Deserialize;

use plimsoll_runner::time::sleep;

/// The mock writes a record within 200 ms of its end.
const UNTIL_WRITTEN: Nanos = Nanos::from_millis(500);

/// What is read of a record of the mock's log.
#[derive(Deserialize)]
struct Record {
    request_id: Option<String>,
    /// The beginning of the prompt, with `log_text: true`: gateways replace headers, but not
    /// prompts.
    prompt_head: Option<String>,
}

/// Characters of an id.
const ID: usize = 36;

/// The calls that belong to the turns of each target, by target.
pub(super) fn calls(log: &Path, metadata: &RunMetadata, blocks: &[Block]) -> Result<Vec<u64>> {
    sleep(UNTIL_WRITTEN);
    let targets = target_by_id(metadata, blocks);
    let mut calls = vec![0; metadata.targets.len()];
    let file =
        plimsoll_input::open(log).with_context(|| format!("cannot read {}", log.display()))?;
    for line in BufReader::new(file).lines() {
        let line = line.with_context(|| log.display().to_string())?;
        // The last line may still be on its way.
        let Ok(record) = serde_json::from_str::<Record>(&line) else { continue };
        if let Some(target) = ids(&record).find_map(|id| targets.get(id)) {
            calls[target.index()] += 1;
        }
    }
    Ok(calls)
}

/// The target of every conversation, by its id; of those that are compared: not in the windows that
/// show whether targets disturb each other.
fn target_by_id(metadata: &RunMetadata, blocks: &[Block]) -> HashMap<String, TargetId> {
    let ids: IdSeed = metadata.run.id_seed();
    let targets = u16::try_from(metadata.targets.len()).unwrap_or(u16::MAX);
    let beside = blocks.iter().any(|block| block.window.is_none());
    let compared = blocks.iter().filter(|block| !beside || block.window.is_none());
    compared
        .flat_map(|block: &Block| {
            let stage = metadata.stages.get(block.stage.index());
            let closed = stage.is_some_and(|stage| stage.model == LoadModel::Closed);
            let key = ConversationKey::numbered(block.index, closed);
            (0..targets).map(TargetId).map(move |target| {
                let id = conversation_id(ids, key.on(target, targets));
                (id.as_str().to_owned(), target)
            })
        })
        .collect()
}

/// What may be the id of a record's conversation: in its request id, or before its prompt.
fn ids(record: &Record) -> impl Iterator<Item = &str> {
    let sent = record.request_id.as_deref().and_then(|id| id.get(..ID));
    let prompt = record.prompt_head.as_deref().and_then(|text| text.split_once('['));
    sent.into_iter().chain(prompt.and_then(|(_, rest)| rest.get(..ID)))
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::{ScenarioId, StageId};
    use plimsoll_metrics::{StageInfo, TargetInfo};

    use super::*;

    /// Two targets; the second one called twice for one of its two turns, under ids of its own.
    #[test]
    fn calls_are_found_by_request_ids_and_by_prompts() {
        let stage = |model| StageInfo { model, ..StageInfo::default() };
        let metadata = RunMetadata {
            targets: vec![TargetInfo::default(), TargetInfo::default()],
            stages: vec![stage(LoadModel::Open), stage(LoadModel::Closed)],
            ..RunMetadata::default()
        };
        let block = |index, stage| Block {
            index,
            turn: 0,
            stage: StageId(stage),
            scenario: ScenarioId(0),
            start: Nanos::ZERO,
            window: None,
            turns: vec![None, None],
        };
        let alone = Block { window: Some(0), ..block(4, 0) };
        let blocks = [block(3, 0), block(3, 1), alone];
        let ids = metadata.run.id_seed();
        let (open, closed) = (ConversationKey::arrival(3), ConversationKey::iteration(0, 3));
        let id = |key: ConversationKey, target| {
            conversation_id(ids, key.on(TargetId(target), 2)).as_str().to_owned()
        };
        let by_id = |id: String| format!(r#"{{"request_id":"{id}-0","sequence":1}}"#);
        let by_prompt =
            |id: String| format!(r#"{{"request_id":"own","prompt_head":"[{id}]  hello"}}"#);
        let log = [
            by_id(id(open, 0)),
            by_id(id(closed, 0)),
            by_prompt(id(open, 1)),
            by_prompt(id(open, 1)),
            by_prompt(id(closed, 1)),
            by_id("0".repeat(40)),
            by_id(id(ConversationKey::arrival(4), 1)),
            r#"{"request_id":null}"#.to_owned(),
            r#"{"request_"#.to_owned(),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mock.jsonl");
        std::fs::write(&path, log.join("\n")).unwrap();
        assert_eq!(calls(&path, &metadata, &blocks).unwrap(), [2, 3]);
    }
}
