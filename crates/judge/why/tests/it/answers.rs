//! Generator, several suspects, and what is missing.

use plimsoll_metrics::{HostLoad, Reason, Validity};
use plimsoll_why::{State, Suspect};

use crate::support::{Case, threads};

fn invalid(stage: &str, figure: Option<&str>) -> Validity {
    Validity::Invalid(vec![Reason {
        what: format!("the median service time of stage `{stage}`"),
        measured: "9.00ms, of which the generator may have added 4.00ms".to_owned(),
        bound: String::new(),
        fix: String::new(),
        causes: Vec::new(),
        figure: figure.map(str::to_owned),
    }])
}

#[test]
fn a_generator_that_falsified_the_stage_is_the_answer_whatever_the_load() {
    for (mut case, stage) in [(Case::closed(50), "50:10s"), (Case::open(100), "@100:10s")] {
        case.0.validity = invalid(stage, Some("service_time"));
        assert_eq!(case.answer(), "generator");
        // Another stage, or a reason that is no lateness.
        case.0.validity = invalid("1:10s", Some("service_time"));
        assert_eq!(case.answer(), "nothing_saturated");
        case.0.validity = invalid(stage, None);
        assert_eq!(case.answer(), "nothing_saturated");
    }
    let late = |mut case: Case, stage| {
        case.0.validity = invalid(stage, Some("service_time"));
        case.why().sentence
    };
    // What it spoils is not what limits the load.
    assert!(late(Case::closed(50), "50:10s").starts_with("the generator limits at 100/s: "));
    let carried = late(Case::open(100), "@100:10s");
    assert!(carried.starts_with("Plimsoll itself limited this run at 100/s sent: "), "{carried}");
    let ports = Case::open(100).with(|case| {
        case.0.health.generator_errors = [("gen_port_exhaustion".to_owned(), 7)].into();
    });
    assert_eq!(ports.answer(), "generator");
    assert!(ports.why().sentence.contains("gen_port_exhaustion x 7"));
}

#[test]
fn without_a_good_answer_nothing_can_be_told() {
    for case in [Case::closed(50), Case::open(100)] {
        let refused = case.with(|case| {
            let counters = case.counters();
            counters.rejected = counters.completed;
            (counters.completed, counters.completed_in_stage) = (0, 0);
        });
        assert_eq!(refused.answer(), "cannot_be_told");
        assert_eq!(refused.why().sentence, "unknown: no request was completed in the stage");
    }
}

#[test]
fn a_worker_without_rest_is_the_answer_only_if_the_load_is_at_its_limit() {
    let busy = |case: Case, ran, waited| {
        case.with(|case| threads(case.process("plimsoll"), &[(ran, waited), (0.1, 0.0)])).answer()
    };
    assert_eq!(busy(Case::closed(50), 0.95, 0.0), "generator");
    assert_eq!(busy(Case::closed(50), 0.5, 0.45), "generator");
    assert_eq!(busy(Case::closed(50), 0.5, 0.3), "nothing_saturated");
    assert_eq!(busy(Case::open(100), 0.95, 0.0), "nothing_saturated");
    // Without readings of its threads, its health tells.
    let old = |demand| {
        Case::level(50).with(|case| {
            case.0.resources.clear();
            case.0.health.worker_cpu_shares = vec![demand, 0.1];
        })
    };
    assert_eq!(old(0.95).answer(), "generator");
    assert_eq!(old(0.5).answer(), "cannot_be_told");
}

#[test]
fn where_nothing_or_little_is_answered_nobody_limits() {
    let full = |completed| {
        Case::closed(50).with(|case| {
            threads(case.process("gateway"), &[(0.97, 0.0)]);
            let counters = case.counters();
            counters.unexpected = counters.scheduled - completed;
            (counters.completed, counters.completed_in_stage) = (completed, completed);
        })
    };
    let dead = full(0).why();
    assert_eq!(dead.answer.name(), "cannot_be_told");
    assert!(dead.sentence.contains("no request was completed"), "{}", dead.sentence);
    let failing = full(400).why();
    assert_eq!(failing.answer.name(), "cannot_be_told");
    assert!(failing.sentence.contains("60.0% of the requests got no good answer"), "{failing:?}");
    assert_eq!(full(600).answer(), "gateway");
}

