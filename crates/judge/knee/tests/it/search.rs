//! How often the result contains the true capacity, how long it takes, and which findings it gives.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_knee::{Kind, Measured, Search, Settings};

use crate::target::{Service, Simulation, TARGET, Target, users};

/// Number of searches per target, and how many of them must contain the true capacity.
const SEARCHES: u64 = 20;
const LEAST: usize = 19;

/// A target, its capacity, and the correct kinds of result.
#[derive(Clone)]
struct Case {
    name: &'static str,
    target: Target,
    settings: Settings,
    /// Capacity by theory, if known.
    capacity: Option<f64>,
    kinds: &'static [Kind],
    /// Correct reasons for an open end.
    reasons: &'static [&'static str],
}

fn case(name: &'static str, target: Target) -> Case {
    let settings = Settings::new(0.99, 10.0);
    let kinds = &Kind::ALL;
    Case { name, target, settings, capacity: None, kinds, reasons: &["budget", "unclear"] }
}

fn cases() -> Vec<Case> {
    [queues(), failures(), ends(), untuned()].concat()
}

fn queues() -> Vec<Case> {
    let exponential = Target { service: Service::Exponential, bound_s: 0.4, ..TARGET };
    let fast = Target { slots: 1, mean_s: 0.001, bound_s: 0.02, drift: 0.01, ..exponential };
    let service = Service::Lognormal(0.1);
    let slow = Target { slots: 20, service, mean_s: 5.0, bound_s: 8.0, ..TARGET };
    let even = Target { is_poisson: false, ..TARGET };
    vec![
        Case { capacity: Some(80.0), ..case("4 x 50 ms, even arrivals", even) },
        case("4 x 50 ms, Poisson", TARGET),
        case("M/M/4, 400 ms", exponential),
        Case { settings: Settings::new(0.99, 100.0), ..case("M/M/1 of 1 ms, drift of 1 %", fast) },
        Case { settings: Settings::new(0.95, 0.5), ..case("20 x 5 s, 95 %", slow) },
        Case {
            settings: users(Settings::new(0.99, 1.0)),
            // Eight users wait for two services of 50 ms, and some of nine wait for three.
            capacity: Some(8.5),
            ..case("users", Target { has_users: true, bound_s: 0.12, ..TARGET })
        },
    ]
}

fn failures() -> Vec<Case> {
    let limiter = Target { limit: Some((50.0, 10.0)), mean_s: 0.01, ..TARGET };
    let even = Target { is_poisson: false, ..limiter };
    let pauses = Target { pauses: Some((5.0, 0.15)), ..TARGET };
    vec![
        Case { capacity: Some(50.0 / 0.99), ..case("limiter of 50/s, even", even) },
        case("limiter of 50/s, Poisson", limiter),
        case("errors of 0.5 %", Target { errors: 0.005, ..TARGET }),
        case("stalls of 150 ms", Target { stalls: Some((20.0, 0.15)), ..TARGET }),
        Case { reasons: &["budget", "unclear", "late"], ..case("pauses of the generator", pauses) },
    ]
}

/// Targets whose capacity is outside the loads of the search.
fn ends() -> Vec<Case> {
    let below =
        |name, target| Case { kinds: &[Kind::Below], reasons: &["lowest"], ..case(name, target) };
    let limiter = Target { limit: Some((5.0, 5.0)), mean_s: 0.01, ..TARGET };
    vec![
        Case {
            settings: Settings { to: 2_000.0, ..Settings::new(0.99, 10.0) },
            capacity: Some(f64::INFINITY),
            kinds: &[Kind::AtLeast],
            reasons: &["highest"],
            ..case("better than the highest load", Target { slots: 200, ..TARGET })
        },
        Case {
            capacity: Some(0.0),
            ..below("misses from the start", Target { errors: 0.05, ..TARGET })
        },
        Case { capacity: Some(5.0), ..below("limiter below the lowest load", limiter) },
    ]
}

fn untuned() -> Vec<Case> {
    let service = Service::Lognormal(0.7);
    let uneven = Target { slots: 6, service, mean_s: 0.03, bound_s: 0.25, ..TARGET };
    let even = Target { slots: 8, mean_s: 0.1, bound_s: 0.3, is_poisson: false, ..TARGET };
    let from = |share, from, case| Case { settings: Settings::new(share, from), ..case };
    vec![
        from(0.99, 15.0, case("6 x 30 ms, cv 0.7", uneven)),
        from(0.99, 7.3, case("4 x 50 ms, other loads", TARGET)),
        Case { capacity: Some(80.0), ..from(0.95, 7.0, case("8 x 100 ms, even, 95 %", even)) },
    ]
}

