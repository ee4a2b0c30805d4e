//! The rows of all shards in one file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use plimsoll_run_files::{BoundedLines, find_rows, open_rows};

use crate::error::MergeError;
use crate::shard_set::ShardSet;

/// Writes the lines of `name` (`results.jsonl` or `tasks.jsonl`) of all shards, by intended start
/// where they have one, and returns their number. One line of each shard is in memory. Lines that
/// are cut are left out, and files that are damaged.
///
/// # Errors
/// A file cannot be read, or `out` cannot be written.
pub fn merge_rows(set: &ShardSet, name: &str, out: &mut dyn Write) -> Result<u64, MergeError> {
    let mut files = Vec::new();
    for shard in set.shards() {
        let Some(path) = find_rows(shard.folder(), name) else { continue };
        if path.file_name().is_some_and(|name| !shard.is_whole(&name.to_string_lossy())) {
            continue;
        }
        match open_rows(&path) {
            Ok(file) => files.push(BoundedLines::new(file)),
            Err(source) => return Err(MergeError::Read { path, source }),
        }
    }
    let mut next = BinaryHeap::new();
    for (index, file) in files.iter_mut().enumerate() {
        next.extend(file.next().map(|line| Reverse((intended(&line), index, line))));
    }
    let mut rows = 0;
    while let Some(Reverse((_, index, line))) = next.pop() {
        if line.ends_with(b"}") {
            out.write_all(&line).and_then(|()| out.write_all(b"\n")).map_err(MergeError::Write)?;
            rows += 1;
        }
        next.extend(files[index].next().map(|line| Reverse((intended(&line), index, line))));
    }
    Ok(rows)
}

/// The intended start in a row, in nanoseconds since 1970 UTC; 0 if it has none.
fn intended(line: &[u8]) -> u64 {
    const KEY: &[u8] = b"\"intended_unix_ns\":";
    let Some(at) = line.windows(KEY.len()).position(|window| window == KEY) else { return 0 };
    let digits = line[at + KEY.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u64, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    })
}
