//! Where the share of misses crosses the objective: quasi-binomial regression on the logarithm of
//! the load.

use plimsoll_stats::student_t::critical_95;

use crate::kept::Counts;

/// A probe as the regression sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Natural logarithm of the load.
    pub(crate) x: f64,
    pub(crate) counts: Counts,
}

/// The load at which the share of misses is that of the objective, as natural logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Root {
    pub(crate) x: f64,
    /// Half of its 95 % interval.
    pub(crate) half: f64,
}

/// Stopping at a narrow interval selects narrow ones: found by simulation (`tests/it`).
const SELECTION: f64 = 1.2;
/// So far outside of the probes a root may lie, in logarithms.
const OUTSIDE: f64 = 0.01;
/// Fewest probes of an interval.
pub(crate) const LEAST_PROBES: usize = 10;

/// A fitted line: logit of the share of misses = `a + b (x - centre)`.
#[derive(Clone, Copy, Debug)]
struct Fit {
    centre: f64,
    a: f64,
    b: f64,
    /// Covariance of `a` and `b`: (aa, ab, bb).
    covariance: (f64, f64, f64),
}

/// The root for a share of misses; `None` where the slope is not proven above 0, or with too few
/// probes.
///
/// Probes are the replicates, not requests: the machine drifts between them. So the covariance is
/// the larger, at the root, of the leverage-corrected sandwich HC3 (`MacKinnon` and White, 1985)
/// and the model's one times Pearson's dispersion (`McCullagh` and Nelder, 1989, 4.5). The interval
/// is by the delta method.
pub(crate) fn root(points: &[Point], missed: f64) -> Option<Root> {
    if points.len() < LEAST_PROBES {
        return None;
    }
    let (sandwich, dispersed) = fits(points)?;
    let freedom = (points.len() - 2) as f64;
    let t = critical_95(freedom);
    if sandwich.b <= t * dispersed.covariance.2.sqrt() {
        return None;
    }
    let at = (logit(missed) - sandwich.a) / sandwich.b;
    let variance = sandwich.variance_at(at).max(dispersed.variance_at(at));
    let half = SELECTION * t * variance.sqrt() / sandwich.b;
    let x = sandwich.centre + at;
    // The line says nothing beyond the probes.
    let within = points.iter().any(|point| point.x <= x + OUTSIDE)
        && points.iter().any(|point| point.x >= x - OUTSIDE);
    (within && half.is_finite()).then_some(Root { x, half })
}

/// The best guess at the root without an interval, and the slope there, in logits.
pub(crate) fn guess(points: &[Point], missed: f64) -> Option<(f64, f64)> {
    let (fit, _) = fits(points)?;
    let at = (logit(missed) - fit.a) / fit.b;
    (fit.b > 0.0 && at.is_finite()).then_some((fit.centre + at, fit.b))
}

impl Fit {
    fn variance_at(&self, at: f64) -> f64 {
        let (aa, ab, bb) = self.covariance;
        (2.0 * at).mul_add(ab, aa) + at * at * bb
    }
}

/// The same line with both covariances.
#[expect(clippy::many_single_char_names, reason = "the names of the formula")]
fn fits(points: &[Point]) -> Option<(Fit, Fit)> {
    let n = |point: &Point| point.counts.all as f64;
    let total: f64 = points.iter().map(n).sum();
    let centre = points.iter().map(|point| n(point) * point.x).sum::<f64>() / total;
    let (a, b) = line(points, centre)?;
    let share = |point: &Point| expit(b.mul_add(point.x - centre, a));
    // Inverse of the information matrix.
    let inverse = invert(points.iter().map(|point| {
        let (p, u) = (share(point), point.x - centre);
        (n(point) * p * (1.0 - p), u)
    }))?;
    let (iaa, iab, ibb) = inverse;
    let mut meat = (0.0, 0.0, 0.0);
    let mut pearson = 0.0;
    for point in points {
        let (p, u) = (share(point), point.x - centre);
        let weight = n(point) * p * (1.0 - p);
        let leverage = weight * (u * u).mul_add(ibb, (2.0 * u).mul_add(iab, iaa));
        let residual = point.counts.missed as f64 - n(point) * p;
        pearson += residual * residual / weight.max(f64::MIN_POSITIVE);
        // A probe that decides the line alone has leverage 1.
        let corrected = (residual / (1.0 - leverage).max(0.05)).powi(2);
        meat =
            (meat.0 + corrected, u.mul_add(corrected, meat.1), (u * u).mul_add(corrected, meat.2));
    }
    let freedom = points.len().checked_sub(2).filter(|freedom| *freedom > 0)? as f64;
    let dispersion = (pearson / freedom).max(1.0);
    let dispersed = (iaa * dispersion, iab * dispersion, ibb * dispersion);
    Some((
        Fit { centre, a, b, covariance: sandwiched(inverse, meat) },
        Fit { centre, a, b, covariance: dispersed },
    ))
}

