//! A hash of everything that determines a schedule, stable over releases and machines.
//!
//! 64-bit FNV-1a (Fowler, Noll, Vo; offset basis `cbf29ce484222325`, prime `100000001b3`) over
//! these bytes:
//!
//! 1. `plimsoll-schedule-1 STAGES PROCESS SEED` in ASCII, with the stages in their canonical
//!    notation, `constant` or `poisson`, and the seed in decimal;
//! 2. only if a stage plays the trace: every offset in nanoseconds, as 8 bytes, little-endian.
//!
//! A change to how arrivals are computed must change the leading number.

use plimsoll_measure::{Nanos, Seed};

use crate::spec::{Arrivals, Stages};

pub(crate) fn fingerprint(
    stages: &Stages,
    process: Arrivals,
    seed: Seed,
    offsets: &[Nanos],
) -> u64 {
    let process = match process {
        Arrivals::Constant => "constant",
        Arrivals::Poisson => "poisson",
    };
    let head = format!("plimsoll-schedule-1 {stages} {process} {}", seed.0);
    let trace = offsets.iter().filter(|_| stages.play_trace());
    let tail = trace.flat_map(|offset| offset.as_u64().to_le_bytes());
    head.into_bytes().into_iter().chain(tail).fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}
