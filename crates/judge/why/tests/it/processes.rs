//! When a watched process is at a limit of its own; beside each fault stands its twin without it.

use plimsoll_metrics::{HostLoad, ProcessLoad, QuotaLoad};
use plimsoll_why::{State, Suspect};

use crate::support::{Case, threads};

/// The answer for a closed loop of 50 users with this gateway.
fn gateway(change: impl FnOnce(&mut ProcessLoad)) -> (&'static str, String) {
    let case = Case::closed(50).with(|case| change(case.process("gateway")));
    (case.answer(), case.why().sentence)
}

fn quota(cpus: f64, throttled_periods: u64) -> QuotaLoad {
    QuotaLoad { cpus, periods: 100, throttled_periods, ..QuotaLoad::default() }
}

#[test]
fn a_process_that_uses_nine_tenths_of_its_cpus_is_at_its_limit() {
    // Threads that are all half idle: only the sum counts.
    let with = |cpus, each| {
        gateway(move |process| {
            process.cpus = Some(cpus);
            threads(process, &[(each, 0.0); 4]);
        })
    };
    let (answer, sentence) = with(2, 0.46);
    assert_eq!(answer, "gateway");
    assert_eq!(sentence, "the gateway limits at 100/s: 1.84 of 2 CPUs");
    // 1.76 of 2 are 88 %, and 1.84 of 4 are 46 %.
    assert_eq!(with(2, 0.44).0, "nothing_saturated");
    assert_eq!(with(4, 0.46).0, "nothing_saturated");
}

#[test]
fn a_server_with_one_thread_is_at_its_limit_with_one_cpu() {
    let with = |each: &[(f64, f64)]| gateway(|process| threads(process, each));
    let (answer, sentence) = with(&[(0.95, 0.0), (0.02, 0.0)]);
    assert_eq!(answer, "gateway");
    assert_eq!(sentence, "the gateway limits at 100/s: its thread `worker` ran 0.95 of the time");
    // It had work all the time, and no CPU for a third of it.
    assert_eq!(with(&[(0.6, 0.33)]).0, "gateway");
    assert_eq!(with(&[(0.6, 0.25)]).0, "nothing_saturated");
    assert_eq!(with(&[(0.85, 0.0)]).0, "nothing_saturated");
    // A compiler or collector beside workers that do most of the work.
    assert_eq!(with(&[(0.95, 0.0), (0.5, 0.0), (0.5, 0.0), (0.5, 0.0)]).0, "nothing_saturated");
    // Workers that are all full on a host with more CPUs.
    assert_eq!(with(&[(0.92, 0.0), (0.93, 0.0), (0.4, 0.0)]).0, "gateway");
}

#[test]
fn a_quota_is_a_limit_by_its_mean_or_by_how_often_it_stops() {
    let with = |cores, quota| {
        gateway(move |process| {
            threads(process, &[(cores, 0.0)]);
            process.quota = Some(quota);
        })
    };
    let (answer, sentence) = with(0.29, quota(0.3, 98));
    assert_eq!(
        (answer, sentence.as_str()),
        ("gateway", "the gateway limits at 100/s: 0.29 of 0.3 CPU")
    );
    // Bursts: on average it has a third left.
    let (answer, sentence) = with(0.2, quota(0.3, 60));
    assert_eq!(answer, "gateway");
    assert!(sentence.contains("a quota of 0.3 CPU stopped it in 60 of 100 periods"), "{sentence}");
    assert_eq!(with(0.2, quota(0.3, 40)).0, "nothing_saturated");
    // Plimsoll runs under the same one, so that it is not the gateway's.
    let shared = QuotaLoad { with_generator: true, ..quota(0.3, 98) };
    assert_eq!(with(0.2, shared).0, "nothing_saturated");
}

