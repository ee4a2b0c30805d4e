//! The number of instances for a rate, from the measured capacity.

use plimsoll_metrics::{Bias, BoundedFigure};
use plimsoll_report::format::{bytes, count, digits, limited_rate, or_dash, percent};
use plimsoll_report::table::Table;

use crate::finding;
use crate::result::{Figures, MeasurementResult};

/// Share of an instance's capacity that is planned with. Above it queues grow fast, and the others
/// cannot replace a lost instance.
pub const HEADROOM: f64 = 0.7;
/// Rates that are always shown.
const USUAL: [f64; 4] = [1_000.0, 10_000.0, 50_000.0, 100_000.0];

/// The measured capacity of one instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// The service and its load.
    pub(crate) what: String,
    /// Requests per second of one instance; the generator may have held back more.
    pub(crate) per_s: BoundedFigure,
    /// CPU use, in cores.
    pub(crate) cores: Option<f64>,
    /// Resident memory of the process under this load, in bytes.
    pub(crate) memory: Option<f64>,
    /// Its limit.
    pub(crate) limiter: String,
}

/// The capacity that results under rising load show: the throughput of the highest load, if
/// something limited it.
///
/// # Errors
/// Returns the reason in a sentence if the levels show no capacity.
pub(crate) fn capacity(what: &str, levels: &[&MeasurementResult]) -> Result<Capacity, String> {
    measured_capacity(what, levels).map_err(|why| unknown(what, &why))
}

/// Says why a capacity is unknown.
pub(crate) fn unknown(what: &str, why: &str) -> String {
    format!("instances for a rate, {what}: {why}")
}

fn measured_capacity(what: &str, levels: &[&MeasurementResult]) -> Result<Capacity, String> {
    let last = levels.last().ok_or("not measured")?;
    let per_s = last.bounded(|f| f.requests_per_s).map_err(|why| why.to_string())?;
    let figures = last.figures().unwrap_or_default();
    if let Some(why) = &figures.busy_host {
        return Err(format!("busy host: {why}"));
    }
    let limiter = finding::limiter(levels).ok_or_else(|| no_limit(levels, &figures))?;
    let (cores, memory) = (figures.busy.gateway, figures.gateway_memory);
    Ok(Capacity { what: what.to_owned(), per_s, cores, memory, limiter })
}

/// Says that no limit was shown, with the use of the gateway.
fn no_limit(levels: &[&MeasurementResult], figures: &Figures) -> String {
    format!(
        "no limit in {} loads, gateway core {}",
        levels.len(),
        or_dash(figures.busy.gateway, percent)
    )
}

/// The sizes for all known capacities, as a table; and the reasons for the unknown ones.
pub(crate) fn sizes(
    capacities: Vec<Result<Capacity, String>>,
    wanted: Option<f64>,
) -> (Option<Table>, Vec<String>) {
    let (mut shown, mut not_shown) = (Vec::new(), Vec::new());
    for capacity in capacities {
        capacity.map_or_else(|why| not_shown.push(why), |capacity| shown.push(capacity));
    }
    ((!shown.is_empty()).then(|| table(&shown, wanted)), not_shown)
}

/// Instances needed for a rate, with headroom; at least one.
fn instances(wanted: f64, per_s: f64) -> Option<u64> {
    let exact = wanted / (per_s * HEADROOM);
    #[expect(clippy::cast_possible_truncation, reason = "checked to be a number within range")]
    (exact.is_finite() && exact < 1e15).then(|| (exact.ceil() as u64).max(1))
}

/// Instances for a rate, at the limits of the capacity: `3`, or `2 to 3`.
pub(crate) fn instances_text(wanted: f64, per_s: BoundedFigure) -> String {
    let [low, high] = per_s.limits(Bias::Takes);
    match (instances(wanted, high), instances(wanted, low)) {
        (Some(few), Some(many)) if few < many => format!("{} to {}", count(few), count(many)),
        (_, many) => or_dash(many, count),
    }
}

