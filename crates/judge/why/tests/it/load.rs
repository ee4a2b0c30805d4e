//! Whether a load was at its limit, and which stage decides.

use plimsoll_metrics::RunEnd;

use crate::support::{Case, threads};

/// The answer for an open stage of 100/s with a gateway at its limit.
fn busy(change: impl FnOnce(&mut Case)) -> &'static str {
    let case = Case::open(100).with(|case| threads(case.process("gateway"), &[(0.97, 0.0)]));
    case.with(change).answer()
}

#[test]
fn an_open_load_is_at_its_limit_where_arrivals_find_no_slot() {
    // Of 1,000 planned, 11 and 9 were held up; 400 that the generator kept are not the target's.
    assert_eq!(busy(|case| case.counters().arrivals_in_stage = 989), "gateway");
    assert_eq!(busy(|case| case.counters().arrivals_in_stage = 991), "nothing_saturated");
    assert_eq!(
        busy(|case: &mut Case| {
            case.counters().arrivals_in_stage = 600;
            case.counters().arrivals_late_by_generator = 400;
        }),
        "nothing_saturated"
    );
}

#[test]
fn an_open_load_is_at_its_limit_where_answers_do_not_come() {
    assert_eq!(busy(|case| case.counters().timed_out = 11), "gateway");
    assert_eq!(busy(|case| case.counters().in_flight = 11), "gateway");
    assert_eq!(busy(|case| case.counters().never_sent = 11), "gateway");
    assert_eq!(busy(|case| case.counters().timed_out = 9), "nothing_saturated");
}

/// A queue that grows evenly ends with twice its mean; one that does not, with its mean.
#[test]
fn an_open_load_is_at_its_limit_where_the_queue_grows() {
    let queue = |mean, behind: u64| {
        busy(|case| {
            case.stage().mean_in_flight = Some(mean);
            let counters = case.counters();
            counters.completed_in_stage = counters.dispatched_in_stage - behind;
        })
    };
    assert_eq!(queue(100.0, 200), "gateway");
    assert_eq!(queue(100.0, 110), "nothing_saturated");
    // 4 more than 4: chance.
    assert_eq!(queue(4.0, 8), "nothing_saturated");
    // Requests that were refused are answered.
    let refused = busy(|case| {
        case.stage().mean_in_flight = Some(10.0);
        let counters = case.counters();
        counters.completed_in_stage -= 200;
        counters.rejected = 200;
    });
    assert_eq!(refused, "nothing_saturated");
}

/// 120/s at a target that answers 78: the warm-up of 2 s leaves 84 in flight, and 42 more follow in
/// each of ten seconds, 294 on average. A target that keeps up, with answers of 2 s, has 240 all
/// the time.
#[test]
fn a_queue_that_a_warm_up_began_goes_on_growing() {
    let after_warmup = |left: u64, mean: f64, behind: u64| {
        Case::open(120).with_open(121, 5.0).with(|case| {
            let stages = &mut case.0.metadata.stages;
            stages[0].warmup = true;
            stages[1].mean_in_flight = Some(mean);
            let groups = &mut case.0.results.by_stage;
            for (group, behind) in groups.iter_mut().zip([left, behind]) {
                let counters = &mut group.counters;
                counters.completed_in_stage = counters.dispatched_in_stage - behind;
            }
        })
    };
    let load = |case: Case| case.why().load.unwrap();
    let grown = load(after_warmup(84, 294.0, 420));
    assert_eq!(
        (grown.at_limit, &*grown.because),
        (true, "the queue grew: 420 more sent than answered")
    );
    assert!(!load(after_warmup(240, 240.0, 0)).at_limit);
    assert!(!load(after_warmup(240, 240.0, 30)).at_limit, "by chance");
}

#[test]
fn users_who_mostly_think_are_no_limit() {
    let thinking = |in_flight| {
        Case::level(50)
            .without("provider")
            .with(|case| case.stage().mean_in_flight = Some(in_flight))
    };
    let why = thinking(20.0).why();
    assert_eq!(why.answer.name(), "nothing_saturated");
    assert!(why.sentence.contains("they mostly think"), "{}", why.sentence);
    assert_eq!(thinking(30.0).answer(), "cannot_be_told");
}

