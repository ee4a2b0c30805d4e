//! The relative cost of two endpoints.

use plimsoll_metrics::Bias;
use plimsoll_report::format::time_us;

use super::Finding;
use crate::ratio::Ratio;
use crate::result::MeasurementResult;

/// The cost of an endpoint relative to a cheaper one.
pub(crate) fn relative(
    what: &str,
    cheap: &MeasurementResult,
    expensive: &MeasurementResult,
) -> Option<Finding> {
    let (cheap, expensive) = (cheap.figures()?, expensive.figures()?);
    let both = cheap.requests_per_s.zip(expensive.requests_per_s);
    let rates = both.and_then(|(cheap, expensive)| Ratio::new(cheap, expensive, Bias::Takes));
    let rates =
        rates.map(|rates| format!("{} times fewer requests/s", rates.text(|r| format!("{r:.2}"))));
    let cpu = cheap.gateway_cpu_us.zip(expensive.gateway_cpu_us).map(|(cheap, expensive)| {
        let (times, more, less) = (expensive / cheap, time_us(expensive), time_us(cheap));
        format!("{times:.2} times the CPU time of the gateway per request ({more} against {less})")
    });
    let parts: Vec<_> = cpu.into_iter().chain(rates).collect();
    (!parts.is_empty()).then(|| Finding::note(format!("{what}: {}", parts.join(", and "))))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{figures, result};
    use super::*;
    use crate::result::Figures;
    use plimsoll_metrics::Refusal;

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
        // 68,000/s that may have been 74,800: twice as many at least. CPU time is not affected.
        let mut held_back = with(68_000.0, Some(10.0));
        let rate = held_back.passes[0].requests_per_s.as_mut().unwrap();
        (rate.bound, rate.refused) = (6_800.0, Some(Refusal::Generator));
        let text = relative("m", &held_back, &with(34_000.0, Some(20.0))).unwrap().text;
        let cpu = "2.00 times the CPU time of the gateway per request (20.0us against 10.0us)";
        assert_eq!(text, format!("m: {cpu}, and 2.00 (2.00 to 2.20) times fewer requests/s"));
    }
}
