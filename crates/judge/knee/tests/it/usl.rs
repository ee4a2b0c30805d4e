//! The Universal Scalability Law against data whose coefficients are known.

use plimsoll_knee::{Level, Usl};
use plimsoll_measure::Seed;

const LEVELS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

fn level(concurrency: f64, throughput_per_s: f64) -> Level {
    Level { concurrency, throughput_per_s, seconds: 10.0 }
}

/// Throughputs of a curve with relative noise.
fn noisy(curve: impl Fn(f64) -> f64, noise: f64, seed: u64) -> Vec<Level> {
    let mut rng = Seed(seed).rng("levels", 0);
    LEVELS.map(|n| level(n, curve(n) * (1.0 + noise * rng.normal()))).to_vec()
}

/// Of 100 seeds: fitted, kappa claimed, sigma covered, kappa covered.
fn counts(curve: impl Fn(f64) -> f64 + Copy, noise: f64, sigma: f64, kappa: f64) -> [usize; 4] {
    let fits: Vec<_> = (0..100).filter_map(|seed| Usl::fit(&noisy(curve, noise, seed))).collect();
    let count = |is: &dyn Fn(&Usl) -> bool| fits.iter().filter(|usl| is(usl)).count();
    [
        fits.len(),
        count(&|usl| usl.kappa.is_some()),
        count(&|usl| usl.sigma.low <= sigma && sigma <= usl.sigma.high),
        count(&|usl| usl.kappa.is_some_and(|found| found.low <= kappa && kappa <= found.high)),
    ]
}

/// The minimum of the same squares by another program and method: Nelder and Mead's simplex.
const LAMBDA: f64 = 99.709_321;
const SIGMA: f64 = 0.048_057_488;
const KAPPA: f64 = 0.000_799_655_65;

#[test]
fn the_fit_is_the_minimum_of_the_squares() {
    let (n, x) = (
        [1.0, 2.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0],
        [101.0, 188.0, 275.0, 462.0, 741.0, 933.0, 958.0, 742.0],
    );
    let mut levels: Vec<_> = n.into_iter().zip(x).map(|(n, x)| level(n, x)).collect();
    levels[7].seconds = 20.0;
    let usl = Usl::fit(&levels).unwrap();
    let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 1e-4;
    let kappa = usl.kappa.unwrap();
    assert!(near(usl.lambda_per_s.value, LAMBDA), "{usl:?}");
    assert!(near(usl.sigma.value, SIGMA) && near(kappa.value, KAPPA), "{usl:?}");
    assert_eq!((usl.levels, usl.concurrency), (8, (1.0, 96.0)));
    assert!((usl.highest_throughput_per_s - 958.0).abs() < 1e-9);
}

#[test]
fn coherency_is_found_and_covered() {
    let [fitted, claimed, sigma, kappa] = counts(
        |n: f64| 1_000.0 * n / (1.0 + 0.05 * (n - 1.0) + 1e-4 * n * (n - 1.0)),
        0.02,
        0.05,
        1e-4,
    );
    assert!(fitted >= 90 && claimed >= 85, "{fitted} {claimed}");
    assert!(sigma * 10 >= fitted * 9 && kappa * 10 >= claimed * 9, "{sigma} {kappa}");
}

/// Nothing is claimed where there is nothing: contention alone, none at all, half of the work.
#[test]
fn coherency_is_not_claimed_where_there_is_none() {
    for contention in [0.0, 0.05, 0.5] {
        let [fitted, claimed, sigma, _] =
            counts(|n: f64| 1_000.0 * n / (1.0 + contention * (n - 1.0)), 0.02, contention, 0.0);
        let found = format!("{contention}: {fitted} fitted, {claimed} claimed, {sigma} covered");
        assert!(fitted >= 85 && claimed <= 8 && sigma * 10 >= fitted * 9, "{found}");
    }
}

/// A pool of eight that fills up, and one that does so smoothly, do not follow the law: no fit.
#[test]
fn what_does_not_follow_the_law_is_refused() {
    let pool = |n: f64| 1_000.0 * n.min(8.0);
    let smooth = |n: f64| 8_000.0 * n / (n.powi(4) + 8.0_f64.powi(4)).powf(0.25);
    for (name, fitted) in
        [("pool", counts(pool, 0.02, 0.0, 0.0)[0]), ("smooth", counts(smooth, 0.005, 0.0, 0.0)[0])]
    {
        assert!(fitted <= 20, "{name} {fitted}");
    }
}

/// One server with exponential times: `N = X / (capacity - X)`, which is the law with sigma 1/2 and
/// lambda capacity/2. Concurrencies come from a simulation by Little's law, not from the formula.
#[test]
fn a_single_server_has_a_contention_of_a_half() {
    let (mut fitted, mut claimed, mut covered) = (0, 0, 0);
    for seed in 0..100 {
        let mut rng = Seed(seed).rng("single", 0);
        let mut at = |rate: f64| {
            let (mut now, mut free, mut sum, mut count) = (0.0, 0.0_f64, 0.0, 0.0);
            while now < 40.0 {
                now += rng.exponential() / rate;
                free = free.max(now) + rng.exponential() / 500.0;
                sum += free - now;
                count += 1.0;
            }
            level(sum / now, count / now)
        };
        let levels: Vec<_> = (0..9).map(|index| at(290.0 + 20.0 * f64::from(index))).collect();
        if let Some(usl) = Usl::fit(&levels) {
            fitted += 1;
            claimed += usize::from(usl.kappa.is_some());
            covered += usize::from(usl.sigma.low <= 0.5 && usl.sigma.high >= 0.5);
        }
    }
    assert!(
        fitted >= 80 && claimed <= 8 && covered * 10 >= fitted * 9,
        "{fitted} {claimed} {covered}"
    );
}

#[test]
fn few_levels_or_a_narrow_span_show_no_law() {
    let curve = |n: f64| 1_000.0 * n / (1.0 + 0.05 * (n - 1.0));
    let of = |levels: &[f64]| levels.iter().map(|n| level(*n, curve(*n))).collect::<Vec<_>>();
    assert_eq!(Usl::fit(&of(&[1.0, 2.0, 4.0, 8.0, 16.0])), None);
    // Many probes beside one load are one level.
    assert_eq!(Usl::fit(&of(&[1.0, 2.0, 4.0, 8.0, 16.0, 16.1, 16.2, 16.3])), None);
    assert_eq!(Usl::fit(&of(&[10.0, 12.0, 14.0, 17.0, 20.0, 24.0, 28.0])), None);
    assert_eq!(Usl::fit(&[]), None);
}
