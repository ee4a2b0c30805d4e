//! How many connections the pools open, and what the requests pay for it, against the best fixed
//! number.

use plimsoll_measure::{Moment, Nanos, Rng};

use crate::simulation::pool_load::{Arrival, PoolLoad, PoolRun, poisson, run};
use crate::simulation::script::{ScriptedTarget, respond_after};
use crate::simulation::serial_server::Costs;

const FIXED: [usize; 9] = [2, 4, 6, 8, 12, 16, 32, 64, 256];
const LEAST: usize = 4;

const fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

fn at(ms: f64) -> Moment {
    Moment::EPOCH + Nanos::from_secs_f64(ms / 1e3)
}

/// What the target is.
#[derive(Clone, Debug)]
struct Target {
    serial: Option<Costs>,
    connect: Nanos,
    stalls: Vec<(Moment, Moment)>,
}

impl Target {
    fn serial(accept: u64, handshake: u64) -> Self {
        let costs = Costs {
            accept: us(accept),
            handshake: us(handshake),
            request: Nanos::ZERO,
            pause: Nanos::ZERO,
        };
        Self { serial: Some(costs), connect: us(40), stalls: Vec::new() }
    }

    fn parallel(connect: u64) -> Self {
        Self { serial: None, connect: us(connect), stalls: Vec::new() }
    }

    fn script(&self) -> ScriptedTarget {
        let mut target = match self.serial {
            Some(costs) => ScriptedTarget::serial(costs),
            None => ScriptedTarget::always(respond_after(0)),
        };
        if let Some(server) = &target.serial {
            self.stalls.iter().for_each(|(from, to)| server.stall(*from, *to));
        }
        target.connect_time = self.connect;
        target
    }
}

/// A case: its name, load and target.
struct Case {
    name: &'static str,
    load: PoolLoad,
    target: Target,
}

impl Case {
    fn compare(&self, key: &str) -> (PoolRun, [u64; 3]) {
        let own = run(&self.load, self.target.script());
        let cache = format!("/tmp/B-fixed/{key}");
        if let Ok(text) = std::fs::read_to_string(&cache) {
            let v: Vec<u64> = text.split(' ').map(|v| v.parse().unwrap()).collect();
            return (own, [v[0], v[1], v[2]]);
        }
        let fixed: Vec<_> = FIXED
            .into_iter()
            .map(|most| {
                let answer = self.load.ahead.map_or(Nanos::ZERO, |ahead| ahead.1);
                let ahead = Some((most / self.load.workers, answer));
                let load = PoolLoad { most: Some(most), ahead, ..self.load.clone() };
                (most, run(&load, self.target.script()))
            })
            .collect();
        let best = fixed.iter().map(|(_, run)| run.response_us(50)).min().unwrap();
        let best99 = fixed.iter().map(|(_, run)| run.response_us(99)).min().unwrap();
        let needed = fixed
            .iter()
            .filter(|(_, run)| run.response_us(50) * 100 <= best * 105)
            .map(|(most, _)| *most)
            .min()
            .unwrap();
        let needed = needed.max(LEAST) as u64;
        std::fs::create_dir_all("/tmp/B-fixed").unwrap();
        std::fs::write(&cache, format!("{needed} {best} {best99}")).unwrap();
        (own, [needed, best, best99])
    }
}

fn constant(time: Nanos) -> impl FnMut(&mut Rng) -> Nanos {
    move |_| time
}

fn varying(mean_us: f64) -> impl FnMut(&mut Rng) -> Nanos {
    move |rng| Nanos::from_secs_f64(-(1.0 - rng.uniform()).ln() * mean_us / 1e6)
}

fn stalls(seed: u64, seconds: f64, rate: f64, mean_ms: f64) -> Vec<(Moment, Moment)> {
    let mut end = 0.0;
    let mut rng = plimsoll_measure::Seed(seed).rng("stalls", 0);
    let mut stalls = Vec::new();
    loop {
        let from = end - (1.0 - rng.uniform()).ln() / rate;
        if from > seconds {
            return stalls;
        }
        end = from - (1.0 - rng.uniform()).ln() * mean_ms / 1e3;
        stalls.push((at(from * 1e3), at(end * 1e3)));
    }
}

fn steady(rate: f64, seconds: f64, seed: u64, time: impl FnMut(&mut Rng) -> Nanos) -> Vec<Arrival> {
    poisson(seed, (rate, seconds), |_| rate, time)
}

fn load(arrivals: Vec<Arrival>, ahead: usize, answer: u64) -> PoolLoad {
    PoolLoad {
        workers: 2,
        arrivals,
        ahead: (ahead > 0).then_some((ahead, us(answer))),
        ..PoolLoad::default()
    }
}

