//! The differences as CSV, one per line.

use std::fmt::Write as _;

use plimsoll_run_files::{RunFileError, read_stored};

use crate::result::{SCHEMA, Versus};

const HEAD: &str = "target,reference,figure,kind,quantile,value_ns,low_ns,high_ns,at_least_ns,\
                    at_most_ns,pairs,p,refused,interval,answers,streams\n";

/// Formats the differences as CSV with a header line. A missing difference has empty cells and its
/// reason. `at_least_ns` and `at_most_ns` are the interval widened by the measurement error.
/// `interval` is `fixed`, or `always_valid` if the run could end at any moment; `answers` is
/// `differ` if the targets did different work; `streams` is the shape of the target's streams.
pub fn csv(versus: &Versus) -> String {
    let mut out = HEAD.to_owned();
    let interval = if versus.stopping.is_some() { "always_valid" } else { "fixed" };
    for found in &versus.differences {
        let kind = found.kind.name();
        let answers = if found.other_answers { "differ" } else { "alike" };
        let target = versus.targets.iter().find(|target| target.name == found.target);
        let streams = target.and_then(|target| target.streams);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{},{},{},{kind},{},{},{},{},{},{},{},{},{},{interval},{answers},{}",
            cell(&found.target),
            cell(&found.reference),
            found.figure.name(),
            found.quantile,
            number(found.value_ns),
            number(found.low_ns),
            number(found.high_ns),
            number(found.lies_between().map(|between| between.0)),
            number(found.lies_between().map(|between| between.1)),
            found.pairs,
            number(found.p),
            cell(found.refused.as_deref().unwrap_or_default()),
            cell(&streams.map(|streams| streams.cell()).unwrap_or_default()),
        );
    }
    out
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Quotes a cell if RFC 4180 requires it.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

// Writes and reads `versus.json`.

/// Formats the result as indented JSON with a final newline.
///
/// # Errors
/// Fails if serde does, which a result of [`crate::judge`] does not cause.
pub fn json(versus: &Versus) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(versus)? + "\n")
}

/// Parses the output of [`json`].
///
/// # Errors
/// [`RunFileError`] if the file is damaged or has another layout.
pub fn read_json(bytes: &[u8]) -> Result<Versus, RunFileError> {
    read_stored(bytes, SCHEMA)
}