/// The sizing table.
fn table(capacities: &[Capacity], wanted: Option<f64>) -> Table {
    let mut rates: Vec<f64> = USUAL.into_iter().chain(wanted).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let names = rates.iter().map(|wanted| format!("for {}/s", digits(*wanted)));
    let head = ["service", "measured/s", "limit", "cores", "memory"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(names));
    for capacity in capacities {
        let counts = rates.iter().map(|wanted| instances_text(*wanted, capacity.per_s));
        let fixed = [
            capacity.what.clone(),
            limited_rate(Some(capacity.per_s)),
            capacity.limiter.clone(),
            or_dash(capacity.cores, digits),
            or_dash(capacity.memory, bytes),
        ];
        table.row(fixed.into_iter().chain(counts));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{BusyShares, Figures};
    use plimsoll_report::table::Layout;
    use plimsoll_why::Answer;

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

    /// 51,250/s that may have been 55,000: 10,000/s need 0.28 instances of 70 %, 100,000/s 2.6 to
    /// 2.8, and 75,000/s 1.9 to 2.1.
    #[test]
    fn a_capacity_with_limits_gives_as_many_instances_as_each_of_them() {
        let refused = Some(plimsoll_metrics::Refusal::Generator);
        let per_s = BoundedFigure { value: 51_250.0, bound: 3_750.0, interval: None, refused };
        let of = |wanted| instances_text(wanted, per_s);
        assert_eq!([10_000.0, 75_000.0, 100_000.0].map(of), ["1", "2 to 3", "3"]);
        assert_eq!(instances_text(1.0, BoundedFigure::exact(0.0)), "-");
        let busy = BusyShares { gateway: Some(0.97), generator: Some(0.9), ..Default::default() };
        let figures = Figures {
            requests: 9,
            requests_per_s: Some(per_s),
            limited: true,
            busy,
            bottleneck: Some(Answer::Gateway),
            ..Default::default()
        };
        let result = MeasurementResult { passes: vec![figures], ..Default::default() };
        assert_eq!(capacity("x", &[&result]).unwrap().per_s, per_s);
    }

    #[test]
    fn the_users_own_rate_is_a_column_in_its_place() {
        let capacity = Capacity {
            what: "x".to_owned(),
            per_s: BoundedFigure::exact(1_000.0),
            cores: Some(1.0),
            memory: None,
            limiter: "gateway CPU".to_owned(),
        };
        let table = table(&[capacity], Some(2_500.0));
        assert_eq!(table.rows[0][2], "gateway CPU");
        let text = table.text(&Layout::new(200));
        let head = text.lines().next().unwrap();
        assert!(head.contains("for 1,000/s  for 2,500/s"), "{head}");
        assert!(text.lines().any(|line| line.contains("2  ") && line.ends_with("143")), "{text}");
    }

    #[test]
    fn a_size_needs_usable_figures_a_quiet_host_and_a_shown_limit() {
        let busy = BusyShares { gateway: Some(0.97), generator: Some(0.3), ..Default::default() };
        let good = Figures {
            requests: 1_000,
            requests_per_s: Some(BoundedFigure::exact(500.0)),
            gateway_memory: Some(3e6),
            busy,
            bottleneck: Some(Answer::Gateway),
            ..Figures::default()
        };
        let of = |figures: Figures| {
            let passes = vec![figures];
            let result = MeasurementResult { passes, clients: Some(8), ..Default::default() };
            capacity("x", &[&result])
        };
        let found = of(good.clone()).unwrap();
        assert_eq!((found.per_s.value, found.memory), (500.0, Some(3e6)));
        assert_eq!(found.limiter, "gateway CPU");
        let invalid = Some("late".to_owned());
        let busy_host = Some("12.0% was stolen".to_owned());
        let idle = BusyShares { gateway: Some(0.5), ..busy };
        let unwatched = BusyShares { gateway: None, ..busy };
        for (figures, why) in [
            (Figures { errors: 1_000, ..good.clone() }, "expected response"),
            (Figures { invalid, ..good.clone() }, "the measurement is invalid: late"),
            (Figures { busy_host, ..good.clone() }, "busy host: 12.0% was stolen"),
            (
                Figures { busy: idle, bottleneck: None, ..good.clone() },
                "no limit in 1 loads, gateway core 50.0%",
            ),
            (
                Figures { busy: unwatched, bottleneck: Some(Answer::Unknown), ..good },
                "no limit in 1 loads, gateway core -",
            ),
        ] {
            let found = of(figures).unwrap_err();
            assert!(
                found.starts_with("instances for a rate, x: ") && found.contains(why),
                "{found}"
            );
        }
    }
}
