//! The history of a machine: spread between runs, and changes.

use plimsoll_compare::gates::SpreadSource;
use plimsoll_compare::{History, StoredRun, Verdict, ahead, compare, gates_of};

use crate::support::{Figures, Noise, PLAIN, THREE, options, run, turns};

/// A history of groups of three runs, the first run of all with this number. From the group
/// `slower` on, times are 10 % longer.
fn history(noise: &mut Noise, groups: u64, slower: u64) -> (tempfile::TempDir, History) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let mut history = History::read(&path).unwrap();
    for group in 0..groups {
        let by = if group < slower { 1.0 } else { 1.1 };
        let level = Figures { ttft: PLAIN.ttft.map(|time| time * by), ..PLAIN };
        let runs: Vec<StoredRun> = (0..3)
            .map(|index| run(1_000 + group * 3 + index, noise.figures(0.01, level)))
            .collect();
        let gates = gates_of(&options(&THREE), &runs, &[]).unwrap();
        assert_eq!(history.record(&runs, &gates).unwrap(), 3);
        assert_eq!(history.record(&runs, &gates).unwrap(), 0, "they are in it already");
    }
    (folder, History::read(&path).unwrap())
}

#[test]
fn single_runs_are_judged_by_the_spread_of_the_history() {
    let (_folder, history) = history(&mut Noise(3), 8, 99);
    // 1 % between runs, 16 degrees of freedom: 1 + 1 runs see about (2.12 + 0.86) x 1.4 %.
    for (by, verdict) in [(1.10, Verdict::Fail), (0.90, Verdict::Pass)] {
        let new = Figures { ttft: PLAIN.ttft.map(|time| time * by), ..PLAIN };
        let (base, new) = turns(1, || PLAIN, || new);
        let gates = options(&[("ttft.p50", "3%"), ("ttft.p99", "3%")]);
        let found = compare(&base, &new, &gates, Some(&history)).unwrap();
        assert_eq!(found.verdict, verdict, "{}", found.text(1_000));
        let gate = &found.gates[0];
        assert_eq!(gate.judged.spread, Some(SpreadSource::History));
        assert!((gate.judged.degrees_of_freedom.unwrap() - 16.0).abs() < 1e-9);
        assert!((0.006..0.015).contains(&gate.judged.run_sd.unwrap()), "{gate:?}");
        assert_eq!(found.history.unwrap().runs, 24);
    }
}

#[test]
fn another_machine_has_no_part_in_the_spread() {
    let (_folder, history) = history(&mut Noise(3), 8, 99);
    let (mut base, mut new) = turns(1, || PLAIN, || PLAIN);
    for run in base.iter_mut().chain(&mut new) {
        run.summary.metadata.environment.kernel = Some("Linux 7.0".to_owned());
    }
    let found = compare(&base, &new, &options(&THREE), Some(&history)).unwrap();
    assert_eq!((found.verdict, found.gates[0].judged.spread), (Verdict::Inconclusive, None));
    assert_eq!(found.history.unwrap().runs, 0);
}

#[test]
fn a_change_in_the_history_is_found_where_it_is() {
    let (_folder, history) = history(&mut Noise(5), 10, 6);
    let (base, new) = turns(6, || PLAIN, || PLAIN);
    let found = compare(&base, &new, &options(&THREE), Some(&history)).unwrap();
    let figures: Vec<_> = found.change_points.iter().map(|p| p.figure.as_str()).collect();
    assert_eq!(figures, ["ttft.p50", "ttft.p99"], "{:?}", found.change_points);
    for point in &found.change_points {
        assert!((point.change - 0.1).abs() < 0.02 && point.p < 0.001, "{point:?}");
        // The 19th run of the history is the first that is slower.
        assert_eq!((point.started_unix_ns - 1_790_000_000_000_000_000) / 60_000_000_000, 1_018);
    }
}

#[test]
fn a_damaged_history_is_an_error_that_names_the_line() {
    let (folder, _) = history(&mut Noise(3), 1, 9);
    let path = folder.path().join("history.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"schema\": \"plimsoll.his");
    std::fs::write(&path, text).unwrap();
    let error = History::read(&path).unwrap_err().to_string();
    assert!(error.contains("line 4 is no line of a history"), "{error}");
}

/// Before there are new runs: 1.5 % between 6 runs see (2.228 + 0.879) x 1.5 % x sqrt(2/6).
#[test]
fn what_could_be_seen_is_said_beforehand() {
    let ends = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0];
    let sd = (6.0_f64 / 5.0).sqrt();
    let times = ends.map(|end| 20.0 * (end * 0.015 / sd).exp());
    let base: Vec<_> = times
        .iter()
        .zip(0..)
        .map(|(time, number)| run(number, Figures { ttft: [*time, 41.0], ..PLAIN }))
        .collect();
    let found = ahead(&base, &options(&[("ttft.p50", "3%")]), None).unwrap();
    let gate = &found.gates[0];
    assert!((gate.run_sd.unwrap() - 0.015).abs() < 1e-9, "{gate:?}");
    assert!((gate.detectable.unwrap() - 0.0273).abs() < 2e-4, "{gate:?}");
    // (2.228 + 0.879) x 0.866 = 2.69 is less than ln 1.03 = 2.96; with 5 runs it is 3.03.
    assert_eq!(gate.runs_needed, Some(6));
    assert!(found.text(1_000).contains("6 + 6 see"), "{}", found.text(1_000));
    let single = ahead(&base[..1], &options(&[("ttft.p50", "3%")]), None).unwrap();
    assert_eq!(single.gates[0].runs_needed, None);
    assert!(single.text(1_000).contains("says nothing about the spread"), "{}", single.text(1_000));
}
