//! Compares the connections that two workers' pools open, and their cost to requests, with fixed
//! numbers of connections that are open from the start. Times are virtual, in milliseconds unless
//! noted otherwise.

use plimsoll_measure::{Moment, Nanos, Rng, Seed};

use crate::simulation_tests::pool_load::{Arrival, PoolLoad, PoolRun, poisson, run};
use crate::simulation_tests::{Costs, ScriptedTarget, respond_after};

/// Numbers of connections that the best is sought among, by the checks and for the table.
const FEW: &[usize] = &[4, 8, 12, 64];
const FIXED: &[usize] = &[2, 4, 6, 8, 12, 16, 32, 256];
/// The same number is always granted, as in `bench/validity/connections`.
const LEAST: usize = 4;
const SECOND: f64 = 1_000.0;
/// The work of a request on the servers that do one thing at a time.
const SERIAL_WORK: f64 = 0.1;

type Pauses = Vec<(Moment, Moment)>;

fn ms(ms: f64) -> Nanos {
    Nanos::from_secs_f64(ms / 1e3)
}

fn at(time: f64) -> Moment {
    Moment::EPOCH + ms(time)
}

/// A load and the target that it meets.
struct Case {
    name: &'static str,
    load: PoolLoad,
    target: Target,
}

enum Target {
    /// Takes its time for each request, however many there are.
    Parallel,
    /// Does one thing at a time, and stands still now and then.
    Serial { accept: f64, handshake: f64, pauses: Pauses },
}

impl Target {
    fn greedy(pauses: Pauses) -> Self {
        Self::Serial { accept: 0.8, handshake: 0.0, pauses }
    }

    fn tls(pauses: Pauses) -> Self {
        Self::Serial { accept: 0.0, handshake: 1.3, pauses }
    }

    fn script(&self) -> ScriptedTarget {
        let Self::Serial { accept, handshake, pauses } = self else {
            let mut target = ScriptedTarget::always(respond_after(0));
            target.connect_time = ms(0.1);
            return target;
        };
        let (request, pause) = (Nanos::ZERO, Nanos::ZERO);
        let costs = Costs { accept: ms(*accept), handshake: ms(*handshake), request, pause };
        let mut target = ScriptedTarget::serial(costs);
        target.connect_time = ms(0.04);
        let server = target.serial.as_ref().unwrap();
        for (from, to) in pauses {
            server.stall(*from, *to);
        }
        target
    }
}

/// Result of the pools, compared with the best fixed number.
struct Compared {
    run: PoolRun,
    /// The least fixed number whose p50 is within 5 % of the best.
    needed: usize,
    /// The least p50 and p99 of the fixed numbers, in us.
    best: [u64; 2],
}

impl Case {
    fn compare(&self, fixed: &[usize]) -> Compared {
        let fixed: Vec<_> = fixed
            .iter()
            .map(|&most| {
                let expected = self.load.ahead.map_or(Nanos::ZERO, |(_, answer)| answer);
                let ahead = Some((most / self.load.workers, expected));
                let load = PoolLoad { most: Some(most), ahead, ..self.load.clone() };
                (most, run(&load, self.target.script()))
            })
            .collect();
        let best = [50, 99].map(|percentile| {
            fixed.iter().map(|(_, run)| run.response_us(percentile)).min().unwrap()
        });
        let is_good = |run: &PoolRun| run.response_us(50) * 100 <= best[0] * 105;
        let needed = fixed.iter().find(|(_, run)| is_good(run)).unwrap().0.max(LEAST);
        Compared { run: run(&self.load, self.target.script()), needed, best }
    }

    /// The bars of `bench/validity/connections`.
    fn check(&self) {
        let Compared { run, needed, best } = self.compare(FEW);
        let (count, p50) = (run.connections, run.response_us(50));
        assert!(count <= 2 * needed, "{}: {count} connections, {needed} are needed", self.name);
        assert!(p50 * 10 <= best[0] * 12, "{}: p50 {p50} us, best {} us", self.name, best[0]);
    }

    fn line(&self) -> String {
        let Compared { run, needed, best } = self.compare(FIXED);
        let [p50, p99] = [50, 99].map(|percentile| run.response_us(percentile));
        format!(
            "| {} | {} | {needed} | {:.2} ({:.2}) | {:.2} ({:.2}) | {:.1} |",
            self.name,
            run.connections,
            p50 as f64 / best[0] as f64,
            run.least_response_us(50) as f64 / best[0] as f64,
            p99 as f64 / best[1] as f64,
            run.least_response_us(99) as f64 / best[1] as f64,
            run.longest_wait.as_millis_f64()
        )
    }
}

/// A load on two workers that each opened so many connections ahead.
fn load(arrivals: Vec<Arrival>, ahead: usize, expected: f64) -> PoolLoad {
    let ahead = (ahead > 0).then_some((ahead, ms(expected)));
    PoolLoad { workers: 2, arrivals, ahead, ..PoolLoad::default() }
}

/// Exponential with this mean.
fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    -(1.0 - rng.uniform()).ln() * mean
}