/// The reason of a search's finding, in a word.
fn reason(search: &Search) -> &'static str {
    let reasons = ["budget", "lowest", "highest", "late", "unclear", "class"];
    let findings = search.findings();
    let mut said = reasons
        .into_iter()
        .filter(|reason| findings.iter().any(|finding| finding.values.contains_key(*reason)));
    said.next().unwrap_or("")
}

#[test]
fn the_result_holds_the_truth_in_19_of_20_searches() {
    let (mut log, mut is_right) = (String::new(), true);
    for case in cases() {
        let missed = 1.0 - case.settings.share;
        let range = (case.settings.from / 4.0, 2_000.0);
        let truth = case.capacity.unwrap_or_else(|| {
            Simulation::new(&case.target, 999).capacity(missed, [range.0, range.1])
        });
        let (mut holds, mut longest, mut total, mut wrong) = (0, 0.0_f64, 0.0, Vec::new());
        let (mut said, mut width) = (BTreeMap::new(), Vec::new());
        for seed in 0..SEARCHES {
            let search = Simulation::new(&case.target, 7_000 + seed).search(case.settings);
            let found = search.found();
            let (low, high) = (found.low.unwrap_or(0.0), found.high.unwrap_or(f64::INFINITY));
            holds += usize::from(low <= truth && truth <= high);
            longest = longest.max(search.spent_s() - search.budget_s());
            total += search.spent_s();
            let why = reason(&search);
            *said.entry(format!("{} {why}", found.kind.name())).or_insert(0) += 1;
            if !case.kinds.contains(&found.kind) || !(why.is_empty() || case.reasons.contains(&why))
            {
                wrong.push(format!("{:?} {why}", found.kind));
            }
            if found.kind == Kind::Between {
                width.push(high / low - 1.0);
            }
        }
        width.sort_by(f64::total_cmp);
        let width = width.get(width.len() / 2).map_or(f64::NAN, |width| width * 1e2);
        let is_good = holds >= LEAST && longest <= 10.0 && wrong.len() <= 20 - LEAST;
        is_right &= is_good;
        writeln!(
            log,
            "{} {}: truth {truth:.1}, holds {holds}, width {width:.0} %, {:.0} s, {longest:.0} s over, {said:?} {wrong:?}",
            if is_good { "  " } else { "! " },
            case.name,
            total / SEARCHES as f64,
        )
        .unwrap();
    }
    assert!(is_right, "{log}");
    println!("{log}");
}

/// The searches of `suite gateways`: 150 s, from a start that may be far from the capacity.
#[test]
fn a_search_of_150_seconds_finds_both_ends() {
    let even = Target { slots: 1, bound_s: 0.4, is_poisson: false, ..TARGET };
    let limiter = |per_s| Target { limit: Some((per_s, 30.0)), mean_s: 0.01, ..even.clone() };
    let of = |target: &Target, per_s: f64| Target { mean_s: 1.0 / per_s, ..target.clone() };
    let collects = |drift, stalls| Target { drift, stalls: Some(stalls), ..of(&even, 1_100.0) };
    let uneven = Target { service: Service::Lognormal(0.5), ..of(&even, 55.0) };
    // The probes of a target whose speed drifts may meet it at another speed than the mean.
    for (target, truth, most_wide, least_both, least) in [
        (of(&even, 31.0), Some(31.0), 0.15, 18, LEAST),
        (of(&even, 60.0), Some(60.0), 0.15, 18, LEAST),
        (of(&even, 400.0), Some(400.0), 0.15, 18, LEAST),
        (of(&even, 1_500.0), Some(1_500.0), 0.15, 18, LEAST),
        (of(&even, 6_000.0), Some(6_000.0), 0.15, 18, LEAST),
        (limiter(300.0), Some(300.0 / 0.95), 0.15, 18, LEAST),
        (limiter(270.0), Some(270.0 / 0.95), 0.15, 18, LEAST),
        (Target { drift: 0.02, ..of(&even, 60.0) }, Some(60.0), 0.2, 16, 16),
        (Target { drift: 0.02, ..of(&even, 1_500.0) }, Some(1_500.0), 0.2, 16, 15),
        (collects(0.02, (5.0, 0.3)), None, 0.2, 16, 16),
        (collects(0.04, (3.0, 0.2)), None, 0.2, 15, 15),
        (Target { drift: 0.05, ..uneven }, None, 0.2, 13, 15),
    ] {
        let truth =
            truth.unwrap_or_else(|| Simulation::new(&target, 999).capacity(0.05, [20.0, 12_000.0]));
        let (mut holds, mut both, mut widths) = (0, 0, Vec::new());
        let mut spent_s = 0.0;
        for seed in 0..SEARCHES {
            let search = Simulation::new(&target, seed).search(of_gateways(f64::INFINITY));
            let found = search.found();
            let (low, high) = (found.low.unwrap_or(0.0), found.high.unwrap_or(f64::INFINITY));
            holds += usize::from(low <= truth && truth <= high);
            both += usize::from(found.kind == Kind::Between && found.kept_only_s.is_none());
            widths.push(high / low - 1.0);
            spent_s += search.spent_s() / SEARCHES as f64;
            assert!(search.spent_s() <= 150.0, "{truth}/s: {} s", search.spent_s());
        }
        widths.sort_by(f64::total_cmp);
        let width = widths[widths.len() / 2];
        println!(
            "{truth:.0}/s: {holds} hold it, {both} with both ends, {width:.3} wide, {spent_s:.0} s"
        );
        assert!(
            holds >= least && both >= least_both && width <= most_wide,
            "{truth}/s: {holds}, {both}, {width}"
        );
    }
}

