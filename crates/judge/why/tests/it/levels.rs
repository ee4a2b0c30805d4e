//! What several levels of load and a target without the gateway tell.

use plimsoll_metrics::{Counters, Group, TargetInfo};
use plimsoll_why::{State, Suspect};

use crate::support::{Case, SECONDS, times};

#[test]
fn times_that_do_not_grow_with_the_load_mean_that_nothing_queues() {
    let levels = |high| Case::level(10).with_closed(40, high).without("provider");
    // 5.0 ms for 10 users.
    let flat = levels(5.4);
    assert_eq!(flat.answer(), "nothing_saturated");
    assert!(flat.why().sentence.contains("from 5.00ms to 5.40ms"), "{}", flat.why().sentence);
    assert_eq!(levels(5.6).answer(), "cannot_be_told");
    // 1.5 times as many users are no other level.
    let near = Case::level(10).with_closed(15, 5.0).without("provider");
    assert_eq!(near.answer(), "cannot_be_told");
}

#[test]
fn times_that_grow_although_nothing_watched_is_full_have_an_unknown_cause() {
    let levels = |high| Case::level(10).with_closed(40, high);
    let why = levels(19.0).why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.sentence.contains("times grow with the load (from 5.00ms to 19.0ms)"), "{why:?}");
    // 16 % more are neither.
    assert_eq!(levels(5.8).answer(), "cannot_be_told");
    assert_eq!(levels(5.2).answer(), "nothing_saturated");
}

#[test]
fn a_rate_that_is_missed_by_nobody_who_is_watched_has_an_unknown_cause() {
    let case = Case::open(100).with(|case| case.counters().arrivals_in_stage = 500);
    let why = case.why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.missing[0].contains("a limit of connections"), "{why:?}");
}

/// A comparison of a gateway with its provider at 50/s and 100/s each: mean response times of the
/// gateway and of the direct target at both.
fn comparison(low: (f64, f64), high: (f64, f64)) -> Case {
    let mut case = Case::empty().with_open(100, low.0).with_open(200, high.0);
    let target = |name: &str, direct| {
        let name = name.to_owned();
        TargetInfo { name, direct, ..TargetInfo::default() }
    };
    case.0.metadata.targets = vec![target("upstream", true), target("kong", false)];
    for (stage, per_second, (kong, direct)) in [("@100:10s", 50, low), ("@200:10s", 100, high)] {
        for (name, ms) in [("kong", kong), ("upstream", direct)] {
            let all = per_second * 10;
            let counters = Counters {
                scheduled: all,
                arrivals_planned: all,
                arrivals_in_stage: all,
                completed: all,
                ..Counters::default()
            };
            case.0.results.cells.push(Group {
                stage: Some(stage.to_owned()),
                target: Some(name.to_owned()),
                duration_s: SECONDS,
                counters,
                distributions: [("response_time_ms".to_owned(), times(all, ms))].into(),
                ..Group::default()
            });
        }
    }
    case.without("provider").without("gateway").with(|case| {
        case.counters().arrivals_in_stage = 1_000;
    })
}

#[test]
fn growth_that_the_direct_target_has_too_is_the_providers() {
    // 10 of 11 ms are in the provider, then 5 of 11, then 1 of 11.
    for (high, answer, state) in [
        ((21.0, 15.0), "provider", State::Saturated),
        ((21.0, 10.0), "cannot_be_told", State::Unknown),
        ((21.0, 6.0), "cannot_be_told", State::Clear),
    ] {
        let case = comparison((10.0, 5.0), high);
        assert_eq!(case.answer(), answer, "{high:?}");
        assert_eq!(case.finding(Suspect::Provider).state, state, "{high:?}");
    }
    // It grows by 10 % only.
    let case = comparison((10.0, 5.0), (11.0, 6.0));
    assert_eq!(case.finding(Suspect::Provider).state, State::Unknown);
}

