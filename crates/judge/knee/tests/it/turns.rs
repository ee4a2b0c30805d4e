//! Several searches at once.

use plimsoll_knee::{Found, Kind, Measured, Search, Settings, in_turns};

use crate::queue::{Queue, Service};

/// The knees of two queues of different capacity, each by itself as in turns.
#[test]
fn searches_take_turns_and_find_what_each_finds_alone() {
    let queues = || {
        let mut slow = Queue::new(Service::Limiter, 0.0, 1);
        slow.capacity = 800.0;
        vec![Queue::new(Service::Limiter, 0.0, 2), slow]
    };
    let made = |queue: &mut Queue, load: f64, seconds: f64| {
        let batches = queue.probe(load, seconds);
        Measured { batches, seconds, took_s: seconds + 2.2, ..Measured::default() }
    };
    let alone = |index: usize| {
        let mut queue = queues().swap_remove(index);
        let mut search = Search::new(Settings::new(0.99, 100.0));
        while let Some(planned) = search.next() {
            search.record(made(&mut queue, planned.load, planned.seconds));
        }
        search.found().unwrap().clone()
    };
    let (mut together, mut order) = (queues(), Vec::new());
    let mut searches = vec![Search::new(Settings::new(0.99, 100.0)); 2];
    in_turns(&mut searches, |index, planned, _| {
        order.push(index);
        Ok::<_, ()>(Some(made(&mut together[index], planned.load, planned.seconds)))
    })
    .unwrap();
    let found: Vec<Found> = searches.iter().map(|s| s.found().unwrap().clone()).collect();
    assert_eq!(found, [alone(0), alone(1)]);
    assert!(found[0].low.unwrap() > found[1].high.unwrap(), "{found:?}");
    // As long as both go on, each has its turn in every round, and both places in it.
    let rounds: Vec<_> = order.chunks(2).take(10).collect();
    assert!(rounds.iter().all(|round| round[0] != round[1]), "{order:?}");
    assert!(rounds.iter().any(|round| round[0] == 0) && rounds.iter().any(|round| round[0] == 1));
}

#[test]
fn an_interrupt_ends_all_and_an_error_is_passed_on() {
    let mut searches = vec![Search::new(Settings::new(0.99, 100.0)); 3];
    let mut left = 7;
    in_turns(&mut searches, |_, planned, _| {
        left -= 1;
        let mut queue = Queue::new(Service::Exponential, 0.0, 1);
        let batches = queue.probe(planned.load, planned.seconds);
        Ok::<_, ()>((left > 0).then(|| Measured { batches, ..Measured::default() }))
    })
    .unwrap();
    assert!(searches.iter().all(|search| search.next().is_none()));
    assert!(searches.iter().all(|search| search.found().unwrap().kind == Kind::AtLeast));
    let mut searches = vec![Search::new(Settings::new(0.99, 100.0))];
    assert_eq!(in_turns(&mut searches, |_, _, _| Err("broken")), Err("broken"));
}