#[test]
fn capacities_that_differ_by_a_tenth_are_told_apart() {
    let even = Target { slots: 1, bound_s: 0.4, is_poisson: false, ..TARGET };
    let limiter = |per_s| Target { limit: Some((per_s, 30.0)), mean_s: 0.01, ..even.clone() };
    let queue = |per_s: f64| Target { mean_s: 1.0 / per_s, ..even.clone() };
    for [one, other] in [
        [limiter(300.0), limiter(270.0)],
        [queue(1_500.0), queue(1_350.0)],
        [queue(60.0), queue(54.0)],
    ] {
        let found = |target: &Target, seed| {
            Simulation::new(target, seed).search(of_gateways(f64::INFINITY)).found()
        };
        let apart = (0..SEARCHES).filter(|seed| {
            let (more, less) = (found(&one, *seed), found(&other, 100 + *seed));
            more.low.zip(less.high).is_some_and(|(low, high)| high < low * 1.001)
        });
        let apart = apart.count();
        assert!(apart >= 18, "{apart} for {one:?}");
    }
}

/// A search of `suite gateways`, from a start that may be far from the capacity. The bound of
/// 500 ms leaves 400 ms for waits.
fn of_gateways(to: f64) -> Settings {
    let (first, step, budget_s, prove_s) = (100.0, 0.034, Some(150.0), 30.0);
    Settings { to, first, step, budget_s, prove_s, ..Settings::new(0.95, 20.0) }
}

/// A load that shares its cores with the target is late from near its capacity on, so nothing is
/// known beyond it. A search up to the rate that the upstream keeps ends there.
#[test]
fn a_search_up_to_what_the_load_carries_keeps_its_highest_rate() {
    let target = Target {
        slots: 1,
        mean_s: 1.0 / 7_000.0,
        bound_s: 0.5,
        is_poisson: false,
        drift: 0.02,
        ..TARGET
    };
    let target = Target { generator: 6_900.0, ..target };
    for seed in 0..SEARCHES {
        let alone = Simulation::new(&target, seed).search(of_gateways(f64::INFINITY)).found();
        let kept = alone.kept.unwrap();
        assert!((5_500.0..7_300.0).contains(&kept), "{alone:?}");
        let fast = Target { slots: 2, drift: 0.0, ..target.clone() };
        let search = Simulation::new(&fast, seed).search(of_gateways(kept));
        let found = search.found();
        if kept <= 6_900.0 {
            assert_eq!((found.kept, found.kept_only_s), (Some(kept), None), "{found:?}");
        }
        assert!(search.spent_s() < 110.0, "{} s", search.spent_s());
    }
}

