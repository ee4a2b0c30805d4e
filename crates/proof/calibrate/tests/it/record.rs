//! The calibration record: stored, read back, and whether it counts as passed.

use plimsoll_calibrate::{Experiment, Progress, Record, SCHEMA, calibrate};

use crate::support::{exclusive, runner};

#[test]
fn the_record_is_kept_for_later_runs_on_this_host_only() {
    let _exclusive = exclusive();
    let runner = runner();
    let mut observed = Vec::new();
    let experiments = ["T9"].map(|id| Experiment::named(id).unwrap());
    let record = calibrate(&runner, &experiments, "0.0.0", &mut |progress| {
        observed.push(match progress {
            Progress::Begun { experiment, number, of } => {
                format!("{number}/{of} {}", experiment.id)
            }
            Progress::Over(finding) => finding.experiment.clone(),
        });
    });
    assert_eq!((observed.join(" "), record.passed()), ("1/1 T9 T9".to_owned(), true));
    assert!(record.failed_tests().is_empty());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/calibration.json");
    assert_eq!(Record::load_from(&path).unwrap(), None, "never calibrated");
    record.store(&path).unwrap();
    assert_eq!(Record::load_from(&path).unwrap().as_ref(), Some(&record));

    for (why, text) in [
        (
            "another host",
            std::fs::read_to_string(&path).unwrap().replace(&record.host.kernel, "1.0"),
        ),
        (
            "another layout",
            std::fs::read_to_string(&path).unwrap().replace(SCHEMA, "plimsoll.calibration/9"),
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(Record::load_from(&path).unwrap(), None, "{why}");
        record.store(&path).unwrap();
    }
    std::fs::write(&path, "{").unwrap();
    assert!(Record::load_from(&path).is_err());
}

#[test]
fn a_calibration_with_nothing_run_or_something_not_run_does_not_pass() {
    let _exclusive = exclusive();
    let runner = runner();
    for (ids, failed) in [(vec![], &[][..]), (vec!["T9", "T5"], &["T5 stalled generator"])] {
        let experiments: Vec<_> = ids.into_iter().filter_map(Experiment::named).collect();
        let record = calibrate(&runner, &experiments, "0.0.0", &mut |_| {});
        assert!(!record.passed(), "{experiments:?}");
        assert_eq!(record.failed_tests(), failed);
    }
}
