//! Columns that several tables share.

use plimsoll_metrics::BoundedFigure;
use plimsoll_report::format::{
    DASH, bytes, count, digits, or_dash, percent, rate_with_share, time_us, time_with_share,
    with_share,
};
use plimsoll_report::table::Table;

use crate::comparison_plan::slug;
use crate::comparison_result::ComparisonResult;
use crate::finding;
use crate::result::{Figures, MeasurementResult};

/// What the columns of what a variant adds show.
pub(super) const ADDED_BY_VARIANTS: &str = "added: every request goes to the gateway with it and without, close together and in a random order; the median of the differences request by request, and the difference in CPU time, each with its 95 % interval, of times with what the generator may have added. What is said of it is under Findings, tested at 5 % over all of these sentences";

/// The table of what variants add, and of what each carries by itself.
pub(super) fn variants(what: &str) -> Table {
    Table::new([
        what,
        "added, median",
        "added CPU/req",
        "RPS",
        "gw CPU/req",
        "gw memory",
        "p50",
        "p99",
        "gw core",
        "load core",
    ])
}

/// A row of it; without `added`, that of the gateway without any variant.
pub(super) fn variant(
    result: &MeasurementResult,
    added: Option<&ComparisonResult>,
) -> [String; 10] {
    let name = slug(&result.label);
    [
        label(result),
        or_dash(added, |added| added.marked_added(&name)),
        or_dash(added, |added| added.marked_cpu(&name)),
        throughput(result),
        cpu(result),
        memory(result),
        time(result, |f| f.p50_ms),
        time(result, |f| f.p99_ms),
        gateway_busy(result),
        load_busy(result),
    ]
}

/// The label behind its mark.
pub(super) fn label(result: &MeasurementResult) -> String {
    marked(result, &result.label)
}

/// Any name of a row behind the mark of its result. The end of a name may be cut off, its beginning
/// never is.
pub(crate) fn marked(result: &MeasurementResult, name: &str) -> String {
    format!("{}{name}", result.marker())
}

/// Throughput, with half its range over the passes.
pub(crate) fn throughput(result: &MeasurementResult) -> String {
    let Some(spread) = result.spread(|figures| figures.requests_per_s) else {
        return per_s(result.shown().and_then(|figures| figures.requests_per_s));
    };
    let median = digits(spread.median);
    if spread.count > 1 { format!("{median} ±{:.0}%", spread.relative() * 100.0) } else { median }
}

/// A rate, with its limit where it proves nothing alone.
pub(super) fn per_s(rate: Option<BoundedFigure>) -> String {
    rate_with_share(rate)
}

/// A time, with its limit where it proves nothing alone.
pub(crate) fn time(
    result: &MeasurementResult,
    of: impl Fn(&Figures) -> Option<BoundedFigure>,
) -> String {
    time_with_share(result.shown().as_ref().and_then(of))
}

/// A figure that stands or falls with the rate of its measurement, and has the rate's limit.
pub(super) fn beside_rate(
    result: &MeasurementResult,
    cell: impl Fn(&Figures) -> Option<String>,
) -> String {
    let Some(figures) = result.shown() else { return DASH.to_owned() };
    or_dash(cell(&figures), |text| match figures.requests_per_s {
        Some(rate) => with_share(text, &rate, "+"),
        None => text,
    })
}

/// The number of errors.
pub(super) fn errors(result: &MeasurementResult) -> String {
    result.shown().map_or_else(|| DASH.to_owned(), |figures| count(figures.errors))
}

/// The answers that the rate counts, in the window of [`seconds`].
pub(super) fn answers(result: &MeasurementResult) -> String {
    or_dash(result.shown().and_then(|figures| figures.answers()), count)
}

/// The length of the window.
pub(super) fn seconds(result: &MeasurementResult) -> String {
    or_dash(result.shown().map(|figures| figures.seconds).filter(|s| *s > 0.0), digits)
}

/// The size of an answer with its head.
pub(super) fn answer_bytes(result: &MeasurementResult) -> String {
    or_dash(result.shown().and_then(|figures| figures.answer_bytes), bytes)
}

/// CPU time of the gateway per request.
pub(super) fn cpu(result: &MeasurementResult) -> String {
    or_dash(result.shown().and_then(|figures| figures.gateway_cpu_us), time_us)
}

/// Resident memory of the gateway at the end of the measurement.
pub(super) fn memory(result: &MeasurementResult) -> String {
    or_dash(result.shown().and_then(|figures| figures.gateway_memory), bytes)
}

/// CPU use of the gateway's core.
pub(super) fn gateway_busy(result: &MeasurementResult) -> String {
    or_dash(result.shown().and_then(|figures| figures.busy.gateway), percent)
}

