//! Reports of the same suite from several environments, side by side.

use plimsoll_metrics::Bias;
use plimsoll_report::format::{cut, digits, or_dash};
use plimsoll_report::table::Table;

use crate::error::SuiteError;
use crate::ratio::Ratio;
use crate::report::{Report, Section, distinct};
use crate::result::MeasurementResult;
use crate::suite::columns;

/// Two reports or more, each with its name: the environments, and the figures of each measurement.
/// No difference is judged, as the environments differ in more than one thing.
///
/// # Errors
/// If there are fewer, or they are of different suites.
pub fn beside(reports: &[(String, Report)]) -> Result<Vec<Section>, SuiteError> {
    let Some((_, first)) = reports.first().filter(|_| reports.len() > 1) else {
        return Err(SuiteError::Usage("give the folders of two suites or more".to_owned()));
    };
    if let Some((name, other)) = reports.iter().find(|(_, report)| report.suite != first.suite) {
        return Err(SuiteError::Usage(format!(
            "{name} is the result of `{}`, but the first is the result of `{}`: give results of one suite",
            other.suite, first.suite
        )));
    }
    Ok(vec![environments(reports), figures(reports)])
}

fn environments(reports: &[(String, Report)]) -> Section {
    let own: Vec<_> = reports.iter().map(|(_, report)| report.environment_lines()).collect();
    let short = own.iter().flatten().map(|(name, _)| &**name).filter(|name| {
        let is_long = name.starts_with("gateway ") || name.is_empty() || *name == "build";
        !is_long
    });
    let mut table = Table::new(head("Environment", reports));
    for name in distinct(short) {
        let cells = own.iter().map(|lines| {
            let found = lines.iter().find(|(known, _)| *known == name);
            or_dash(found, |(_, value)| cut(value, (WIDTH / reports.len()).max(16)))
        });
        table.row(std::iter::once(name.clone()).chain(cells));
    }
    let verdicts = reports.iter().map(|(_, report)| report.conclusion());
    let verdicts = verdicts.map(|text| text.split(':').next().unwrap_or_default().to_owned());
    table.row(std::iter::once("verdict".to_owned()).chain(verdicts));
    Section::new("Environments", table)
}

/// Characters for the values of all environments; all of a value is in the report of its suite.
const WIDTH: usize = 110;

fn figures(reports: &[(String, Report)]) -> Section {
    let results = reports.iter().flat_map(|(_, report)| &report.measurements);
    let mut head = head("Measurement: requests/s, p50, p99", reports);
    if let [(one, _), (other, _)] = reports {
        head.push(format!("rate of {one} / {other}"));
    }
    let mut table = Table::new(head);
    for label in distinct(results.map(|result| &result.label)) {
        let own = reports
            .iter()
            .map(|(_, report)| report.measurements.iter().find(|result| result.label == label));
        let own: Vec<_> = own.collect();
        let cells = own.iter().map(|result| or_dash(*result, cell));
        let times = match *own {
            [one, other] => Some(or_dash(times(one, other), |times| times)),
            _ => None,
        };
        table.row(std::iter::once(label.clone()).chain(cells).chain(times));
    }
    Section::new("Figures", table)
}

/// Ratio of two measured rates; `None` for planned rates.
fn times(one: Option<&MeasurementResult>, other: Option<&MeasurementResult>) -> Option<String> {
    let closed = [one, other].map(|result| result.filter(|result| result.rate.is_none()));
    let [Some(one), Some(other)] = closed else { return None };
    let ratio = Ratio::new(one.throughput()?, other.throughput()?, Bias::Takes)?;
    Some(ratio.text(|times| format!("{}x", digits(times))))
}

fn cell(result: &MeasurementResult) -> String {
    let figures = [columns::RPS, columns::P50, columns::P99].map(|column| (column.1)(result));
    columns::marked(result, &figures.join(", "))
}

fn head(first: &str, reports: &[(String, Report)]) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(reports.iter().map(|(name, _)| name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{BoundedFigure, Refusal};

    use super::*;
    use crate::result::Figures;

    /// The published rates: 46,665/s on the server and 479/s on the laptop, 97 times as many.
    #[test]
    fn two_environments_have_the_factor_between_their_rates() {
        let with = |per_s: f64, bound: f64| {
            let refused = (bound > 0.0).then_some(Refusal::Generator);
            let figure = Some(BoundedFigure { value: per_s, bound, interval: None, refused });
            let figures = Figures { requests: 9, requests_per_s: figure, ..Figures::default() };
            MeasurementResult { passes: vec![figures], ..MeasurementResult::default() }
        };
        let laptop = with(479.0, 0.0);
        assert_eq!(times(Some(&with(46_665.0, 0.0)), Some(&laptop)).unwrap(), "97.4x");
        // The generator may have held back a tenth more.
        let server = with(46_665.0, 4_666.5);
        assert_eq!(times(Some(&server), Some(&laptop)).unwrap(), "97.4x (97.4x to 107x)");
        assert_eq!(times(Some(&server), None), None);
        let planned = MeasurementResult { rate: Some(100.0), ..laptop.clone() };
        assert_eq!(times(Some(&planned), Some(&laptop)), None, "its rate is the plan's");
    }

    fn report(suite: &str, region: &str, labels: &[&str]) -> Report {
        let measurements: Vec<_> = labels
            .iter()
            .map(|label| {
                let label = (*label).to_owned();
                MeasurementResult { label, ..MeasurementResult::default() }
            })
            .collect();
        let json = serde_json::json!({
            "schema": crate::report::SCHEMA, "suite": suite, "title": "t", "started": "S",
            "command": "c", "quick": false, "debug_build": false, "interrupted": false,
            "setup": [["region", region]], "environment": {}, "sections": [], "findings": [],
            "bounds": [], "sizing": null, "references": [], "skipped": [],
            "measurements": measurements,
        });
        Report::read_json(json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn every_measurement_of_any_environment_has_a_row() {
        let one = ("one".to_owned(), report("layers", "mumbai", &["a", "b"]));
        let two = ("two".to_owned(), report("layers", "here", &["b", "c"]));
        let sections = beside(&[one.clone(), two]).unwrap();
        let region = sections[0].table.rows.iter().find(|row| row[0] == "region").unwrap();
        assert_eq!(region[1..], ["mumbai", "here"]);
        let labels: Vec<_> = sections[1].table.rows.iter().map(|row| &*row[0]).collect();
        assert_eq!(labels, ["a", "b", "c"]);
        assert_eq!(sections[1].table.rows[0][2], "-");
        assert!(beside(std::slice::from_ref(&one)).is_err());
        let other = ("x".to_owned(), report("quick", "here", &[]));
        let why = beside(&[one, other]).unwrap_err().to_string();
        assert!(why.contains("x is the result of `quick`"), "{why}");
    }
}