/// A page of metrics tells neither the CPUs, if nobody says them, nor the threads.
#[test]
fn what_a_page_of_metrics_does_not_tell_is_a_doubt() {
    let with = |cores, cpus: Option<f64>| {
        let case = Case::closed(50).with(|case| {
            let process = case.process("gateway");
            let page = Some("http://h:9100/metrics process_cpu_seconds_total".to_owned());
            let quota = cpus.map(|cpus| QuotaLoad { cpus, ..QuotaLoad::default() });
            *process = ProcessLoad {
                name: "gateway".to_owned(),
                cores,
                page,
                quota,
                ..ProcessLoad::default()
            };
            // Of the host of the generator: not the process's.
            case.resources().host = Some(HostLoad { cpus: 4, busy: 0.4, stolen: 0.5 });
        });
        (case.answer(), case.finding(Suspect::Gateway))
    };
    let (answer, found) = with(1.85, Some(2.0));
    assert_eq!((answer, found.state), ("gateway", State::Saturated));
    // 1.2 of 2: a thread of it may be full; 0.7 of 2: none can be.
    let (answer, found) = with(1.2, Some(2.0));
    assert_eq!((answer, found.state), ("cannot_be_told", State::Unknown));
    assert!(found.missing.unwrap().contains("threads are not seen"));
    assert_eq!(with(0.7, Some(2.0)).1.state, State::Clear);
    let (_, found) = with(0.7, None);
    assert_eq!(found.state, State::Unknown);
    assert!(found.missing.unwrap().contains("#cpus=N"));
    let silent = Case::closed(50).with(|case| {
        let process = case.process("gateway");
        (process.page, process.gone) = (Some("http://h:9100/metrics".to_owned()), true);
    });
    let missing = silent.finding(Suspect::Gateway).missing.unwrap();
    assert!(missing.contains("told nothing of most of the stage"), "{missing}");
}

#[test]
fn waiting_counts_only_on_a_full_host() {
    let case = |busy| {
        Case::closed(50).with(|case| {
            let process = case.process("gateway");
            threads(process, &[(0.45, 0.5); 4]);
            case.resources().host = Some(HostLoad { cpus: 4, busy, stolen: 0.0 });
        })
    };
    // 1.8 + 2.0 = 3.8 of 4. Each thread had work in 95 % of the time.
    assert_eq!(case(0.97).answer(), "gateway");
    // Eight threads, each in 48 %: together 3.84 of 4 again, but none was full.
    let herd = |busy| case(busy).with(|case| threads(case.process("gateway"), &[(0.23, 0.25); 8]));
    let full = herd(0.97);
    assert_eq!(full.answer(), "gateway");
    assert!(full.why().sentence.contains("on a full host"), "{}", full.why().sentence);
    // Threads that wake up at once wait for each other, though the host has CPUs left.
    assert_eq!(herd(0.5).answer(), "nothing_saturated");
}

#[test]
fn what_the_hypervisor_withheld_is_a_doubt() {
    let case = |stolen| {
        Case::level(50).with(|case| {
            threads(case.process("gateway"), &[(0.75, 0.0)]);
            case.resources().host = Some(HostLoad { cpus: 4, busy: 0.4, stolen });
        })
    };
    // A fifth of what the CPUs were asked for: 0.75 may have been all that the thread could get.
    let doubtful = case(0.1);
    assert_eq!(doubtful.finding(Suspect::Gateway).state, State::Unknown);
    assert_eq!(doubtful.answer(), "cannot_be_told");
    assert_eq!(case(0.01).finding(Suspect::Gateway).state, State::Clear);
}

#[test]
fn each_part_is_the_answer_if_it_alone_is_at_its_limit() {
    for name in ["gateway", "provider"] {
        let case = Case::closed(50).with(|case| threads(case.process(name), &[(0.97, 0.0)]));
        assert_eq!(case.answer(), name);
        assert_eq!(case.why().saturated.len(), 1);
    }
    let store = |cores| {
        Case::closed(50).with(|case| {
            let load = crate::support::process("store", 9, cores);
            case.resources().processes.push(load);
        })
    };
    assert_eq!(store(0.98).answer(), "store");
    assert_eq!(store(0.3).answer(), "nothing_saturated");
    // A name that says nothing.
    let other = store(0.98).with(|case| "postgres".clone_into(&mut case.process("store").name));
    let why = other.why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.missing[0].contains("name `postgres` gateway, provider or store"), "{why:?}");
}

#[test]
fn two_of_one_part_are_one_suspect() {
    let two = Case::closed(50).with(|case| {
        threads(case.process("gateway"), &[(0.97, 0.0)]);
        let second = crate::support::process("gateway-2", 9, 0.96);
        case.resources().processes.push(second);
    });
    assert_eq!(two.answer(), "gateway");
}

#[test]
fn a_process_that_ended_is_not_known() {
    let case = Case::level(50).with(|case| case.process("gateway").gone = true);
    assert_eq!(case.finding(Suspect::Gateway).state, State::Unknown);
    let why = case.why();
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.missing.iter().any(|how| how.contains("ended before")), "{why:?}");
}