/// Pauses at random moments, so many a second, of this mean.
fn pauses(seed: u64, until: f64, rate: f64, mean: f64) -> Pauses {
    let mut rng = Seed(seed).rng("pauses", 0);
    let mut end = 0.0;
    let mut pauses = Vec::new();
    loop {
        let from = end + exponential(&mut rng, SECOND / rate);
        if from > until {
            return pauses;
        }
        end = from + exponential(&mut rng, mean);
        pauses.push((at(from), at(end)));
    }
}

/// The two servers of the bench, on quiet and on busy hosts.
fn serial(seed: u64) -> Vec<Case> {
    let case = |name, rate, work: f64, target| {
        let arrivals = poisson(seed, rate, 3.0, |_| rate, |_| ms(work));
        Case { name, load: load(arrivals, 1, 0.15), target }
    };
    let greedy = |name, pauses| case(name, 1_500.0, SERIAL_WORK, Target::greedy(pauses));
    let tls = |name, pauses| case(name, 5_000.0, 0.05, Target::tls(pauses));
    let own = |name, rate, mean| {
        let case = tls(name, Vec::new());
        let pauses = pauses(seed, 3.0 * SECOND, rate, mean);
        Case { load: PoolLoad { pauses, ..case.load }, ..case }
    };
    // Spreads them over every phase of the looks at a queue.
    let noise = |rate, mean| pauses(seed, 3.0 * SECOND, rate, mean);
    vec![
        greedy("greedy", Vec::new()),
        greedy("greedy, one pause of 30 ms", vec![(at(1_500.0), at(1_530.0))]),
        greedy(
            "greedy, 4 pauses/s of 30 ms",
            (1..12).map(|n| (at(f64::from(n) * 251.3), at(f64::from(n) * 251.3 + 30.0))).collect(),
        ),
        greedy("greedy, 5 pauses/s of 4 ms", noise(5.0, 4.0)),
        tls("tls", Vec::new()),
        tls("tls, 5 pauses/s of 4 ms", noise(5.0, 4.0)),
        tls("tls, 50 pauses/s of 1 ms", noise(50.0, 1.0)),
        own("tls, generator pauses 20/s for 1 ms", 20.0, 1.0),
        own("tls, generator pauses 5/s for 20 ms", 5.0, 20.0),
    ]
}

/// Steady rates: a name, the rate, the mean of the answer times, seconds, and the number of
/// connections that each worker opens ahead.
const STEADY: [(&str, f64, f64, f64, usize); 8] = [
    ("5,000/s of 0.05 ms", 5_000.0, 0.05, 2.0, 1),
    ("5,000/s of 0.2 ms", 5_000.0, 0.2, 2.0, 1),
    ("5,000/s of 1 ms", 5_000.0, 1.0, 2.0, 5),
    ("5,000/s of 3 ms", 5_000.0, 3.0, 2.0, 15),
    ("500/s of 1 ms", 500.0, 1.0, 5.0, 1),
    ("500/s of 4 ms", 500.0, 4.0, 5.0, 2),
    ("500/s of 20 ms", 500.0, 20.0, 5.0, 10),
    ("50/s of 2 s", 50.0, 2_000.0, 10.0, 100),
];

/// Targets that work on any number of requests at once, with equal answer times or exponential
/// ones.
fn parallel(seed: u64, equal: bool) -> Vec<Case> {
    STEADY
        .map(|(name, rate, mean, seconds, ahead)| {
            let arrivals = poisson(
                seed,
                rate,
                seconds,
                |_| rate,
                |rng: &mut Rng| ms(if equal { mean } else { exponential(rng, mean) }),
            );
            Case { name, load: load(arrivals, ahead, mean), target: Target::Parallel }
        })
        .into()
}

/// Rates that change.
fn changing(seed: u64) -> Vec<Case> {
    let case =
        |name, arrivals| Case { name, load: load(arrivals, 1, 1.0), target: Target::Parallel };
    let burst = |gap: f64| (0..1_000).map(|n| (at(f64::from(n / 20) * gap), ms(1.0))).collect();
    vec![
        case(
            "100/s, then 5,000/s",
            poisson(
                seed,
                5_000.0,
                3.0,
                |at: f64| if at < 1.0 { 100.0 } else { 5_000.0 },
                |_| ms(1.0),
            ),
        ),
        case("0 to 6,000/s", poisson(seed, 6_000.0, 3.0, |at| at * 2_000.0, |_| ms(1.0))),
        case("20 at once every 50 ms", burst(50.0)),
        case("20 at once every 500 ms", burst(500.0)),
    ]
}

