//! Checks of the configuration's values.

use crate::distribution::{Distribution, Quantity};
use crate::fault::FaultShare;

pub(crate) fn check_faults(faults: &[FaultShare], path: &str, problems: &mut Vec<String>) {
    for fault in faults {
        check_share(fault.share, path, "faults", problems);
    }
    let sum = faults.iter().map(|fault| fault.share).sum();
    check_share(sum, path, "faults, added up", problems);
}

pub(crate) fn check_distribution<T: Quantity>(
    distribution: &Distribution<T>,
    path: &str,
    key: &str,
    problems: &mut Vec<String>,
) {
    problems.extend(distribution.problem().map(|problem| format!("{path}.{key}: {problem}")));
}

pub(crate) fn check_positive(value: u32, path: &str, key: &str, problems: &mut Vec<String>) {
    if value == 0 {
        problems.push(format!("{path}.{key}: at least 1 is needed"));
    }
}

pub(crate) fn check_share(share: f64, path: &str, key: &str, problems: &mut Vec<String>) {
    // Rounding may push the sum of shares slightly above 1.
    if !(0.0..=1.0 + 1e-9).contains(&share) {
        problems.push(format!("{path}.{key}: {share} is not a share from 0 to 1"));
    }
}