/// On a slow host each probe takes longer than planned. The lower end comes first.
#[test]
fn a_search_that_is_short_of_time_proves_the_lower_end() {
    let budget_s = Some(110.0);
    let settings = Settings { budget_s, prove_s: 22.0, ..Settings::new(0.95, 20.0) };
    let target = Target { slots: 1, mean_s: 1.0 / 300.0, bound_s: 0.5, ..TARGET };
    for seed in 0..SEARCHES {
        let (mut simulation, mut search) = (Simulation::new(&target, seed), Search::new(settings));
        while let Some(planned) = search.next() {
            let measured = simulation.measure(planned);
            let took_s = measured.took_s + 4.0;
            search.record(search.spent_s(), Measured { took_s, ..measured });
        }
        let low = search.found().low;
        assert!(low.is_some_and(|low| (100.0..300.0).contains(&low)), "{low:?}");
    }
}

/// An outage is reported with its start and costs only seconds; earlier results stay.
#[test]
fn a_target_that_stops_ends_the_search() {
    let always = f64::INFINITY;
    for (from_s, until_s) in [(0.0, always), (40.0, always), (170.0, always), (100.0, 104.0)] {
        let target = Target { down_s: (from_s, until_s), ..TARGET };
        let truth = Simulation::new(&TARGET, 999).capacity(0.01, [10.0, 100.0]);
        let mut holds = 0;
        for seed in 0..SEARCHES {
            let search = Simulation::new(&target, 7_000 + seed).search(Settings::new(0.99, 10.0));
            let findings = search.findings();
            let stop = findings.iter().find(|finding| finding.code == 605);
            let found = search.found();
            let (low, high) = (found.low.unwrap_or(0.0), found.high.unwrap_or(f64::INFINITY));
            holds += usize::from(low <= truth && truth <= high);
            // The search may end before the outage.
            let Some(stop) = stop else {
                let is_over = from_s > 100.0 && search.spent_s() < from_s + 5.0;
                assert!(is_over || until_s < always, "{from_s}: {found:?}");
                continue;
            };
            if until_s < always {
                continue;
            }
            let since: f64 = stop.values["since"].trim_end_matches('s').parse().unwrap();
            // Failures during a warm-up or a rest are not counted.
            assert!((from_s - 0.1..from_s + 20.0).contains(&since), "{from_s}: {since}");
            assert_eq!(stop.values["class"], "connection refused");
            assert!(search.spent_s() < from_s + 30.0, "{from_s}: {} s", search.spent_s());
            assert!(from_s > 0.0 || (found.kind == Kind::Unknown && search.spent_s() < 12.0));
        }
        assert!(holds >= LEAST, "{from_s}: {holds}");
    }
}

/// A generator that sends at most 700/s is the limit from there on, so no load counts as missed.
#[test]
fn a_generator_that_cannot_keep_up_finds_no_upper_end() {
    for seed in 0..SEARCHES {
        let target = Target { slots: 100, bound_s: 0.1, generator: 700.0, ..TARGET };
        let search = Simulation::new(&target, seed).search(Settings::new(0.99, 100.0));
        let found = search.found();
        assert_eq!((found.kind, found.missed), (Kind::AtLeast, None), "{found:?}");
        assert!(found.low.unwrap() <= 700.0, "{found:?}");
        assert!(["late", "budget"].contains(&reason(&search)), "{:?}", search.findings());
    }
}

#[test]
fn a_search_that_is_interrupted_or_has_no_time_says_what_is_proven() {
    let settings = Settings { budget_s: Some(60.0), ..Settings::new(0.999, 10.0) };
    let search = Simulation::new(&TARGET, 1).search(settings);
    assert_eq!((search.found().kind, reason(&search)), (Kind::Below, "budget"));
    assert!(search.spent_s() <= 60.0);
    let mut simulation = Simulation::new(&TARGET, 1);
    let mut search = Search::new(Settings::new(0.99, 10.0));
    while search.found().kind == Kind::Unknown {
        let measured = simulation.measure(search.next().unwrap());
        search.record(search.spent_s(), measured);
    }
    search.interrupt();
    assert!(search.next().is_none() && search.findings().is_empty());
    assert!(matches!(search.found().kind, Kind::AtLeast | Kind::Below));
}

/// A repeated search has the same loads, lengths and order.
#[test]
fn a_search_is_the_same_again() {
    let probes = || Simulation::new(&TARGET, 3).search(Settings::new(0.99, 10.0)).probes().to_vec();
    assert_eq!(probes(), probes());
}
