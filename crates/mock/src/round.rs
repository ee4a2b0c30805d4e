//! Rounding.

/// Rounds a non-negative number. (`f64::round` calls the C library on plain x86-64, and this runs
/// for every token.)
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate, and distributions give nothing below zero"
)]
pub(crate) fn round(number: f64) -> u64 {
    (number + 0.5) as u64
}
