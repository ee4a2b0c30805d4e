//! The differences that are tested together.
//!
//! All significant differences hold jointly with 95 % confidence: p values are adjusted by Holm's
//! method over all pairs of targets and headline figures.

use plimsoll_report::format;
use plimsoll_rules::Finding;
use plimsoll_stats::multiple::holm;

use crate::result::{Claim, CpuDifference, Difference, ErrorDifference, Kind, Versus};

/// Significance level of all differences together.
const LEVEL: f64 = 0.05;

/// `about` of a difference in failures.
pub(crate) const FAILURES: &str = "failures";
const CPU: &str = "cpu";

/// All tested differences: significant ones first, and among them failures before times, because
/// nobody chooses a failing target for its speed; then the headline figure.
pub(crate) fn claims(versus: &Versus) -> Vec<Claim> {
    let mut claims: Vec<Claim> =
        pairs(versus).flat_map(|(target, other)| times(versus, target, other)).collect();
    claims.extend(versus.errors.iter().filter_map(|errors| failures(versus, errors)));
    claims.extend(versus.cpu.iter().filter_map(cpu));
    let p: Vec<f64> = claims.iter().map(|claim| claim.p).collect();
    for (claim, p_holm) in claims.iter_mut().zip(holm(&p)) {
        claim.holds &= p_holm < LEVEL;
        claim.p_holm = p_holm;
        claim.other_answers =
            claim.about != FAILURES && versus.is_mismatch(&claim.target, &claim.reference);
    }
    let (headline, reference) = (versus.headline.name(), versus.reference());
    claims.sort_by_key(|claim| {
        let rank = [claim.about != FAILURES, claim.about != headline, claim.reference != reference];
        (!claim.holds, rank)
    });
    claims
}

/// Pairs each compared target with the reference, then the compared targets with each other.
fn pairs(versus: &Versus) -> impl Iterator<Item = (&str, &str)> {
    let (compared, reference) = (versus.compared(), versus.reference());
    let with_reference = compared.clone().into_iter().map(move |target| (target, reference));
    let each_two = (0..compared.len()).flat_map(move |later| {
        (0..later).map(|earlier| (compared[later], compared[earlier])).collect::<Vec<_>>()
    });
    with_reference.chain(each_two)
}

/// The headline figure, the whole request's time, and the shift of the rarest percentile that the
/// sample size allows.
fn times(versus: &Versus, target: &str, reference: &str) -> Vec<Claim> {
    let (headline, whole) = (versus.headline, versus.whole);
    let other = (whole != headline).then_some((whole, Kind::Added, "p50"));
    let tail = versus.tail().map(|quantile| (headline, Kind::Shift, quantile));
    [Some((headline, Kind::Added, "p50")), other, tail]
        .into_iter()
        .flatten()
        .filter_map(|(figure, kind, q)| versus.difference(target, reference, figure, kind, q))
        .filter_map(time)
        .collect()
}

fn time(found: &Difference) -> Option<Claim> {
    let (value, low, high) = found.limited()?;
    let name = found.figure.name();
    Some(Claim {
        target: found.target.clone(),
        reference: found.reference.clone(),
        about: match found.kind {
            Kind::Added => name.to_owned(),
            Kind::Shift => format!("{name}.{}", found.quantile),
        },
        figure: match found.kind {
            Kind::Added => found.figure.title().to_owned(),
            Kind::Shift => {
                format!("{} of {}", found.quantile, found.figure.title())
            }
        },
        values: [value, low, high],
        p: found.p?,
        // The measurement error alone cannot explain it.
        holds: found.is_beyond_generator(),
        ..Claim::default()
    })
}

/// Failed turns of a target, and all.
fn requests_of(versus: &Versus, name: &str) -> [u64; 2] {
    let found = versus.targets.iter().find(|target| target.name == name);
    found.map_or([0; 2], |target| [target.failed, target.turns])
}

/// The target that fails more often comes first.
fn failures(versus: &Versus, errors: &ErrorDifference) -> Option<Claim> {
    let ErrorDifference { target, reference, only_target, only_reference, .. } = errors;
    let (more, less, most, least) = if only_target >= only_reference {
        (target, reference, *only_target, *only_reference)
    } else {
        (reference, target, *only_reference, *only_target)
    };
    (most > 0).then(|| Claim {
        requests: [more, less].map(|name| requests_of(versus, name)),
        target: more.clone(),
        reference: less.clone(),
        about: FAILURES.to_owned(),
        counts: [most, least, errors.pairs],
        by_batch: errors.by_batch,
        p: errors.p,
        holds: true,
        ..Claim::default()
    })
}

fn cpu(cpu: &CpuDifference) -> Option<Claim> {
    Some(Claim {
        target: cpu.target.clone(),
        reference: cpu.reference.clone(),
        about: CPU.to_owned(),
        figure: "CPU per request".to_owned(),
        values: [cpu.value_ns?, cpu.low_ns?, cpu.high_ns?],
        p: cpu.p?,
        holds: true,
        ..Claim::default()
    })
}

impl Versus {
    /// The tested figures, because equal medians do not make equal targets.
    pub(crate) fn tested(&self) -> String {
        let mut tested: Vec<String> = Vec::new();
        for claim in self.claims.iter().filter(|claim| claim.about != FAILURES) {
            let is_median = claim.about != CPU && !claim.about.contains('.');
            let name = format!("{}{}", if is_median { "median " } else { "" }, claim.figure);
            if !tested.contains(&name) {
                tested.push(name);
            }
        }
        if tested.is_empty() { "failures".to_owned() } else { tested.join(", ") }
    }
}

impl Claim {
    /// The finding on a significant difference.
    pub fn finding(&self) -> Finding {
        let code = if self.about == FAILURES { 403 } else { 404 };
        let finding =
            Finding::new(code).with("target", &self.target).with("reference", &self.reference);
        if code == 404 {
            return finding
                .with("figure", &self.figure)
                .with("difference", self.difference())
                .with_some("answers", self.other_answers.then_some("other"));
        }
        let [most, least, pairs] = self.counts;
        let [own, other] = self.requests.map(|all| all.map(format::count).join(" of "));
        // In a closed load, the faster target receives more requests.
        let differs = self.requests != [[most, pairs], [least, pairs]];
        let [most, least, pairs] = self.counts.map(format::count);
        let in_pairs = format!("{most} against {least} in the {pairs} pairs");
        finding
            .with("failed", own)
            .with("least", other)
            .with_some("pairs", differs.then_some(in_pairs))
    }

    /// The values as a table cell: `40 to 0 pairs` for failures, else the difference with its
    /// interval.
    pub(crate) fn difference(&self) -> String {
        if self.about == FAILURES {
            let [most, least, _] = self.counts.map(format::count);
            return format!("{most} to {least} pairs");
        }
        let [value, low, high] = self.values.map(|nanos| nanos / 1e6);
        format::difference(value, low, high)
    }
}
