//! The relative cost of two endpoints.

use plimsoll_report::format::time_us;

use super::Finding;
use crate::result::{Figures, MeasurementResult};

/// The cost of an endpoint relative to a cheaper one.
pub(crate) fn relative(
    what: &str,
    cheap: &MeasurementResult,
    expensive: &MeasurementResult,
) -> Option<Finding> {
    let (cheap_figures, expensive_figures) = (cheap.figures()?, expensive.figures()?);
    let rates = usable_rate(&cheap_figures)? / usable_rate(&expensive_figures)?;
    let times = cheap_figures.gateway_cpu_us.zip(expensive_figures.gateway_cpu_us);
    Some(Finding::note(match times {
        Some((cheap, expensive)) => format!(
            "{what}: {:.2} times the CPU time of the gateway per request ({} against {}), and {rates:.2} times fewer requests/s",
            expensive / cheap,
            time_us(expensive),
            time_us(cheap)
        ),
        None => format!("{what}: {rates:.2} times fewer requests/s"),
    }))
}

fn usable_rate(figures: &Figures) -> Option<f64> {
    figures.requests_per_s?.sound()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{figures, result};
    use super::*;

    #[test]
    fn an_endpoint_is_compared_by_cpu_time_where_it_is_known() {
        let with = |rate, cpu| {
            let figures = Figures { gateway_cpu_us: cpu, ..figures(rate, 1.0) };
            result("x", 1, figures)
        };
        let text = relative("m", &with(68_000.0, Some(10.0)), &with(34_000.0, Some(20.0)));
        assert!(text.unwrap().text.contains("2.00 times the CPU time"));
        let text = relative("m", &with(68_000.0, None), &with(34_000.0, None)).unwrap().text;
        assert_eq!(text, "m: 2.00 times fewer requests/s");
    }
}
