//! Several searches at once.

use plimsoll_knee::{Found, Kind, Search, Settings, in_turns};

use crate::target::{Simulation, TARGET, Target};

/// The capacities of two targets, each measured alone and with alternating probes.
#[test]
fn searches_take_turns_and_find_what_each_finds_alone() {
    let limited = |rate, seed| {
        let limit = Some((rate, 10.0));
        let target = Target { limit, mean_s: 0.01, is_poisson: false, ..TARGET };
        Simulation::new(&target, seed)
    };
    let targets = || vec![limited(200.0, 2), limited(80.0, 1)];
    let alone =
        |index: usize| targets().swap_remove(index).search(Settings::new(0.99, 10.0)).found();
    let (mut together, mut order) = (targets(), Vec::new());
    let mut searches = vec![Search::new(Settings::new(0.99, 10.0)); 2];
    in_turns(&mut searches, |index, planned, _| {
        order.push(index);
        Ok::<_, ()>(Some(together[index].measure(planned)))
    })
    .unwrap();
    let found: Vec<Found> = searches.iter().map(Search::found).collect();
    assert_eq!(found, [alone(0), alone(1)]);
    assert!(found[0].low.unwrap() > found[1].high.unwrap(), "{found:?}");
    // While both run, each has a turn in every round, and is first and second equally often.
    let rounds: Vec<_> = order.chunks(2).take(8).collect();
    assert!(rounds.iter().all(|round| round[0] != round[1]), "{order:?}");
    assert!(rounds.iter().any(|round| round[0] == 0) && rounds.iter().any(|round| round[0] == 1));
}

/// The time of a stop counts from the start of all searches.
#[test]
fn the_time_of_a_stop_is_that_of_all_searches() {
    let mut targets = [TARGET, Target { down_s: (20.0, f64::INFINITY), ..TARGET }]
        .map(|target| Simulation::new(&target, 1));
    let mut searches = vec![Search::new(Settings::new(0.99, 10.0)); 2];
    let mut spent_s = 0.0;
    in_turns(&mut searches, |index, planned, _| {
        let measured = targets[index].measure(planned);
        spent_s += measured.took_s;
        Ok::<_, ()>(Some(measured))
    })
    .unwrap();
    assert!((searches.iter().map(Search::spent_s).sum::<f64>() - spent_s).abs() < 1e-6);
    let stop = &searches[1].findings()[0];
    let since: f64 = stop.values["since"].trim_end_matches('s').parse().unwrap();
    // Meanwhile the other target had two turns of some 20 s.
    assert!(stop.code == 605 && (30.0..70.0).contains(&since), "{stop:?}");
    assert_eq!(searches[0].findings().iter().filter(|finding| finding.code == 605).count(), 0);
}

#[test]
fn an_interrupt_ends_all_and_an_error_is_passed_on() {
    let mut searches = vec![Search::new(Settings::new(0.99, 10.0)); 3];
    let mut left = 7;
    in_turns(&mut searches, |_, planned, _| {
        left -= 1;
        Ok::<_, ()>((left > 0).then(|| Simulation::new(&TARGET, 1).measure(planned)))
    })
    .unwrap();
    assert!(searches.iter().all(|search| search.next().is_none()));
    assert!(searches.iter().all(|search| search.found().kind == Kind::Unknown));
    let mut searches = vec![Search::new(Settings::new(0.99, 10.0))];
    assert_eq!(in_turns(&mut searches, |_, _, _| Err("broken")), Err("broken"));
}
