//! How the times of the policy suite change: with the rate, with the topology, and after a start.

use plimsoll_metrics::{Bias, BoundedFigure};
use plimsoll_report::format::{limited_time, time};

use super::tables::factor;
use super::{ColdWarm, PolicyRow};
use crate::finding::Finding;

/// A median that is longer by at most this factor is not affected by a cold start.
const SAME: f64 = 1.2;
/// A tail that is longer by at least this factor is.
const LONGER: f64 = 2.0;

/// The range of the P50 over all planned rates and topologies, and the course of the P95 with the
/// rate in each topology.
pub(super) fn findings(rows: &[&PolicyRow]) -> Vec<Finding> {
    let planned: Vec<_> = rows.iter().copied().filter(|row| is_planned(row)).collect();
    let mut topologies: Vec<&str> = Vec::new();
    for row in &planned {
        if !topologies.contains(&&*row.topology) {
            topologies.push(&row.topology);
        }
    }
    let by_topology = topologies.into_iter().map(|topology| {
        let own = planned.iter().copied().filter(|row| row.topology == topology);
        (topology, own.collect::<Vec<_>>())
    });
    let by_topology: Vec<_> = by_topology.collect();
    let ranges: Vec<_> = by_topology
        .iter()
        .filter_map(|(topology, rows)| Some(format!("{topology}: {}", range_of_p50(rows)?)))
        .collect();
    let ranges = (!ranges.is_empty())
        .then(|| Finding::note(format!("P50 over the planned rates: {}", ranges.join("; "))));
    let courses = by_topology.iter().filter_map(|(topology, rows)| course_of_p95(topology, rows));
    ranges.into_iter().chain(courses).collect()
}

/// Requests that end in the gateway, at a planned rate, whose figures may be used.
fn is_planned(row: &PolicyRow) -> bool {
    row.result.rate.is_some()
        && row.mode.starts_with("skip_llm=true")
        && row.result.why_unusable().is_none()
        && row.result.busy_host().is_none()
}

/// The least and the largest P50, whatever the generator added.
fn range_of_p50(rows: &[&PolicyRow]) -> Option<String> {
    let all: Vec<BoundedFigure> =
        rows.iter().filter_map(|row| row.result.bounded(|f| f.p50_ms).ok()).collect();
    let limits = all.iter().map(|figure| figure.limits(Bias::Adds));
    let low = limits.clone().map(|[low, _]| low).reduce(f64::min)?;
    let high = limits.map(|[_, high]| high).reduce(f64::max)?;
    (all.len() > 1 && high.is_finite()).then(|| format!("{} to {}", time(low), time(high)))
}

/// Whether the P95 rises or falls from rate to rate, as far as its limits tell.
fn course_of_p95(topology: &str, rows: &[&PolicyRow]) -> Option<Finding> {
    let known: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row.result.rate?, row.result.bounded(|f| f.p95_ms).ok()?)))
        .collect();
    if known.len() < 2 {
        return None;
    }
    let shown: Vec<_> =
        known.iter().map(|(rate, p95)| format!("{rate}/s {}", limited_time(Some(*p95)))).collect();
    let steps = known.windows(2).map(|two| {
        let [before, after] = [two[0].1, two[1].1].map(|p95| p95.limits(Bias::Adds));
        (after[0] > before[1], after[1] < before[0])
    });
    let text = format!("P95 by rate, {topology}: {}", shown.join(", "));
    Some(match (steps.clone().all(|step| step.0), steps.clone().all(|step| step.1)) {
        (true, _) => Finding::note(format!("{text}: it rises with the rate")),
        (_, true) => Finding::note(format!("{text}: it falls with the rate")),
        _ => Finding::note(format!(
            "{text}: no course is shown; it changes both ways, or within what the generator itself may have added"
        )),
    })
}

