//! What a run with several levels of load says of its median.

use plimsoll_measure::{ErrorClass, Outcome, Sample};
use plimsoll_metrics::{LoadModel, StageInfo};
use plimsoll_report::{Style, text};

use crate::support::{ended, health, metadata, sample, summary_of};

/// 2,000 turns in each of two stages of 10 s: some 5 ms with the lower load, and this many times as
/// long with the higher.
fn turns(factor: u64) -> Vec<Sample> {
    let turn = |stage: u16, factor: u64| {
        (0..2_000_u64).map(move |number| {
            let start = u64::from(stage) * 10_000_000 - 9_000_000 + number * 4_900;
            // Between 4.9 and 5.1 ms, without a pattern in time.
            let service = 4_900 + number * 7_919 % 200;
            sample(stage, 0, start, service * factor / 100)
        })
    };
    turn(1, 100).chain(turn(2, factor)).collect()
}

/// What the report says of the median with these loads.
fn said(loads: [f64; 2], samples: Vec<Sample>) -> Option<String> {
    let mut metadata = metadata();
    for (number, users) in [(1, loads[0]), (2, loads[1])] {
        let stage = &mut metadata.stages[number];
        *stage = StageInfo { model: LoadModel::Closed, users: Some(users), ..stage.clone() };
    }
    let text = text(&summary_of(samples, metadata, health()), Style::plain(400));
    let mut lines = text.lines();
    lines.find(|line: &&str| line.contains("over a rising load")).map(str::to_owned)
}

#[test]
fn a_median_that_stays_is_flat_with_its_limits_and_with_what_it_does_not_say() {
    let flat = said([4.0, 32.0], turns(103)).unwrap();
    for part in ["5.00ms with 4 users, 5.15ms with 32 users", "no penalty of concurrency at"] {
        assert!(flat.contains(part), "{flat}");
    }
    assert!(flat.contains(" the median up to 32 users. p99: 5."), "{flat}");
    // The interval of the change contains the true one.
    let (_, change) = flat.split_once("a change of +").unwrap();
    let (least, rest) = change.split_once("% to +").unwrap();
    let (most, _) = rest.split_once('%').unwrap();
    let (least, most): (f64, f64) = (least.parse().unwrap(), most.parse().unwrap());
    assert!(least < 3.0 && 3.0 < most && most < 10.0, "{flat}");
}

#[test]
fn a_median_that_grows_is_not_flat_and_one_between_is_neither() {
    let grows = said([4.0, 32.0], turns(150)).unwrap();
    assert!(grows.contains("it grows with the load. p99"), "{grows}");
    let between = said([4.0, 32.0], turns(110)).unwrap();
    let unclear = "too little data to say whether it grows by more than 10 %";
    assert!(between.contains(unclear), "{between}");
}

#[test]
fn nothing_is_said_of_one_level_and_failures_allow_no_conclusion() {
    assert_eq!(said([4.0, 6.0], turns(100)), None);
    let mut failing = turns(100);
    for turn in failing.iter_mut().filter(|turn: &&mut Sample| turn.stage.0 == 2).step_by(20) {
        *turn = ended(*turn, Outcome::Failed(ErrorClass::ServerError), 500);
    }
    let said = said([4.0, 32.0], failing).unwrap();
    assert!(said.contains("no conclusion, because up to 5.00% of the requests failed"), "{said}");
}