/// Targets whose answers are, or become, slower than was expected.
fn slow(seed: u64) -> Vec<Case> {
    let case = |name, rate, ahead, time: fn(&mut Rng) -> f64| {
        let arrivals = poisson(seed, rate, 6.0, |_| rate, |rng| ms(time(rng)));
        Case { name, load: load(arrivals, ahead, 0.1), target: Target::Parallel }
    };
    let always = |_: &mut Rng| 2.0 * SECOND;
    let mut turns = case("200/s, 0.1 ms, then 2 s", 200.0, 1, |_| 0.1);
    turns
        .load
        .arrivals
        .iter_mut()
        .filter(|(start, _): &&mut Arrival| *start > at(SECOND))
        .for_each(|(_, time)| *time = ms(2.0 * SECOND));
    vec![
        case("500/s, 1 ms, one in ten 2 s", 500.0, 1, |rng: &mut Rng| {
            if rng.uniform() < 0.1 { 2.0 * SECOND } else { 1.0 }
        }),
        turns,
        case("200/s of 2 s, 0.1 ms expected", 200.0, 1, always),
        case("200/s of 2 s, nothing expected", 200.0, 0, always),
    ]
}

/// Targets that work on any number of requests at once and answer in 2 ms, but for a few.
fn rarely_slow(seed: u64) -> Vec<Case> {
    [(0.005, 200.0), (0.007, 400.0), (0.01, 400.0), (0.02, 1_000.0)]
        .map(|(share, slow)| {
            let time = |rng: &mut Rng| ms(if rng.uniform() < share { slow } else { 2.0 });
            let arrivals = poisson(seed, 300.0, 10.0, |_| 300.0, time);
            let load = load(arrivals, 2, 2.0);
            Case { name: "300/s of 2 ms, some of 0.2 to 1 s", load, target: Target::Parallel }
        })
        .into()
}

/// Targets that work on one request at a time, and are almost saturated.
fn saturated(seed: u64) -> Vec<Case> {
    [5_000.0, 8_000.0, 9_000.0]
        .map(|rate| {
            let arrivals = poisson(seed, rate, 3.0, |_| rate, |_| ms(SERIAL_WORK));
            let load = load(arrivals, 1, 0.15);
            Case { name: "half to nine tenths of capacity", load, target: Target::tls(Vec::new()) }
        })
        .into()
}

/// Cases that the bar on connections does not suit: answers so slow that no arrival should wait,
/// and a burst to a target that works on one request at a time, which a pool cannot know.
fn beyond(seed: u64) -> Vec<Case> {
    let arrivals = poisson(seed, 50.0, 10.0, |_| 50.0, |_| ms(50.0));
    let slow = load(arrivals, 3, 50.0);
    let bursts = (0..1_000).map(|n| (at(f64::from(n / 20) * 50.0), ms(SERIAL_WORK))).collect();
    vec![
        Case { name: "50/s of 50 ms", load: slow, target: Target::Parallel },
        Case {
            name: "20 at once to greedy",
            load: load(bursts, 1, 0.15),
            target: Target::greedy(Vec::new()),
        },
    ]
}

/// With the rule that a coincidence suffices, these opened up to 39.
#[test]
fn chance_and_pauses_open_few_connections() {
    serial(0).iter().for_each(Case::check);
}

#[test]
fn as_many_connections_are_opened_as_are_needed() {
    changing(0).iter().chain(&parallel(0, true)[..6]).for_each(Case::check);
}

/// An LLM's stream: each that finds no free connection opens one at once.
#[test]
fn nobody_waits_for_a_slow_target() {
    let case = parallel(0, true).pop().unwrap();
    let run = run(&case.load, case.target.script());
    assert_eq!((case.name, run.longest_wait), ("50/s of 2 s", Nanos::ZERO));
}

/// A queue that does not drain is served as if connections had no price.
#[test]
fn a_target_that_is_slower_than_expected_gets_its_connections_soon() {
    for case in slow(0) {
        let run = run(&case.load, case.target.script());
        assert!(run.longest_wait < ms(70.0), "{}: {}", case.name, run.longest_wait);
    }
}

/// The best pool's times lie between the measured ones and those without the pool's own waits,
/// except for the 0.1 ms that opening a connection costs a request. If a connection was free, the
/// times are exact.
#[test]
fn what_the_pool_adds_is_bounded() {
    for case in rarely_slow(0).iter().chain(&rarely_slow(1)) {
        let Compared { run, best, .. } = case.compare(FEW);
        let least = [50, 99].map(|percentile| run.least_response_us(percentile));
        assert!(least[1] <= best[1] + 100, "{}: {least:?} us, best {best:?}", case.name);
        assert!(least[0] * 100 >= run.response_us(50) * 98, "{}: {least:?} us", case.name);
    }
}

/// `cargo test -p plimsoll-engine --lib every_case -- --ignored --nocapture`: the evidence for the
/// constants of the rule.
#[test]
#[ignore = "prints a table"]
fn every_case() {
    let mut lines = vec!["| case | connections | needed | p50 | p99 | longest wait |".to_owned()];
    for seed in 0..3 {
        let cases = [
            serial(seed),
            parallel(seed, true),
            changing(seed),
            slow(seed),
            beyond(seed),
            rarely_slow(seed),
            saturated(seed),
        ];
        lines.push(format!("seed {seed}"));
        lines.extend(cases.iter().flatten().map(Case::line));
        lines.push("exponential answer times".to_owned());
        lines.extend(parallel(seed, false).iter().map(Case::line));
    }
    println!("{}", lines.join("\n"));
}