/// Where the cost of a cold start is: in the tail, in the median, or nowhere.
pub(super) fn cold_start(pair: &ColdWarm) -> Option<Finding> {
    let (cold, warm) = (pair.cold.as_ref()?, &pair.warm.result);
    if cold.busy_host().or_else(|| warm.busy_host()).is_some() {
        return None;
    }
    let median = factor(cold, warm, |f| f.p50_ms)?;
    let tails =
        [("P99", factor(cold, warm, |f| f.p99_ms)), ("P95", factor(cold, warm, |f| f.p95_ms))];
    let (name, tail) = tails.into_iter().find_map(|(name, tail)| Some((name, tail?)))?;
    let way = if pair.way.is_empty() { String::new() } else { format!(", {}", pair.way) };
    let text = format!(
        "cold start, {}/s{way}: P50 {} as long as warm, {name} {}",
        pair.rate,
        median.text(|times| format!("{times:.1} times")),
        tail.text(|times| format!("{times:.1} times"))
    );
    let same = median.holds(|times| times <= SAME);
    let so = match (same, tail.holds(|times| times >= LONGER)) {
        (Some(true), Some(true)) => ": its cost lies in the tail, not in the median",
        (Some(false), _) => ": its cost is in the median, too",
        (Some(true), Some(false)) => ": no cost of it is seen",
        _ => ": where its cost lies is not shown",
    };
    Some(Finding::note(format!("{text}{so}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Figures, MeasurementResult};

    fn figure(value: f64, bound: f64) -> BoundedFigure {
        BoundedFigure { value, bound, interval: None, refused: None }
    }

    fn result(rate: f64, p50: f64, p95: f64, bound: f64) -> MeasurementResult {
        let figures = Figures {
            requests: 1_000,
            p50_ms: Some(figure(p50, bound)),
            p95_ms: Some(figure(p95, bound)),
            ..Figures::default()
        };
        MeasurementResult {
            rate: Some(rate),
            passes: vec![figures],
            ..MeasurementResult::default()
        }
    }

    fn row(topology: &str, result: MeasurementResult) -> PolicyRow {
        let topology = topology.to_owned();
        let rate = String::new();
        PolicyRow { topology, mode: "skip_llm=true, warm", rate, result, summary: None }
    }

    fn texts(rows: &[PolicyRow]) -> Vec<String> {
        let rows: Vec<_> = rows.iter().collect();
        findings(&rows).into_iter().map(|found| found.text).collect()
    }

    /// The published figures of two topologies: P50 6.30 to 6.50 ms, P95 rising with the rate in
    /// the one and from 50/s on in the other.
    #[test]
    fn ranges_and_courses_are_those_of_the_figures() {
        let rows = vec![
            row("in-VPC", result(20.0, 6.30, 8.98, 0.0)),
            row("in-VPC", result(50.0, 6.32, 12.05, 0.0)),
            row("in-VPC", result(100.0, 6.35, 13.61, 0.0)),
            row("SaaS", result(20.0, 6.33, 9.95, 0.0)),
            row("SaaS", result(50.0, 6.50, 9.90, 0.0)),
            row("SaaS", result(100.0, 6.43, 18.46, 0.0)),
        ];
        let all = texts(&rows);
        let range = "P50 over the planned rates: in-VPC: 6.30ms to 6.35ms; SaaS: 6.33ms to 6.50ms";
        assert_eq!(all[0], range);
        let course = "P95 by rate, in-VPC: 20/s 8.98ms, 50/s 12.1ms, 100/s 13.6ms: it rises";
        assert!(all[1].starts_with(course), "{all:?}");
        assert!(all[2].contains("no course is shown"), "{all:?}");
        // The generator may have added all of the difference.
        let rows = [row("x", result(20.0, 1.0, 2.0, 0.5)), row("x", result(50.0, 1.0, 2.5, 0.5))];
        let all = texts(&rows);
        assert_eq!(all[0], "P50 over the planned rates: x: 500us to 1.00ms");
        assert!(all[1].contains("no course is shown"), "{all:?}");
        assert_eq!(texts(&rows[..1]), [""; 0], "one rate has no course");
    }

    /// 20/s over HTTP/2 in the published benchmark: P95 91.81 and 9.95 ms, P50 6.5 and 6.3 ms.
    #[test]
    fn a_cold_start_costs_the_tail_the_median_or_nothing() {
        for (cold, warm, bound, part) in [
            ([6.5, 91.81], [6.3, 9.95], 0.0, "P95 9.2 times: its cost lies in the tail"),
            ([65.0, 91.81], [6.3, 9.95], 0.0, "in the median, too"),
            ([6.5, 10.5], [6.3, 9.95], 0.0, "no cost of it is seen"),
            ([0.5, 0.9], [0.32, 0.3], 0.3, "where its cost lies is not shown"),
        ] {
            let [cold, warm] = [cold, warm].map(|[p50, p95]| result(20.0, p50, p95, bound));
            let warm = row("x", warm);
            let pair = ColdWarm { name: "light", rate: 20.0, way: "", cold: Some(cold), warm };
            let text = cold_start(&pair).unwrap().text;
            assert!(text.starts_with("cold start, 20/s: P50 ") && text.contains(part), "{text}");
        }
    }
}
