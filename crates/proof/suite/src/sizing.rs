//! The number of instances for a rate, from the measured capacity.

use plimsoll_report::format::{DASH, bytes, count, digits, or_dash};
use plimsoll_report::table::Table;

/// Share of an instance's capacity that is planned with. Above it queues grow fast, and the others
/// cannot replace a lost instance.
const HEADROOM: f64 = 0.7;
/// Rates that are always shown.
const USUAL: [f64; 4] = [1_000.0, 10_000.0, 50_000.0, 100_000.0];

/// The measured capacity of one instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// The service and its load.
    pub(crate) what: String,
    /// Requests per second of one instance on this machine.
    pub(crate) per_s: f64,
    /// CPU use, in cores.
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

/// The sizing table, and its assumptions.
pub(crate) fn table(capacities: &[Capacity], wanted: Option<f64>) -> (Table, Vec<String>) {
    let mut rates: Vec<f64> = USUAL.into_iter().chain(wanted).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let names = rates.iter().map(|wanted| format!("for {}/s", digits(*wanted)));
    let head = ["service", "measured/s", "cores", "memory"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(names));
    for capacity in capacities {
        let counts = rates.iter().map(|wanted| {
            instances(*wanted, capacity.per_s).map_or_else(|| DASH.to_owned(), count)
        });
        let fixed = [
            capacity.what.clone(),
            digits(capacity.per_s),
            or_dash(capacity.cores, digits),
            or_dash(capacity.memory, |size| bytes(size as f64)),
        ];
        table.row(fixed.into_iter().chain(counts));
    }
    let notes = vec![
        format!(
            "instances = rate / (measured x {HEADROOM}), rounded up; add one to tolerate the loss of an instance"
        ),
        "an extrapolation from one instance on the machine named above: it assumes that instances do not slow each other down, which was not measured, and payloads like these".to_owned(),
    ];
    (table, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::table::Layout;

    #[test]
    fn instances_have_headroom_and_are_at_least_one() {
        for (wanted, per_s, expected) in [
            (1_000.0, 68_000.0, Some(1)),
            // 70,000 of one instance's 70,000 (70 % of 100,000) fit exactly, one more does not.
            (70_000.0, 100_000.0, Some(1)),
            (70_001.0, 100_000.0, Some(2)),
            // More than 70,000/s needs several instances of 68,000/s.
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
        let text = table.text(&Layout::new(200));
        let head = text.lines().next().unwrap();
        assert!(head.contains("for 1,000/s  for 2,500/s"), "{head}");
        assert!(text.lines().any(|line| line.contains("2  ") && line.ends_with("143")), "{text}");
    }
}