/// Times may grow where the rate is carried: that limits nothing.
#[test]
fn growth_under_a_load_that_was_carried_accuses_nobody() {
    let case = comparison((10.0, 5.0), (21.0, 15.0)).with(|case| {
        case.counters().arrivals_in_stage = 2_000;
    });
    assert_eq!(case.answer(), "nothing_saturated");
    assert_eq!(case.finding(Suspect::Provider).state, State::Clear);
}

#[test]
fn a_direct_target_that_misses_the_rate_too_accuses_the_provider() {
    let missing = |kong, direct| {
        comparison((10.0, 5.0), (10.0, 5.0)).with(|case| {
            let mut cells: Vec<_> = case
                .0
                .results
                .cells
                .iter_mut()
                .filter(|cell: &&mut Group| cell.stage.as_deref() == Some("@200:10s"))
                .collect();
            // In the order of `comparison`.
            cells[0].counters.arrivals_in_stage -= kong;
            cells[1].counters.arrivals_in_stage -= direct;
        })
    };
    // Of 1,000 arrivals each.
    assert_eq!(missing(300, 200).answer(), "provider");
    assert_eq!(missing(300, 0).finding(Suspect::Provider).state, State::Clear);
    assert_eq!(missing(0, 0).finding(Suspect::Provider).state, State::Unknown);
}

#[test]
fn what_was_in_flight_is_split_if_it_adds_up() {
    // At 100/s each: 21 ms make 2.1, of which 15 ms or 1.5 are the provider's; directly 1.5 more.
    let with = |in_flight| {
        let case = comparison((10.0, 5.0), (21.0, 15.0));
        case.with(|case| case.stage().mean_in_flight = Some(in_flight)).why()
    };
    let why = with(3.65);
    let split = why.split.unwrap();
    assert!((split.adds_up_to - 3.6 / 3.65).abs() < 1e-9, "{split:?}");
    let parts: Vec<_> =
        split.parts.iter().map(|part| (part.place.as_str(), part.in_flight)).collect();
    let expected =
        [("provider, asked directly", 1.5), ("gateway kong", 0.6), ("provider behind kong", 1.5)];
    for ((place, in_flight), (name, value)) in parts.iter().zip(expected) {
        assert_eq!(*place, name);
        assert!((in_flight - value).abs() < 1e-9, "{parts:?}");
    }
    assert_eq!(why.split_refused, None);
    // 3.6 of 3.68 are 97.8 %.
    let why = with(3.68);
    assert!(why.split.is_none());
    let refused = why.split_refused.unwrap();
    assert!(refused.contains("97.8%") && refused.contains("not within 2 %"), "{refused}");
}

/// A comparison loads the provider once more as a control: its 1.5 belong to the provider too.
#[test]
fn the_control_of_a_comparison_is_no_gateway() {
    let case = comparison((10.0, 5.0), (21.0, 15.0)).with(|case| {
        let name = "upstream'".to_owned();
        let control = TargetInfo { name: name.clone(), direct: true, ..TargetInfo::default() };
        case.0.metadata.targets.insert(1, control);
        let again = |cell: &Group| Group { target: Some(name.clone()), ..cell.clone() };
        let again: Vec<_> = case
            .0
            .results
            .cells
            .iter()
            .filter(|cell: &&Group| cell.target.as_deref() == Some("upstream"))
            .map(again)
            .collect();
        case.0.results.cells.extend(again);
        case.stage().mean_in_flight = Some(5.1);
    });
    let why = case.why();
    let split = why.split.unwrap();
    assert!((split.adds_up_to - 1.0).abs() < 1e-9, "{split:?}");
    assert!((split.parts[0].in_flight - 3.0).abs() < 1e-9 && split.parts.len() == 3, "{split:?}");
    assert_eq!(why.answer.name(), "provider");
}

#[test]
fn there_is_no_split_without_a_direct_target_or_of_one_that_is_slower() {
    let alone = Case::closed(50).why();
    assert!(alone.split.is_none() && alone.split_refused.unwrap().contains("versus --direct"));
    let slower = comparison((10.0, 5.0), (21.0, 25.0)).why();
    assert!(slower.split_refused.unwrap().contains("`kong` is faster than the direct target"));
}
