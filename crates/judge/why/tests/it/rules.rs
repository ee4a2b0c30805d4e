//! Rules 501 to 507: each is planted, along with situations that look similar.

use plimsoll_metrics::{Environment, HostLoad, ProcessLoad, QuotaLoad};
use plimsoll_why::{State, Suspect};

use crate::support::{Case, process, threads};

type Planted = fn() -> Case;
type Row = (&'static str, Planted, Option<u16>);

/// A closed loop at its limit, with a modified gateway.
fn gateway(change: impl FnOnce(&mut ProcessLoad)) -> Case {
    Case::closed(50).with(|case| change(case.process("gateway")))
}

/// The same with gateway threads that ran and waited for these shares of the time.
fn gateway_threads(each: &[(f64, f64)]) -> Case {
    gateway(|process| threads(process, each))
}

fn workers(case: Case, ran: f64, waited: f64) -> Case {
    case.with(|case| threads(case.process("plimsoll"), &[(ran, waited), (0.1, 0.0)]))
}

fn host(case: Case, cpus: u32, busy: f64, stolen: f64) -> Case {
    case.with(|case| case.resources().host = Some(HostLoad { cpus, busy, stolen }))
}

fn quota(cpus: f64, throttled_periods: u64) -> QuotaLoad {
    QuotaLoad { cpus, periods: 100, throttled_periods, ..QuotaLoad::default() }
}

/// Plimsoll with this use of a quota of 0.3 CPUs, which throttled it in so many of 100 periods.
fn own_quota(case: Case, cores: f64, throttled_periods: u64) -> Case {
    case.with(|case| {
        let own = case.process("plimsoll");
        threads(own, &[(cores, 0.0)]);
        own.quota = Some(QuotaLoad { with_generator: true, ..quota(0.3, throttled_periods) });
    })
}

/// An open stage of which half the arrivals found no slot.
fn behind() -> Case {
    Case::open(100).with(|case| case.counters().arrivals_in_stage = 500)
}

fn late(case: Case, requests: u64) -> Case {
    case.with(|case| {
        case.counters().arrivals_late_by_generator = requests;
        case.counters().arrivals_in_stage -= requests;
    })
}

/// 100 responses of 9 MB per second, which need 7.2 Gbit/s, on a link of this speed.
fn link(url: &str, mbit: f64) -> Case {
    Case::closed(50).with(|case| {
        url.clone_into(&mut case.0.metadata.targets[0].url);
        case.0.metadata.environment =
            Environment { link_mbit: Some(mbit), ..Environment::default() };
        case.counters().bytes_in = 9_000_000_000;
    })
}

fn another(name: &'static str, cores: f64) -> Case {
    Case::closed(50).with(|case| case.resources().processes.push(process(name, 9, cores)))
}

fn page(cores: f64, cpus: Option<f64>) -> Case {
    let case = gateway(|process| {
        let page = Some("http://h:9100/metrics process_cpu_seconds_total".to_owned());
        let quota = cpus.map(|cpus| QuotaLoad { cpus, ..QuotaLoad::default() });
        let name = process.name.clone();
        *process = ProcessLoad { name, cores, page, quota, ..ProcessLoad::default() };
    });
    // The generator's host, not the gateway's.
    host(case, 4, 0.4, 0.5)
}

const GENERATOR: &[Row] = &[
    ("a worker without rest", || workers(Case::closed(50), 0.95, 0.0), Some(501)),
    ("one that waits a little", || workers(Case::closed(50), 0.8, 0.12), Some(501)),
    ("late, with a full worker", || late(workers(Case::open(100), 0.95, 0.0), 20), Some(501)),
    ("busy, and no more", || workers(Case::closed(50), 0.85, 0.0), Some(507)),
    ("busy but on time", || workers(Case::open(100), 0.95, 0.0), None),
    ("busy but on time, and the target falls behind", || workers(behind(), 0.95, 0.0), Some(507)),
    ("late by a pause, not by work", || late(Case::open(100), 20), None),
    (
        "a wait for CPUs that others used",
        || host(workers(Case::closed(50), 0.5, 0.45), 2, 1.0, 0.0),
        Some(505),
    ),
    ("a wait while CPUs are idle", || workers(Case::closed(50), 0.5, 0.45), Some(507)),
    ("times that do not grow with the users", || workers(Case::flat(50), 0.95, 0.0), None),
    ("all of its quota", || own_quota(Case::closed(50), 0.29, 98), Some(501)),
    ("a quota that stops it in bursts", || own_quota(Case::closed(50), 0.2, 60), Some(501)),
    ("a quota that stops it at times", || own_quota(Case::closed(50), 0.2, 40), Some(507)),
    ("a quota that others use up", || own_quota(Case::closed(50), 0.1, 98), Some(507)),
    ("late, with all of its quota", || late(own_quota(Case::open(100), 0.29, 98), 20), Some(501)),
    ("all of its quota, but on time", || own_quota(Case::open(100), 0.29, 98), None),
    (
        "a quota of which the gateway uses more",
        || {
            own_quota(Case::closed(50), 0.1, 98).with(|case| {
                let gateway = case.process("gateway");
                threads(gateway, &[(0.2, 0.0)]);
                gateway.quota = Some(QuotaLoad { with_generator: true, ..quota(0.3, 98) });
            })
        },
        Some(507),
    ),
];

const GATEWAY: &[Row] = &[
    ("one thread", || gateway_threads(&[(0.95, 0.0), (0.02, 0.0)]), Some(502)),
    ("one thread that waits a little", || gateway_threads(&[(0.8, 0.12)]), Some(502)),
    ("a thread with a rest", || gateway_threads(&[(0.85, 0.0)]), Some(507)),
    (
        "a full thread beside workers",
        || gateway_threads(&[(0.95, 0.0), (0.5, 0.0), (0.5, 0.0), (0.5, 0.0)]),
        Some(507),
    ),
    (
        "workers that are mostly full",
        || gateway_threads(&[(0.92, 0.0), (0.93, 0.0), (0.4, 0.0)]),
        Some(502),
    ),
    (
        "all of its CPUs",
        || {
            gateway(|one| {
                one.cpus = Some(2);
                threads(one, &[(0.46, 0.0); 4]);
            })
        },
        Some(502),
    ),
    (
        "88 % of its CPUs",
        || {
            gateway(|one| {
                one.cpus = Some(2);
                threads(one, &[(0.44, 0.0); 4]);
            })
        },
        Some(507),
    ),
    (
        "all of its quota",
        || {
            gateway(|one| {
                threads(one, &[(0.29, 0.0)]);
                one.quota = Some(quota(0.3, 98));
            })
        },
        Some(502),
    ),
    (
        "a quota that stops it in bursts",
        || {
            gateway(|one| {
                threads(one, &[(0.2, 0.0)]);
                one.quota = Some(quota(0.3, 60));
            })
        },
        Some(502),
    ),
    (
        "a quota that stops it at times",
        || {
            gateway(|one| {
                threads(one, &[(0.2, 0.0)]);
                one.quota = Some(quota(0.3, 40));
            })
        },
        Some(507),
    ),
    (
        "a quota shared with Plimsoll",
        || {
            gateway(|one| {
                threads(one, &[(0.29, 0.0)]);
                one.quota = Some(QuotaLoad { with_generator: true, ..quota(0.3, 98) });
            })
        },
        Some(507),
    ),
    (
        "an open rate that falls behind",
        || behind().with(|case| threads(case.process("gateway"), &[(0.97, 0.0)])),
        Some(502),
    ),
    (
        "an open rate that is kept",
        || Case::open(100).with(|case| threads(case.process("gateway"), &[(0.97, 0.0)])),
        None,
    ),
    (
        "late by Plimsoll beside a full gateway",
        || late(behind(), 20).with(|case| threads(case.process("gateway"), &[(0.97, 0.0)])),
        Some(502),
    ),
    (
        "full beside two busy loops",
        || host(gateway_threads(&[(0.95, 0.03)]), 4, 1.0, 0.0),
        Some(502),
    ),
    (
        "two of one part",
        || {
            gateway_threads(&[(0.97, 0.0)])
                .with(|case| case.resources().processes.push(process("gateway-2", 9, 0.96)))
        },
        Some(502),
    ),
    ("a page of metrics with all CPUs", || page(1.85, Some(2.0)), Some(502)),
    ("a page without threads", || page(1.2, Some(2.0)), Some(507)),
    ("a page without CPUs", || page(0.7, None), Some(507)),
    ("a process that ended", || gateway(|one| one.gone = true), Some(507)),
];

const OTHERS: &[Row] = &[
    (
        "a full upstream",
        || Case::closed(50).with(|case| threads(case.process("upstream"), &[(0.97, 0.0)])),
        Some(503),
    ),
    (
        "a full upstream, an open rate kept",
        || Case::open(100).with(|case| threads(case.process("upstream"), &[(0.97, 0.0)])),
        None,
    ),
    ("a full store", || another("store", 0.98), Some(504)),
    ("a store that is used, not full", || another("store", 0.3), Some(507)),
    ("a full process of unknown role", || another("postgres", 0.98), Some(507)),
    (
        "a gateway that waits on a full host",
        || host(gateway_threads(&[(0.23, 0.25); 8]), 4, 0.97, 0.0),
        Some(505),
    ),
    (
        "threads that wait for each other",
        || host(gateway_threads(&[(0.23, 0.25); 8]), 4, 0.5, 0.0),
        Some(507),
    ),
    (
        "a pinned gateway beside another process",
        || {
            gateway(|one| {
                one.cpus = Some(1);
                threads(one, &[(0.5, 0.45)]);
            })
        },
        Some(505),
    ),
    (
        "a wait that its own quota causes",
        || {
            gateway(|one| {
                one.cpus = Some(1);
                threads(one, &[(0.2, 0.75)]);
                one.quota = Some(quota(0.3, 40));
            })
        },
        Some(507),
    ),
    ("a full host whose processes all rest", || host(Case::closed(50), 2, 0.97, 0.02), Some(507)),
    (
        "several full on a full host",
        || {
            let case = gateway_threads(&[(0.97, 0.0)]);
            host(case.with(|case| threads(case.process("upstream"), &[(0.95, 0.0)])), 2, 0.98, 0.0)
        },
        Some(505),
    ),
    (
        "several full on an idle host",
        || {
            gateway_threads(&[(0.97, 0.0)])
                .with(|case| threads(case.process("upstream"), &[(0.95, 0.0)]))
        },
        Some(507),
    ),
    (
        "CPU time that the hypervisor withheld",
        || host(gateway_threads(&[(0.75, 0.0)]), 4, 0.4, 0.1),
        Some(507),
    ),
    ("a full link", || link("http://10.0.0.2:8080", 7_900.0), Some(506)),
    ("a link with room", || link("http://10.0.0.2:8080", 10_000.0), Some(507)),
    ("a target on this host", || link("http://127.0.0.1:8080", 1_000.0), Some(507)),
    ("nothing is full", || Case::closed(50), Some(507)),
    ("one level of users", || Case::level(16), None),
    (
        "one level of users, and a full store",
        || Case::level(16).with(|case| case.resources().processes.push(process("store", 9, 0.98))),
        Some(504),
    ),
    ("a single user", || Case::level(1), None),
    ("times that do not grow", || Case::flat(50).without("upstream"), None),
    ("a rate that is kept", || Case::open(100).without("upstream"), None),
    ("a rate that is missed", behind, Some(507)),
];

#[test]
fn each_rule_fires_where_it_is_planted_and_nowhere_else() {
    for (situation, case, code) in [GENERATOR, GATEWAY, OTHERS].into_iter().flatten() {
        let why = case().why();
        let found = why.finding.as_ref().map(|finding| finding.code);
        assert_eq!(found, *code, "{situation}: {why:?}");
        assert_eq!(why.bottleneck().is_some(), code.is_some(), "{situation}");
    }
}

#[test]
fn the_statement_has_the_rate_and_the_evidence() {
    let rows: [(Planted, &str); 6] = [
        (
            || gateway_threads(&[(0.95, 0.0), (0.02, 0.0)]),
            "the gateway, thread `worker` ran for 0.95 of the time.",
        ),
        (
            || {
                gateway(|one| {
                    one.cpus = Some(2);
                    threads(one, &[(0.46, 0.0); 4]);
                })
            },
            "the gateway, 1.84 of 2 CPUs.",
        ),
        (
            || host(gateway_threads(&[(0.23, 0.25); 8]), 4, 0.97, 0.0),
            "the CPUs of this host, the gateway ran on 1.84 CPUs and waited for 2.00 more.",
        ),
        (|| link("http://10.0.0.2:8080", 7_900.0), "the network, 7,200 of 7,900 Mbit/s."),
        (
            || another("postgres", 0.98),
            "unknown: `postgres` thread `postgres-main` ran for 0.98 of the time.",
        ),
        (|| Case::closed(50), "unknown: no monitored process is at its limit."),
    ];
    for (case, text) in rows {
        let statement = case().why().finding.unwrap().text();
        let found = statement.strip_prefix("Bottleneck at 100/s").unwrap();
        assert_eq!(found.trim_start_matches([':', ' ']), text);
    }
}

/// A load that mostly failed has a fault, not a bottleneck.
#[test]
fn a_failing_load_has_no_bottleneck() {
    let full = |completed| {
        gateway_threads(&[(0.97, 0.0)]).with(|case| {
            let counters = case.counters();
            counters.unexpected = counters.scheduled - completed;
            (counters.completed, counters.completed_in_stage) = (completed, completed);
        })
    };
    assert_eq!([0, 400, 600].map(|completed| full(completed).code()), [None, None, Some(502)]);
    // Its gateway is full, so that "no bottleneck" would be wrong.
    let shown = plimsoll_why::text(&full(0).why());
    assert!(shown.starts_with("Not judged: most requests failed.\n"), "{shown}");
    assert!(plimsoll_why::text(&Case::open(100).why()).starts_with("No bottleneck found.\n"));
}

#[test]
fn the_fix_of_an_unknown_bottleneck_names_what_to_watch() {
    let fix = |case: Case| case.why().finding.unwrap().fix();
    let levels = || Case::closed(50);
    assert_eq!(fix(levels().without("upstream")), "--watch upstream=:PORT shows more");
    let alone = levels().without("upstream").without("gateway");
    // The process at the target's address may be a gateway or the upstream itself.
    assert_eq!(fix(alone), "--watch target=:PORT shows more");
    assert_eq!(fix(levels()), "`plimsoll versus --direct URL` shows more");
    let full = levels().without("upstream").with(|case| {
        threads(case.process("gateway"), &[(0.97, 0.0)]);
    });
    assert_eq!(full.code(), Some(502), "whatever is not known of the upstream");
}

#[test]
fn a_process_that_ended_is_unknown() {
    let case = gateway(|one| one.gone = true);
    assert_eq!(case.observed(Suspect::Gateway).state, State::Unknown);
}
