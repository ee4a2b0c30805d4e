//! Instances for a rate, from the measured capacity.

use crate::table::Table;
use crate::words::{bytes, rate, whole};

/// Share of an instance's capacity that is planned with: above, queues grow fast and a lost instance cannot be made
/// up for.
const HEADROOM: f64 = 0.7;
/// Rates that everybody asks for.
const USUAL: [f64; 4] = [1_000.0, 10_000.0, 50_000.0, 100_000.0];

/// What one instance was seen to carry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// Of what.
    pub(crate) what: String,
    /// Requests per second of one instance on this machine.
    pub(crate) per_s: f64,
    /// Cores that it used.
    pub(crate) cores: Option<f64>,
    /// Largest memory of the process, in bytes.
    pub(crate) memory: Option<u64>,
}

/// Instances that carry a rate with headroom; at least one.
pub(crate) fn instances(wanted: f64, per_s: f64) -> Option<u64> {
    let exact = wanted / (per_s * HEADROOM);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a number within range"
    )]
    (exact.is_finite() && exact < 1e15).then(|| (exact.ceil() as u64).max(1))
}

/// The sizing table, and what it rests on.
pub(crate) fn table(capacities: &[Capacity], wanted: Option<f64>) -> (Table, Vec<String>) {
    let mut rates: Vec<f64> = USUAL.into_iter().chain(wanted).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let names = rates.iter().map(|wanted| format!("for {}/s", rate(Some(*wanted))));
    let head = ["service", "measured/s", "cores", "memory"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(names));
    for capacity in capacities {
        let counts = rates.iter().map(|wanted| {
            instances(*wanted, capacity.per_s).map_or_else(crate::words::dash, whole)
        });
        let fixed = [
            capacity.what.clone(),
            rate(Some(capacity.per_s)),
            crate::words::plain(capacity.cores),
            bytes(capacity.memory),
        ];
        table.row(fixed.into_iter().chain(counts));
    }
    let notes = vec![
        format!(
            "instances = rate / (measured x {HEADROOM}), rounded up; add one where the loss of an instance must not be felt"
        ),
        "an extrapolation from one instance on the machine named above: it assumes that instances do not slow each other down, which was not measured, and payloads like these".to_owned(),
    ];
    (table, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_have_headroom_and_are_at_least_one() {
        for (wanted, per_s, expected) in [
            (1_000.0, 68_000.0, Some(1)),
            // 70,000 of one instance's 70,000 (70 % of 100,000) fit exactly, one more does not.
            (70_000.0, 100_000.0, Some(1)),
            (70_001.0, 100_000.0, Some(2)),
            // The seed: more than 70,000/s needs several instances of 68,000/s.
            (70_000.0, 68_000.0, Some(2)),
            (100_000.0, 961.0, Some(149)),
            (1.0, 0.0, None),
        ] {
            assert_eq!(instances(wanted, per_s), expected, "{wanted} by {per_s}");
        }
    }

    #[test]
    fn the_users_own_rate_is_a_column_in_its_place() {
        let capacity =
            Capacity { what: "x".to_owned(), per_s: 1_000.0, cores: Some(1.0), memory: None };
        let (table, _) = table(&[capacity], Some(2_500.0));
        let text = table.text(200);
        let head = text.lines().next().unwrap();
        assert!(head.contains("for 1,000/s  for 2,500/s"), "{head}");
        assert!(text.lines().any(|line| line.contains("2  ") && line.ends_with("143")), "{text}");
    }
}