/// The process whose core was at its limit; nothing where the figures must not be used.
pub(super) fn bottleneck(result: &MeasurementResult) -> String {
    result.figures().map_or_else(
        || DASH.to_owned(),
        |figures| finding::bottleneck(&figures.busy).word(figures.busy.shared).to_owned(),
    )
}

/// CPU use of the load's core, including the provider's if they share it.
pub(super) fn load_busy(result: &MeasurementResult) -> String {
    or_dash(
        result.shown().and_then(|figures| {
            let provider = figures.busy.provider.filter(|_| figures.busy.shared).unwrap_or(0.0);
            Some(figures.busy.generator? + provider)
        }),
        percent,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::BusyShares;
    use plimsoll_metrics::Refusal;

    fn result(rates: &[f64]) -> MeasurementResult {
        let busy = BusyShares {
            generator: Some(0.4),
            provider: Some(0.25),
            gateway: Some(0.993),
            ..BusyShares::default()
        };
        let pass = |rate: &f64| Figures {
            requests: 70_000,
            errors: 700,
            requests_per_s: Some(BoundedFigure::exact(*rate)),
            p50_ms: Some(BoundedFigure::exact(0.456_7)),
            gateway_cpu_us: Some(1.25),
            busy,
            ..Figures::default()
        };
        let passes = rates.iter().map(pass).collect();
        MeasurementResult { label: "x".to_owned(), passes, ..MeasurementResult::default() }
    }

    #[test]
    fn throughput_has_half_its_range_if_there_are_several_passes() {
        assert_eq!(throughput(&result(&[])), "-");
        assert_eq!(throughput(&result(&[21_989.4])), "21,989");
        // (120 - 80) / 2 of 100.
        assert_eq!(throughput(&result(&[80.0, 100.0, 120.0])), "100 ±20%");
    }

    #[test]
    fn counts_are_sums_and_times_medians() {
        let two = result(&[1.0, 1.0]);
        assert_eq!(errors(&two), "1,400");
        assert_eq!((time(&two, |f| f.p50_ms).as_str(), cpu(&two).as_str()), ("457us", "1.25us"));
        assert_eq!(time(&two, |f| f.p99_ms), "-");
    }

    /// Of two passes, 300 answers in 2 s are halfway between 200 and 400.
    #[test]
    fn answers_seconds_and_rate_are_of_one_window() {
        let mut two = result(&[100.0, 200.0]);
        assert_eq!((answers(&two).as_str(), seconds(&two).as_str()), ("0", "-"));
        two.passes.iter_mut().for_each(|pass| pass.seconds = 2.0);
        two.passes.iter_mut().for_each(|pass| pass.answer_bytes = Some(3_400.0));
        assert_eq!((answers(&two).as_str(), seconds(&two).as_str()), ("300", "2.00"));
        assert_eq!(
            (throughput(&two).as_str(), answer_bytes(&two).as_str()),
            ("150 ±33%", "3.40 kB")
        );
        assert_eq!(answers(&result(&[])), "-");
    }

    #[test]
    fn a_figure_that_proves_nothing_alone_has_its_limit() {
        let mut one = result(&[21_989.4]);
        // 10 % each.
        refuse_figure(&mut one.passes[0].requests_per_s, 2_198.94);
        refuse_figure(&mut one.passes[0].p50_ms, 0.0457);
        assert_eq!(throughput(&one), "21,989 (+10%)");
        assert_eq!(time(&one, |f| f.p50_ms), "457us (-10%)");
        // Another pass, of which they may be used.
        one.passes.push(result(&[20_000.0]).passes[0].clone());
        assert_eq!((throughput(&one), time(&one, |f| f.p50_ms)), ("20,000".into(), "457us".into()));
    }

    fn refuse_figure(figure: &mut Option<BoundedFigure>, bound: f64) {
        let figure = figure.as_mut().unwrap();
        (figure.bound, figure.refused) = (bound, Some(Refusal::Generator));
    }

    #[test]
    fn the_load_includes_the_provider_only_if_they_share_a_core() {
        let mut one = result(&[1.0]);
        assert_eq!((load_busy(&one).as_str(), gateway_busy(&one).as_str()), ("40.0%", "99.3%"));
        one.passes[0].busy.shared = true;
        assert_eq!(load_busy(&one), "65.0%");
    }

    #[test]
    fn labels_show_what_must_not_be_used() {
        let mut one = result(&[1.0]);
        assert_eq!(label(&one), "x");
        one.passes[0].limited = true;
        assert_eq!(label(&one), "[>=] x");
        one.passes[0].invalid = Some("late".to_owned());
        assert_eq!(label(&one), "[INVALID] x");
        let failed = MeasurementResult { error: Some("no port".to_owned()), ..result(&[]) };
        assert_eq!(label(&failed), "[NOT RUN] x");
    }
}