#[test]
fn two_at_their_limits_are_both_named_and_not_told_apart() {
    let case = Case::closed(50).with(|case| {
        threads(case.process("gateway"), &[(0.97, 0.0)]);
        threads(case.process("provider"), &[(0.95, 0.0)]);
    });
    let why = case.why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert_eq!(why.saturated, [Suspect::Gateway, Suspect::Provider]);
    assert_eq!(why.sentence, "unknown: gateway and provider are at their limits");
}

#[test]
fn a_busy_process_under_a_load_that_was_carried_limits_nothing() {
    let case = Case::open(100).with(|case| threads(case.process("gateway"), &[(0.97, 0.0)]));
    let why = case.why();
    assert_eq!(why.answer.name(), "nothing_saturated");
    assert!(
        why.sentence.ends_with("busiest is the gateway, 97 % of its limit"),
        "{}",
        why.sentence
    );
    let finding = case.finding(Suspect::Gateway);
    assert_eq!(finding.state, State::Clear);
}

#[test]
fn what_is_not_watched_is_asked_for() {
    let why = Case::level(50).without("provider").why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    let sentence = "unknown: nothing watched is full, and nothing is known of the provider";
    assert_eq!(why.sentence, sentence);
    assert_eq!(why.missing, ["--watch provider=:9000, if it runs on this host"]);
    let why = Case::level(50).without("provider").without("gateway").why();
    // What answers may be a gateway or the provider itself.
    assert_eq!(why.missing[0], "--watch target=:8080, if it runs on this host");
    assert_eq!(why.sentence, "unknown: nothing is known of the target and the provider");
    // A gateway at its limit is an answer, whatever is not known of the provider.
    let full = Case::level(50)
        .without("provider")
        .with(|case| threads(case.process("gateway"), &[(0.97, 0.0)]));
    assert_eq!(full.answer(), "gateway");
    // A load that was carried needs no evidence of processes.
    assert_eq!(Case::open(100).without("provider").answer(), "nothing_saturated");
}

#[test]
fn a_full_host_whose_processes_all_rest_at_times_names_nobody() {
    let case = |busy| {
        Case::closed(50).with(|case| {
            case.resources().host = Some(HostLoad { cpus: 2, busy, stolen: 0.02 });
        })
    };
    let why = case(0.9).why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.sentence.contains("the CPUs of the host are 92.0% in use"), "{}", why.sentence);
    assert_eq!(case(0.8).answer(), "nothing_saturated");
}

/// A provider that lets a few requests in at a time uses no CPU, and looks idle.
#[test]
fn that_nothing_is_full_at_one_level_of_users_is_no_proof() {
    let why = Case::level(16).why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.missing[0].contains("--stages 4:10s,16:10s"), "{why:?}");
    // A single user waits for nobody.
    assert_eq!(Case::level(1).answer(), "nothing_saturated");
    assert_eq!(Case::level(1).without("provider").answer(), "nothing_saturated");
    assert_eq!(Case::closed(16).answer(), "nothing_saturated");
}

/// A percentile of fewer values than it takes is none.
#[test]
fn of_few_requests_the_most_is_said_and_no_p99() {
    let evidence = |sent| {
        let case = Case::closed(50).with(|case| case.counters().dispatched_in_stage = sent);
        case.finding(Suspect::Generator).evidence.join(", ")
    };
    assert!(evidence(999).ends_with("late by 1.00ms at most"), "{}", evidence(999));
    assert!(evidence(1_000).ends_with("late by 300us at p99"), "{}", evidence(1_000));
}

/// The gateway always had work: a request that is sent earlier waits longer there.
#[test]
fn a_late_generator_limits_nothing_beside_a_full_process() {
    let late = |gateway, worker| {
        Case::closed(50).with(|case| {
            case.0.validity = invalid("50:10s", Some("service_time"));
            threads(case.process("gateway"), &[(gateway, 0.0)]);
            threads(case.process("plimsoll"), &[(worker, 0.0), (0.1, 0.0)]);
        })
    };
    assert_eq!(late(0.97, 0.4).answer(), "gateway");
    assert_eq!(late(0.97, 0.4).finding(Suspect::Generator).state, State::Clear);
    assert_eq!(late(0.5, 0.4).answer(), "generator");
    assert_eq!(late(0.97, 0.95).answer(), "cannot_be_told");
    // Under a load that was carried the gateway is no limit, and the lateness is.
    let open = Case::open(100).with(|case| {
        case.0.validity = invalid("@100:10s", Some("response_time"));
        threads(case.process("gateway"), &[(0.97, 0.0)]);
    });
    assert_eq!(open.answer(), "generator");
}
