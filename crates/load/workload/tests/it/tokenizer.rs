//! Prompts sized with a tokenizer file, against that tokenizer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_measure::{ConversationKey, IdSeed, Seed};
use plimsoll_workload::{CacheMode, PrefixPool, ScenarioSpec, Trace, TraceSpec, Workload};
use serde_json::json;
use tempfile::TempDir;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{PaddingParams, PaddingStrategy, Tokenizer, TruncationParams};

use crate::support::{common, last_text, scenario, sized, texts};

fn saved(folder: &TempDir, tokenizer: &Tokenizer) -> PathBuf {
    let file = folder.path().join("tokenizer.json");
    tokenizer.save(&file, false).unwrap();
    file
}

/// A byte-level BPE of the GPT-2 kind, trained on synthetic prompts.
fn byte_level(folder: &TempDir) -> PathBuf {
    let bytes = ByteLevel::new(false, true, true);
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(bytes));
    let trainer = BpeTrainer::builder()
        .vocab_size(1_500)
        .show_progress(false)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let prompts = texts(&ScenarioSpec { content: sized(2_000), ..scenario() }, 10);
    // Words alone and after others, as in a real corpus.
    let corpus = prompts.iter().flat_map(|text| text.split(' ').chain([text.as_str()]));
    let mut trainer = TrainerWrapper::from(trainer);
    tokenizer
        .train(&mut trainer, corpus.map(str::to_owned).collect::<Vec<_>>().into_iter())
        .unwrap();
    // Settings for a model, which must have no effect.
    tokenizer
        .with_truncation(Some(TruncationParams { max_length: 16, ..Default::default() }))
        .unwrap();
    let strategy = PaddingStrategy::Fixed(64);
    tokenizer.with_padding(Some(PaddingParams { strategy, ..Default::default() }));
    saved(folder, &tokenizer)
}

fn count(file: &Path, text: &str) -> usize {
    let mut tokenizer = Tokenizer::from_file(file).unwrap();
    tokenizer.with_truncation(None).unwrap();
    tokenizer.with_padding(None);
    tokenizer.encode(text, false).unwrap().len()
}

fn prompts(file: &Path, spec: &ScenarioSpec, count: u64) -> Vec<String> {
    let specs = std::slice::from_ref(spec);
    let workload = Workload::new(specs, None, Some(file), Seed(42), IdSeed::default()).unwrap();
    (0..count)
        .map(|seq| last_text(&workload.conversation(ConversationKey::arrival(seq), None)))
        .collect()
}

#[test]
fn prompts_are_exactly_of_their_size_by_the_tokenizer() {
    let folder = TempDir::new().unwrap();
    let file = byte_level(&folder);
    for size in [2, 60, 128, 550, 3_000] {
        for cache_mode in [CacheMode::Allow, CacheMode::Bust] {
            let spec = ScenarioSpec { content: sized(size), cache_mode, ..scenario() };
            for prompt in prompts(&file, &spec, 5) {
                assert_eq!(count(&file, &prompt), size as usize, "{cache_mode:?} {prompt}");
            }
        }
    }
}

#[test]
fn prefixes_add_their_size() {
    let folder = TempDir::new().unwrap();
    let file = byte_level(&folder);
    let prefix_pool = Some(PrefixPool { share: 1.0, count: 2, approx_tokens: 300 });
    let spec = ScenarioSpec { prefix_pool, content: sized(100), ..scenario() };
    for prompt in prompts(&file, &spec, 5) {
        assert_eq!(count(&file, &prompt), 400);
    }
}

#[test]
fn rows_of_a_trace_are_of_their_size_and_keep_their_shared_blocks() {
    let folder = TempDir::new().unwrap();
    let file = byte_level(&folder);
    let lines = r#"{"timestamp": 0, "input_length": 1300, "output_length": 9, "hash_ids": [7, 8, 9]}
        {"timestamp": 5, "input_length": 1024, "output_length": 9, "hash_ids": [7, 10]}"#;
    let trace = Trace::parse(&TraceSpec::default(), lines.as_bytes()).unwrap();
    let trace = Arc::new(trace);
    let workload =
        Workload::new(&[scenario()], Some(trace), Some(&file), Seed(1), IdSeed::default()).unwrap();
    let text = |row| last_text(&workload.conversation(ConversationKey::arrival(row), Some(row)));
    let (one, other) = (text(0), text(1));
    assert_eq!([count(&file, &one), count(&file, &other)], [1_300, 1_024]);
    assert!((2_048..2_112).contains(&common(&one, &other)));
}

#[test]
fn a_tokenizer_of_words_works_too() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("words.json");
    let words = texts(&ScenarioSpec { content: sized(5_000), ..scenario() }, 1).remove(0);
    let vocabulary: serde_json::Map<_, _> = words
        .split_whitespace()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .zip(1..)
        .map(|(word, id)| (word.to_owned(), json!(id)))
        .chain([("[UNK]".to_owned(), json!(0))])
        .collect();
    let tokenizer = json!({
        "version": "1.0",
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    std::fs::write(&file, tokenizer.to_string()).unwrap();
    let cache_mode = CacheMode::Bust;
    let spec = ScenarioSpec { content: sized(77), cache_mode, ..scenario() };
    for prompt in prompts(&file, &spec, 5) {
        assert_eq!(count(&file, &prompt), 77, "{prompt}");
    }
}

#[test]
fn tokenizers_that_cannot_be_used_are_refused_with_the_fix() {
    let folder = TempDir::new().unwrap();
    let refusal = |file: &Path| {
        let error =
            Workload::new(&[scenario()], None, Some(file), Seed(1), IdSeed::default()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("or leave `tokenizer` out"), "{message}");
        message
    };
    assert!(refusal(&folder.path().join("none.json")).contains("none.json: the tokenizer"));
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, "{}").unwrap();
    assert!(refusal(&broken).contains("broken.json: the tokenizer"));
    // One token for every byte.
    let mut bytes = Tokenizer::new(BPE::default());
    bytes.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    let mut trainer = TrainerWrapper::from(
        BpeTrainer::builder()
            .show_progress(false)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .build(),
    );
    bytes.train(&mut trainer, std::iter::empty::<String>()).unwrap();
    let message = refusal(&saved(&folder, &bytes));
    assert!(message.contains("fewer than 32 of the words"), "{message}");
}
