//! Any bytes as a recorded trace: no panic, errors have a message, and an accepted trace is in time
//! order, within its window, with a request for every arrival, whatever the read size.
//!
//! Input: a byte for the format and window, one for the time scale; then the file.

#![no_main]

use std::io::{BufReader, Cursor};

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::Nanos;
use plimsoll_workload::{Trace, TraceSpec};

fn spec(kind: u8, scale: u8) -> TraceSpec {
    let windowed = kind & 2 != 0;
    let format =
        ["azure", "mooncake", "bailian", "burstgpt"][usize::from((kind & 1) | ((kind & 4) >> 1))];
    TraceSpec {
        file: "trace".into(),
        format: Some(format.to_owned()),
        block_size: (kind & 8 != 0).then_some(16),
        time_scale: Some(f64::from(scale) / 10.0),
        skip_broken: kind & 16 != 0,
        from: windowed.then_some(Nanos::from_millis(100)),
        to: windowed.then_some(Nanos::from_millis(10_000)),
        ..TraceSpec::default()
    }
}

fn read(spec: &TraceSpec, capacity: usize, file: &[u8]) -> Result<Vec<Nanos>, String> {
    let trace = Trace::parse(spec, BufReader::with_capacity(capacity, Cursor::new(file.to_vec())))
        .map_err(|error| error.to_string())?;
    let offsets = trace.offsets();
    assert!(offsets.is_sorted());
    assert!(!offsets.is_empty());
    assert!((0..offsets.len() as u64).all(|row| trace.row(row).is_some()));
    assert!(trace.row(offsets.len() as u64).is_none());
    Ok(offsets.to_vec())
}

fuzz_target!(|input: &[u8]| {
    let [kind, scale, file @ ..] = input else { return };
    let spec = spec(*kind, *scale);
    let whole = read(&spec, 1 << 16, file);
    assert_eq!(read(&spec, 1, file), whole);
    if let Err(message) = whole {
        assert!(!message.is_empty());
    }
});
