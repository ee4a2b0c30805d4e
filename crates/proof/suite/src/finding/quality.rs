//! Tails, errors, and what of the figures may be believed.

use super::Finding;
use crate::cell::{Figures, MeasurementResult};
use crate::words::{millis, percent, whole};

fn measured(cells: &[MeasurementResult]) -> impl Iterator<Item = (&MeasurementResult, Figures)> {
    let valid = cells.iter().filter(|cell| !cell.is_invalid());
    valid.filter_map(|cell| Some((cell, cell.figures()?)))
}

/// The longest tail of all.
pub(crate) fn tails(cells: &[MeasurementResult]) -> Option<Finding> {
    let by = |of: fn(&Figures) -> Option<f64>| {
        let all = measured(cells).filter_map(|(cell, figures)| Some((cell, of(&figures)?)));
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let (p99, max) = (by(|f| f.p99_ms)?, by(|f| f.max_ms)?);
    Some(Finding::note(format!(
        "tails: the highest p99 is {} ({}), and the longest of all requests took {} ({})",
        millis(Some(p99.1)),
        p99.0.label,
        millis(Some(max.1)),
        max.0.label
    )))
}

/// How much of the requests is answered within a millisecond: said of the percentile that says so, and of no more.
pub(crate) fn sub_millisecond(cell: &MeasurementResult) -> Option<Finding> {
    let figures = cell.figures().filter(|_| !cell.is_invalid())?;
    let below = |value: Option<f64>| value.is_some_and(|value| value < 1.0);
    let told = |part: &str| Some(Finding::note(format!("{}: {part}", cell.label)));
    if below(figures.max_ms) {
        told(&format!(
            "every request took less than a millisecond (max {})",
            millis(figures.max_ms)
        ))
    } else if below(figures.p99_ms) {
        told(&format!(
            "99 % of the requests took less than a millisecond (p99 {})",
            millis(figures.p99_ms)
        ))
    } else if below(figures.p50_ms) {
        let p99 = figures.p99_ms.map_or_else(
            || "there are too few requests for a p99".to_owned(),
            |p99| format!("p99 is {}", millis(Some(p99))),
        );
        told(&format!(
            "half of the requests took less than a millisecond (p50 {}); {p99}, so it is not sub-millisecond as a whole",
            millis(figures.p50_ms)
        ))
    } else {
        None
    }
}

/// All errors together.
pub(crate) fn errors(cells: &[MeasurementResult]) -> Option<Finding> {
    let measured = |cells| measured(cells).filter(|(cell, _)| !cell.errors_wanted);
    let requests: u64 = measured(cells).map(|(_, figures)| figures.requests).sum();
    let errors: u64 = measured(cells).map(|(_, figures)| figures.errors).sum();
    if requests == 0 {
        return None;
    }
    let worst = measured(cells).max_by_key(|(_, figures)| figures.errors)?.0;
    Some(match errors {
        0 => Finding::good(format!("no errors in {} requests", whole(requests))),
        _ => Finding::warning(format!(
            "{} errors in {} requests, most in: {}",
            whole(errors),
            whole(requests),
            worst.label
        )),
    })
}

/// What may not be used, and why.
pub(crate) fn invalid(cells: &[MeasurementResult]) -> Vec<Finding> {
    let told = |cell: &MeasurementResult| {
        if let (Some(fault), true) = (&cell.fault, cell.passes.is_empty()) {
            return Some(Finding::warning(format!(
                "{}: could not be measured: {fault}",
                cell.label
            )));
        }
        let bad: Vec<_> = cell.passes.iter().filter_map(|pass| pass.invalid.as_ref()).collect();
        let first = bad.first()?;
        let (bad, all) = (bad.len(), cell.passes.len());
        Some(Finding::warning(if bad == all {
            format!("{}: INVALID, do not use the figures: {first}", cell.label)
        } else {
            format!("{}: {bad} of {all} passes were invalid and are left out: {first}", cell.label)
        }))
    };
    cells.iter().filter_map(told).collect()
}

/// In shorter cells the edges count: who was under way at the start and at the end.
const STEADY_S: f64 = 5.0;

/// Little's law over all closed cells: clients against throughput times response time.
pub(crate) fn littles_law(cells: &[MeasurementResult]) -> Option<Finding> {
    let long = |cell: &&MeasurementResult| {
        cell.figures().is_some_and(|figures| figures.seconds >= STEADY_S)
    };
    let errors = cells.iter().filter(long);
    let errors = errors.filter_map(|cell| Some((cell, cell.figures()?.little_error?)));
    let (cell, error) = errors.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let told = format!(
        "Little's law (clients = throughput x response time) holds within {} in every cell of 5 s and more (worst: {})",
        percent(Some(error)),
        cell.label
    );
    Some(if error <= 0.02 {
        Finding::good(told)
    } else {
        Finding::warning(format!(
            "Little's law is off by {} in: {}; the steady state was too short, or a figure is wrong",
            percent(Some(error)),
            cell.label
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Tone;
    use super::super::make::{cell, figures};
    use super::*;

    /// The last seed calls 4.59 ms average sub-millisecond.
    #[test]
    fn sub_millisecond_is_said_of_what_is() {
        for (p50, p99, max, part) in [
            (0.45, Some(0.78), 0.9, Some("every request")),
            (0.45, Some(0.78), 7.17, Some("99 % of the requests")),
            (0.9, Some(13.0), 58.0, Some("not sub-millisecond as a whole")),
            (0.9, None, 58.0, Some("too few requests for a p99")),
            (4.59, Some(20.0), 41.64, None),
        ] {
            let figures =
                Figures { p50_ms: Some(p50), p99_ms: p99, max_ms: Some(max), ..figures(1.0, 1.0) };
            let finding = sub_millisecond(&cell("x", 1, figures)).map(|finding| finding.text);
            let fits = match part {
                None => finding.is_none(),
                Some(part) => finding.as_ref().is_some_and(|text| text.contains(part)),
            };
            assert!(fits, "{part:?}: {finding:?}");
        }
    }

    #[test]
    fn invalid_cells_are_named_and_carry_nothing() {
        let mut bad = cell("bad", 1, figures(9.0, 999.0));
        bad.passes[0].invalid = Some("late".to_owned());
        let cells = [cell("good", 1, figures(1.0, 2.0)), bad];
        assert!(tails(&cells).unwrap().text.contains("(good)"));
        let told = invalid(&cells);
        assert_eq!(told.len(), 1);
        assert!(told[0].text.starts_with("bad: INVALID"), "{}", told[0].text);
    }

    #[test]
    fn errors_are_counted_over_all() {
        let mut wrong = figures(1.0, 1.0);
        wrong.errors = 1_234;
        let cells = [cell("a", 1, figures(1.0, 1.0)), cell("b", 1, wrong)];
        assert_eq!(errors(&cells[..1]).unwrap().text, "no errors in 10,000 requests");
        let found = errors(&cells).unwrap();
        assert_eq!(found.tone, Tone::Warning);
        assert_eq!(found.text, "1,234 errors in 20,000 requests, most in: b");
        assert_eq!(errors(&[]), None);
    }

    #[test]
    fn littles_law_is_held_against_the_worst_cell() {
        let with = |error| {
            let figures = figures(1.0, 1.0);
            cell("x", 1, Figures { little_error: Some(error), seconds: 10.0, ..figures })
        };
        for (worst, tone) in [(0.004, Tone::Good), (0.05, Tone::Warning)] {
            assert_eq!(littles_law(&[with(0.001), with(worst)]).unwrap().tone, tone);
        }
    }
}