fn cases(seed: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name, load, target| cases.push(Case { name, load, target });
    let greedy = || steady(1_500.0, 5.0, seed, constant(us(100)));
    let pause = vec![(at(1_500.0), at(1_530.0))];
    add("greedy", load(greedy(), 1, 150), Target::serial(800, 0));
    add("greedy pause", load(greedy(), 1, 150), Target { stalls: pause, ..Target::serial(800, 0) });
    let noisy = Target { stalls: stalls(seed, 5.0, 5.0, 4.0), ..Target::serial(800, 0) };
    add("greedy noisy", load(greedy(), 1, 150), noisy);
    let tls = || steady(5_000.0, 3.0, seed, constant(us(50)));
    add("tls", load(tls(), 1, 150), Target::serial(0, 1_300));
    let noisy =
        |rate, ms| Target { stalls: stalls(seed, 3.0, rate, ms), ..Target::serial(0, 1_300) };
    add("tls noisy 5 4ms", load(tls(), 1, 150), noisy(5.0, 4.0));
    add("tls noisy 50 1ms", load(tls(), 1, 150), noisy(50.0, 1.0));
    let own = PoolLoad { pauses: stalls(seed, 3.0, 20.0, 1.0), ..load(tls(), 1, 150) };
    add("tls own pauses", own, Target::serial(0, 1_300));
    let own = PoolLoad { pauses: stalls(seed, 3.0, 5.0, 20.0), ..load(tls(), 1, 150) };
    add("tls own long pauses", own, Target::serial(0, 1_300));
    for (name, rate, mean, seconds) in [
        ("parallel 5000/s 0.05", 5_000.0, 50.0, 2.0),
        ("parallel 5000/s 0.2", 5_000.0, 200.0, 2.0),
        ("parallel 5000/s 1", 5_000.0, 1_000.0, 2.0),
        ("parallel 5000/s 3", 5_000.0, 3_000.0, 2.0),
        ("parallel 500/s 1", 500.0, 1_000.0, 5.0),
        ("parallel 500/s 4", 500.0, 4_000.0, 5.0),
        ("parallel 500/s 20", 500.0, 20_000.0, 5.0),
        ("parallel 50/s 50", 50.0, 50_000.0, 10.0),
        ("parallel 50/s 2s", 50.0, 2e6, 10.0),
    ] {
        let ahead = (f64::ceil(rate * mean / 1e6) as usize).clamp(1, 256);
        let of = |arrivals| load(arrivals, ahead, mean as u64);
        add(
            name,
            of(steady(rate, seconds, seed, constant(us(mean as u64)))),
            Target::parallel(100),
        );
        add("  exponential", of(steady(rate, seconds, seed, varying(mean))), Target::parallel(100));
    }
    let step = |at: f64| if at < 1.0 { 100.0 } else { 5_000.0 };
    let arrivals = poisson(seed, (5_000.0, 3.0), step, constant(us(1_000)));
    add("step 100 to 5000/s 1", load(arrivals, 1, 1_000), Target::parallel(100));
    let ramp = |at: f64| at * 2_000.0;
    let arrivals = poisson(seed, (6_000.0, 3.0), ramp, constant(us(1_000)));
    add("ramp to 6000/s 1", load(arrivals, 1, 1_000), Target::parallel(100));
    let bursts: Vec<_> = (0..2_000).map(|n| (at(f64::from(n / 20) * 50.0), us(1_000))).collect();
    add("bursts of 20 a 50 ms, 1", load(bursts.clone(), 1, 1_000), Target::parallel(100));
    let wide = bursts
        .iter()
        .map(|(at, time)| (Moment::EPOCH + at.since(Moment::EPOCH).scale(10.0), *time));
    add("bursts of 20 a 500 ms, 1", load(wide.collect(), 1, 1_000), Target::parallel(100));
    add(
        "bursts serial",
        load(bursts.iter().map(|(at, _)| (*at, us(100))).collect(), 1, 150),
        Target::serial(800, 0),
    );
    let mixed = |share: f64| {
        move |rng: &mut Rng| if rng.uniform() < share { us(2_000_000) } else { us(1_000) }
    };
    add(
        "mixed 20/s 1 and 2s",
        load(steady(20.0, 20.0, seed, mixed(0.1)), 1, 1_000),
        Target::parallel(100),
    );
    add(
        "mixed 500/s 1 and 2s",
        load(steady(500.0, 6.0, seed, mixed(0.1)), 1, 1_000),
        Target::parallel(100),
    );
    let mut at_s = steady(200.0, 6.0, seed, constant(us(100)));
    at_s.iter_mut()
        .filter(|(at, _)| at.since(Moment::EPOCH) > Nanos::from_secs(1))
        .for_each(|(_, time)| *time = us(2_000_000));
    add("turns slow 200/s 0.1 to 2s", load(at_s.clone(), 1, 100), Target::parallel(100));
    at_s.iter_mut().for_each(|(_, time)| *time = us(2_000_000));
    add("cold 200/s 2s, probe 0.1", load(at_s.clone(), 1, 100), Target::parallel(100));
    add("cold 200/s 2s, no probe", load(at_s, 0, 100), Target::parallel(100));
    cases
}

#[test]
#[ignore = "a table to choose the rule by"]
fn table() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let seeds = std::env::var("SEEDS").map_or(2, |seeds| seeds.parse().unwrap());
    let mut out = String::from("\n");
    for index in 0..cases(0).len() {
        let mut rows = Vec::new();
        let mut name = "";
        for seed in 0..seeds {
            let case = cases(seed).swap_remove(index);
            if !case.name.contains(&only) {
                continue;
            }
            name = case.name;
            let (own, [needed, best, best99]) = case.compare(&format!("{index}-{seed}"));
            let ratio = own.connections as f64 / needed as f64;
            let p50 = own.response_us(50) as f64 / best as f64;
            let p99 = own.response_us(99) as f64 / best99 as f64;
            rows.push([
                own.connections as f64,
                needed as f64,
                ratio,
                p50,
                p99,
                own.longest_wait.as_millis_f64(),
            ]);
        }
        if rows.is_empty() {
            continue;
        }
        let max = |k: usize| rows.iter().map(|row| row[k]).fold(0.0, f64::max);
        let mean = |k: usize| rows.iter().map(|row| row[k]).sum::<f64>() / rows.len() as f64;
        out += &format!(
            "{:26} n {:6.1} max {:4} needed {:4} ratio max {:5.2} p50 max {:5.2} p99 mean {:5.2} max {:5.2} wait {:7.1}\n",
            name,
            mean(0),
            max(0),
            max(1),
            max(2),
            max(3),
            mean(4),
            max(4),
            max(5)
        );
    }
    println!("{out}");
}