/// Five requests of 64 users: the other 59 do not think, they have nothing to send.
#[test]
fn users_without_a_request_do_not_think() {
    let case = Case::level(64).without("provider").with(|case| {
        case.stage().mean_in_flight = Some(5.0);
        let counters = case.counters();
        (counters.scheduled, counters.completed, counters.completed_in_stage) = (5, 5, 5);
    });
    let why = case.why();
    let load = why.load.unwrap();
    assert_eq!((load.at_limit, &*load.because), (true, "a closed loop of 5 users"));
}

#[test]
fn the_stage_at_its_limit_with_the_most_load_decides() {
    let case = Case::closed(10).with_closed(200, 9.0).with_closed(50, 6.0);
    assert_eq!(case.why().load.unwrap().stage, "200:10s");
    // The rate that was missed, not the higher one of a stage that was carried.
    let case =
        Case::open(100).with(|case| case.counters().arrivals_in_stage = 500).with_open(300, 5.0);
    assert_eq!(case.why().load.unwrap().stage, "@100:10s");
    let warm = Case::closed(10).with_closed(200, 9.0).with(|case| case.stage().warmup = true);
    assert_eq!(warm.why().load.unwrap().stage, "10:10s");
}

#[test]
fn a_run_without_a_measured_request_has_no_answer() {
    let why = Case::empty().why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.findings.is_empty() && why.load.is_none());
}

/// A target that dies, or refuses everything, carries no rate.
#[test]
fn a_rate_without_good_answers_was_not_carried() {
    let failed = |failed: u64| {
        Case::open(100).with(|case| {
            let counters = case.counters();
            (counters.completed, counters.completed_in_stage) = (1_000 - failed, 1_000 - failed);
            (counters.failed, counters.unexpected) = (failed, failed);
        })
    };
    let few = failed(160).why();
    assert_eq!(few.answer.name(), "nothing_saturated");
    let words = "nothing saturated at 100/s sent (84.0/s answered within the stage): no queue grew, \
                 but 16.0% of the requests got no";
    assert!(few.sentence.starts_with(words), "{}", few.sentence);
    assert!(failed(10).why().sentence.contains("the rate was carried"));
    let none = failed(1_000).why();
    assert_eq!(none.answer.name(), "cannot_be_told");
    assert_eq!(none.sentence, "unknown: no request was completed in the stage");
    assert_eq!(none.missing.len(), 1);
}

/// The screen has the rate that was sent; answers that take seconds come after the stage.
#[test]
fn a_rate_that_was_carried_is_the_one_that_was_sent() {
    let slow = Case::open(100).with(|case| {
        case.counters().completed_in_stage = 700;
        case.stage().mean_in_flight = Some(300.0);
    });
    let sentence = slow.why().sentence;
    let words = "nothing saturated at 100/s sent (70.0/s answered within the stage): the rate was";
    assert!(sentence.starts_with(words), "{sentence}");
    let quick = Case::open(100).why().sentence;
    assert!(quick.starts_with("nothing saturated at 100/s: the rate was carried"), "{quick}");
}

/// A run that was killed left the rows of what had ended, and nothing else.
#[test]
fn of_a_run_that_did_not_finish_nothing_is_concluded() {
    let case = Case::closed(50).with(|case| case.0.metadata.run.ended = RunEnd::Unfinished);
    let why = case.why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.sentence.starts_with("unknown: the run did not finish"), "{}", why.sentence);
}

#[test]
fn refusals_are_told_and_limit_nothing() {
    let case = Case::open(100).with(|case| case.counters().rejected = 120);
    let why = case.why();
    assert_eq!(why.answer.name(), "nothing_saturated");
    assert!(why.notes[0].starts_with("12.0% of the requests were refused"), "{:?}", why.notes);
}
