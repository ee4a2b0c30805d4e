//! A build without the cargo feature `tokenizer`.

use std::path::Path;

use plimsoll_measure::{IdSeed, Seed};
use plimsoll_workload::Workload;

use crate::support::scenario;

#[test]
fn a_tokenizer_is_refused_with_the_feature_that_reads_it() {
    let file = Path::new("tokens.json");
    let message = Workload::new(&[scenario()], None, Some(file), Seed(1), IdSeed::default())
        .unwrap_err()
        .to_string();
    for part in ["tokens.json: this build", "`cargo build --release --features tokenizer`"] {
        assert!(message.contains(part), "{message}");
    }
}