/// `inverse * meat * inverse` of symmetric 2 x 2 matrices.
#[expect(clippy::many_single_char_names, reason = "the names of the formula")]
fn sandwiched(inverse: (f64, f64, f64), meat: (f64, f64, f64)) -> (f64, f64, f64) {
    let ((a, b, c), (p, q, r)) = (inverse, meat);
    let first = (a * p + b * q, a * q + b * r);
    let second = (b * p + c * q, b * q + c * r);
    (first.0 * a + first.1 * b, first.0 * b + first.1 * c, second.0 * b + second.1 * c)
}

/// Inverse of the sum of `weight * (1, u; u, u^2)`.
fn invert(parts: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64, f64)> {
    let (mut aa, mut ab, mut bb) = (0.0, 0.0, 0.0);
    for (weight, u) in parts {
        aa += weight;
        ab += weight * u;
        bb += weight * u * u;
    }
    let determinant = aa * bb - ab * ab;
    (determinant > 1e-12 * aa * bb && determinant.is_finite())
        .then(|| (bb / determinant, -ab / determinant, aa / determinant))
}

/// Iteratively reweighted least squares; `None` where it does not converge, as without any miss, or
/// where a load separates kept from missed.
#[expect(clippy::many_single_char_names, reason = "the names of the formula")]
fn line(points: &[Point], centre: f64) -> Option<(f64, f64)> {
    const STEPS: usize = 60;
    const STEEPEST: f64 = 2_000.0;
    let all: u64 = points.iter().map(|point| point.counts.all).sum();
    let missed: u64 = points.iter().map(|point| point.counts.missed).sum();
    if missed == 0 || missed == all {
        return None;
    }
    let (mut a, mut b) = (logit(missed as f64 / all as f64), 0.0_f64);
    for _ in 0..STEPS {
        let (mut score_a, mut score_b) = (0.0, 0.0);
        let parts: Vec<_> = points
            .iter()
            .map(|point| {
                let (n, u) = (point.counts.all as f64, point.x - centre);
                let p = expit(b.mul_add(u, a));
                let residual = point.counts.missed as f64 - n * p;
                score_a += residual;
                score_b += residual * u;
                (n * p * (1.0 - p), u)
            })
            .collect();
        let (iaa, iab, ibb) = invert(parts.into_iter())?;
        let (da, db) = (iaa * score_a + iab * score_b, iab * score_a + ibb * score_b);
        // Short steps where the start is far: the likelihood is concave, so this converges.
        let scale = 1.0 / (da.abs() / 2.0).max(1.0);
        (a, b) = (a + da * scale, b + db * scale);
        if b.abs() > STEEPEST || !a.is_finite() {
            return None;
        }
        if da.abs() < 1e-9 && db.abs() < 1e-7 {
            return Some((a, b));
        }
    }
    None
}

pub(crate) fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(line: impl Fn(f64) -> f64, n: u64) -> Vec<Point> {
        let at = |index: u32| f64::from(index).mul_add(0.01, 7.0);
        let of = |x: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let missed = (expit(line(x)) * n as f64).round() as u64;
            Point { x, counts: Counts { missed, doubtful: 0, all: n } }
        };
        (0..12).map(|index| of(at(index))).collect()
    }

    #[test]
    fn a_line_without_noise_is_found() {
        // logit = -4.6 + 30 (x - 7.05): the share of 1 % (logit -4.595) is at 7.0502.
        let found = root(&points(|x| 30.0f64.mul_add(x - 7.05, -4.6), 1_000_000), 0.01).unwrap();
        assert!((found.x - 7.050_16).abs() < 1e-4, "{found:?}");
        assert!(found.half < 0.01, "{found:?}");
    }

    #[test]
    fn a_flat_line_and_one_that_separates_have_no_root() {
        assert_eq!(root(&points(|_| -4.6, 10_000), 0.01), None);
        assert_eq!(root(&points(|x| if x < 7.05 { -40.0 } else { 3.0 }, 10_000), 0.01), None);
        let few = &points(|x| 30.0f64.mul_add(x - 7.05, -4.6), 1_000)[..9];
        assert_eq!(root(few, 0.01), None);
    }
}
