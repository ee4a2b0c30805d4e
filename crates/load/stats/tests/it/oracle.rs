//! The textbook's functions against those of `statrs`, and against tables.

use plimsoll_stats::{normal, student_t, tails};
use statrs::distribution::{
    Binomial, ContinuousCDF as _, DiscreteCDF as _, Normal, Poisson, StudentsT,
};

fn assert_near(found: f64, expected: f64, what: &str) {
    let allowed = 1e-9 * expected.abs() + 1e-12;
    assert!((found - expected).abs() <= allowed, "{what}: {found} is not {expected}");
}

#[test]
fn the_normal_distribution_is_that_of_the_oracle() {
    let oracle = Normal::new(0.0, 1.0).unwrap();
    for step in -60..=60 {
        let z = f64::from(step) / 10.0;
        assert_near(normal::cdf(z), oracle.cdf(z), &format!("cdf({z})"));
        let back = normal::quantile(normal::cdf(z));
        assert!((back - z).abs() < 1e-6, "{z}: {back}");
    }
    // From tables, to ten digits.
    for (p, z) in [(0.975, 1.959_963_984_5), (0.99, 2.326_347_874_0), (0.8, 0.841_621_233_6)] {
        assert!((normal::quantile(p) - z).abs() < 1e-9, "{p}");
        assert!((normal::quantile(1.0 - p) + z).abs() < 1e-9, "{p}");
    }
    // The tail beyond 10, of Abramowitz and Stegun, table 26.2.
    assert!((normal::upper_tail(10.0) / 7.619_853_024_160_5e-24 - 1.0).abs() < 1e-10);
    assert!(normal::quantile(1.0).is_infinite());
    assert!(normal::quantile(0.5).abs() < 1e-12);
}

#[test]
fn students_t_is_that_of_the_oracle() {
    for freedom in [1.0, 1.7, 2.0, 3.0, 5.5, 9.0, 59.0, 1_000.0, 1e6] {
        let oracle = StudentsT::new(0.0, 1.0, freedom).unwrap();
        for step in -40..=40 {
            let t = f64::from(step) / 4.0;
            let what = format!("cdf({t}, {freedom})");
            assert!((student_t::cdf(t, freedom) - oracle.cdf(t)).abs() < 1e-8, "{what}");
        }
        for p in [0.0005, 0.01, 0.2, 0.5, 0.8, 0.975, 0.9975, 0.9995] {
            let t = student_t::quantile(p, freedom);
            assert!((student_t::cdf(t, freedom) - p).abs() < 1e-11, "quantile({p}, {freedom})");
        }
    }
    // From tables: 97.5 %, and 99.95 %.
    for (freedom, middle, far) in [
        (1.0, 12.706_2, 636.619_2),
        (2.0, 4.302_65, 31.599_1),
        (5.0, 2.570_58, 6.868_83),
        (7.0, 2.364_62, 5.407_88),
        (10.0, 2.228_14, 4.586_89),
        (30.0, 2.042_27, 3.645_96),
        (f64::INFINITY, 1.959_96, 3.290_53),
    ] {
        assert!((student_t::critical_95(freedom) / middle - 1.0).abs() < 1e-5, "{freedom}");
        assert!((student_t::quantile(0.9995, freedom) / far - 1.0).abs() < 1e-5, "{freedom}");
    }
    assert!(student_t::two_sided_p(f64::NAN, 5.0).is_nan());
    assert!(student_t::two_sided_p(f64::NEG_INFINITY, 5.0).abs() < 1e-300);
}

#[test]
fn tails_are_those_of_the_oracle() {
    for (trials, p) in [(1, 0.5), (7, 0.3), (100, 0.01), (5_000, 0.5), (200_000, 0.001)] {
        let oracle = Binomial::new(p, trials).unwrap();
        let middle = (trials as f64 * p).round();
        for offset in [-40.0, -3.0, 0.0, 1.0, 12.0, 40.0] {
            #[expect(clippy::cast_possible_truncation, reason = "clamped")]
            let least = (middle + offset).clamp(1.0, trials as f64) as u64;
            let found = tails::binomial_at_least(least, trials, p);
            let expected = oracle.sf(least - 1);
            assert!((found - expected).abs() < 1e-8, "{trials} {p} {least}: {found} {expected}");
        }
    }
    assert!((tails::binomial_at_least(0, 9, 0.5) - 1.0).abs() < 1e-15);
    assert!(tails::binomial_at_least(10, 9, 0.5).abs() < 1e-15);
    for mean in [0.2, 3.0, 7.906, 150.0] {
        let oracle = Poisson::new(mean).unwrap();
        for least in [1, 2, 6, 40, 170] {
            let found = tails::poisson_at_least(least, mean);
            let expected = oracle.sf(least - 1);
            assert!((found - expected).abs() < 1e-9, "{mean} {least}: {found} {expected}");
        }
    }
}
