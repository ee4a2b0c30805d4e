//! Throughput and times under few and many clients, as a table.

use plimsoll_metrics::{Bias, BoundedFigure};
use plimsoll_report::format::{count, or_dash};
use plimsoll_report::table::Table;

use crate::ratio::Ratio;
use crate::report::Section;
use crate::result::{Figures, MeasurementResult};
use crate::suite::columns::{self, BOTTLENECK, P99, RPS};

/// The results with the fewest and with the most clients.
fn ends(sweep: &[MeasurementResult]) -> Option<[&MeasurementResult; 2]> {
    let measured = sweep.iter().filter(|result| result.why_unusable().is_none());
    let few = measured.clone().min_by_key(|result| result.clients)?;
    let many = measured.max_by_key(|result| result.clients)?;
    (many.clients > few.clients).then_some([few, many])
}

/// A row for each sweep: its ends, and the factors between them.
pub(crate) fn scaling<'s>(
    sweeps: impl IntoIterator<Item = (&'s str, &'s [MeasurementResult])>,
) -> Option<Section> {
    let heads = "Load|clients|RPS|factor|average|p99|factor|gw CPU|errors|Bottleneck";
    let mut table = Table::new(heads.split('|'));
    let mut first_cpu = None;
    for (what, sweep) in sweeps {
        let Some([few, many]) = ends(sweep) else { continue };
        let both = |cell: fn(&MeasurementResult) -> String| [few, many].map(cell).join(" .. ");
        let factor = |of: fn(&Figures) -> Option<BoundedFigure>, bias| {
            let both = many.bounded(of).ok().zip(few.bounded(of).ok());
            let ratio = both.and_then(|(many, few)| Ratio::new(many, few, bias));
            or_dash(ratio, |ratio| ratio.text(|times| format!("x{times:.2}")))
        };
        let cpu = few.figures().and_then(|figures| figures.gateway_cpu_us);
        first_cpu = first_cpu.or(cpu);
        let errors = [few, many].map(|one| one.figures().map_or(0, |figures| figures.errors));
        table.row([
            columns::marked(many, what),
            both(|one| or_dash(one.clients, |clients| count(clients.into()))),
            both(RPS.1),
            factor(|f| f.requests_per_s, Bias::Takes),
            factor(|f| f.mean_ms, Bias::Adds),
            both(P99.1),
            factor(|f| f.p99_ms, Bias::Adds),
            or_dash(cpu.zip(first_cpu), |(cpu, first)| format!("x{:.2}", cpu / first)),
            count(errors.iter().sum()),
            BOTTLENECK.1(many),
        ]);
    }
    (!table.rows.is_empty()).then(|| Section::new("Scaling with the clients", table))
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Refusal;
    use plimsoll_why::Answer;

    use super::super::fixtures::{figures, result};
    use super::*;

    fn row(few: Figures, many: Figures) -> Vec<String> {
        let sweep = [result("a", 32, few), result("b", 256, many)];
        scaling([("x", &sweep[..])]).unwrap().table.rows.remove(0)
    }

    #[test]
    fn a_row_has_the_ends_of_a_sweep_and_the_factors_between_them() {
        let many = Figures {
            bottleneck: Some(Answer::Gateway),
            gateway_cpu_us: Some(20.0),
            errors: 3,
            ..figures(60_000.0, 1.5)
        };
        let row = row(Figures { gateway_cpu_us: Some(10.0), ..figures(40_000.0, 0.5) }, many);
        let expected = [
            "x",
            "32 .. 256",
            "40,000 .. 60,000",
            "x1.50",
            "-",
            "500us .. 1.50ms",
            "x3.00",
            "x1.00",
            "3",
            "gateway",
        ];
        assert_eq!(row, expected);
    }

    /// 100 to 110, then 98 to 105: 0.89 to 1.05 times as much.
    #[test]
    fn factors_of_limited_figures_have_both_limits() {
        let limited = |value, bound| {
            let refused = Some(Refusal::Generator);
            let rate = BoundedFigure { value, bound, interval: None, refused };
            Figures { requests_per_s: Some(rate), ..figures(1.0, 1.0) }
        };
        assert_eq!(row(limited(100.0, 10.0), limited(98.0, 7.0))[3], "x0.98 (x0.89 to x1.05)");
    }

    /// 10 ± 79 %, then 12.8 ± 50 %: 6.4/17.9 to 19.2/2.1 times as much.
    #[test]
    fn factors_of_uncertain_rates_have_both_limits() {
        let uncertain = |value, interval| {
            let interval = Some(interval);
            let rate = BoundedFigure { value, bound: 0.0, interval, refused: None };
            Figures { requests_per_s: Some(rate), ..figures(1.0, 1.0) }
        };
        let row = row(uncertain(10.0, [2.1, 17.9]), uncertain(12.8, [6.4, 19.2]));
        assert_eq!(row[3], "x1.28 (x0.36 to x9.14)");
    }

    #[test]
    fn without_two_usable_levels_there_is_no_row() {
        let [few, mut many] =
            [result("a", 32, figures(1.0, 1.0)), result("b", 256, figures(1.0, 1.0))];
        assert_eq!(scaling([("x", std::slice::from_ref(&few))]), None);
        many.passes[0].invalid = Some("late".to_owned());
        assert_eq!(scaling([("x", &[few, many][..])]), None);
    }
}
