//! The Prometheus exposition, read by an independent checker.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_report::prometheus;

use crate::support::{golden, health, metadata, summary};

/// One sample line: name, labels, value.
type Line = (String, BTreeMap<String, String>, f64);

/// Reads an exposition by the grammar of text format 0.0.4. Checks that every family has one HELP
/// and one TYPE line before its samples, and that no series occurs twice.
fn check(text: &str) -> Vec<Line> {
    let mut types = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(helped.insert(rest.split_once(' ').unwrap().0), "second {line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "summary"].contains(&kind), "{line}");
            assert!(types.insert(name, kind).is_none(), "second {line}");
        } else {
            let sample = read(line);
            let family = family(&sample.0, &types);
            assert!(helped.contains(family), "no HELP before {line}");
            assert!(seen.insert(format!("{:?}{:?}", sample.0, sample.1)), "twice: {line}");
            lines.push(sample);
        }
    }
    lines
}

fn family<'a>(name: &'a str, types: &BTreeMap<&str, &str>) -> &'a str {
    if types.contains_key(name) {
        return name;
    }
    let base = name.strip_suffix("_sum").or_else(|| name.strip_suffix("_count")).unwrap();
    assert_eq!(types.get(base), Some(&"summary"), "{name}");
    base
}

fn read(line: &str) -> Line {
    let (name, rest) = line.split_once('{').unwrap();
    assert!(valid_name(name), "{line}");
    let mut labels = BTreeMap::new();
    let mut rest = rest;
    loop {
        let (key, after) = rest.split_once("=\"").unwrap();
        assert!(valid_name(key), "{line}");
        let (value, after) = quoted(after);
        assert!(labels.insert(key.to_owned(), value).is_none(), "{line}");
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (name.to_owned(), labels, number(after)),
        }
    }
}

/// Reads what follows the labels: `} 1.5`.
fn number(text: &str) -> f64 {
    text.strip_prefix("} ").unwrap().parse().unwrap()
}

/// Reads to the closing quote; returns the value and the text behind the quote.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return (value, &text[index + 1..]),
            '\\' => value.push(unescaped(chars.next().unwrap().1).unwrap()),
            c => value.push(c),
        }
    }
    (value, "")
}

const fn unescaped(c: char) -> Option<char> {
    match c {
        'n' => Some('\n'),
        '\\' | '"' => Some(c),
        _ => None,
    }
}

fn valid_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[test]
fn the_exposition_is_well_formed_and_agrees_with_the_summary() {
    let text = prometheus(&summary(metadata(), health()));
    golden("metrics.prom", &text);
    let lines = check(&text);
    let value = |name: &str, wanted: &[(&str, &str)]| {
        lines
            .iter()
            .find(|line| {
                line.0 == name && wanted.iter().all(|(k, v)| line.1.get(*k).is_some_and(|x| x == v))
            })
            .map(|line| line.2)
    };
    let cell = [("stage", "@100:10s"), ("scenario", "simple"), ("target", "gateway")];
    let with = |key, value| [cell[0], cell[1], cell[2], (key, value)];
    assert_eq!(value("plimsoll_completed_total", &cell), Some(750.0));
    assert_eq!(value("plimsoll_errors_total", &with("class", "server_error")), Some(7.0));
    assert_eq!(value("plimsoll_responses_total", &with("status", "429")), Some(20.0));
    let median = value("plimsoll_service_time_seconds", &with("quantile", "0.5")).unwrap();
    // Service times are 100 ms + 50 us x i, for the i below 1000 that are no multiple of 4.
    assert!((median - 0.125).abs() < 0.000_2, "{median}");
    assert_eq!(value("plimsoll_service_time_seconds", &with("quantile", "0.999")), None);
    assert_eq!(value("plimsoll_service_time_seconds_count", &cell), Some(750.0));
    assert_eq!(value("plimsoll_run_valid", &[("seed", "42")]), Some(1.0));
}

#[test]
fn label_values_are_escaped() {
    let mut metadata = metadata();
    let name = "a \"quoted\" \\ name\nin two lines";
    metadata.scenarios[0] = name.to_owned();
    let lines = check(&prometheus(&summary(metadata, health())));
    assert!(lines.iter().any(|line| line.1.get("scenario").is_some_and(|value| value == name)));
}
