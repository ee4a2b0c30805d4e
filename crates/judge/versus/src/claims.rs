//! The sentences that may be said, tested together.
//!
//! All of them hold together with 95 % confidence: p values are adjusted by Holm over each two
//! targets and the headline figures.

use plimsoll_report::format;
use plimsoll_stats::multiple::holm;

use crate::result::{Claim, CpuDifference, Difference, ErrorDifference, Kind, Versus};

/// Sentences hold at this level.
const LEVEL: f64 = 0.05;

/// What sentences on failures are about.
pub(crate) const FAILURES: &str = "failures";

/// A sentence before its p value is adjusted.
struct Tested {
    target: String,
    reference: String,
    about: String,
    p: f64,
    /// Whether it may hold: the generator alone cannot have made it.
    beyond_generator: bool,
    /// What is said if it holds.
    holds: String,
    /// What is said if it does not.
    open: String,
}

/// All sentences of `versus`, those that hold first, and of these the ones on failures: a target
/// that fails is not chosen for its times.
pub(crate) fn claims(versus: &Versus) -> Vec<Claim> {
    let mut tested = Vec::new();
    for (target, reference) in pairs(versus) {
        let headline = versus.difference(target, reference, versus.headline, Kind::Added, "p50");
        let other = versus.difference(target, reference, versus.whole, Kind::Added, "p50");
        let other = other.filter(|_| versus.whole != versus.headline);
        // The tail that the samples allow.
        let tail = versus.tail();
        let tail = tail
            .and_then(|q| versus.difference(target, reference, versus.headline, Kind::Shift, q));
        tested.extend([headline, other, tail].into_iter().flatten().filter_map(time));
    }
    tested.extend(versus.errors.iter().filter_map(failures));
    tested.extend(versus.cpu.iter().filter_map(cpu));
    let p: Vec<f64> = tested.iter().map(|claim| claim.p).collect();
    let claims = tested.into_iter().zip(holm(&p)).map(|(claim, p_holm)| {
        let holds = p_holm < LEVEL && claim.beyond_generator;
        let text = if holds { claim.holds } else { claim.open };
        let is_unlike = versus.is_mismatch(&claim.target, &claim.reference);
        let mark = if is_unlike && claim.about != FAILURES { ", for other answers" } else { "" };
        Claim {
            target: claim.target,
            reference: claim.reference,
            about: claim.about,
            text: format!("{text}{mark}"),
            p_holm,
            holds,
        }
    });
    let (mut hold, open): (Vec<Claim>, Vec<Claim>) = claims.partition(|claim| claim.holds);
    hold.sort_by_key(|claim| claim.about != FAILURES);
    hold.into_iter().chain(open).collect()
}

/// Each compared target with the reference, then each two of them.
fn pairs(versus: &Versus) -> Vec<(&str, &str)> {
    let compared = versus.compared();
    let reference = versus.reference();
    let with_reference = compared.iter().map(|&target| (target, reference));
    let each_two = compared
        .iter()
        .enumerate()
        .flat_map(|(position, &target)| compared[..position].iter().map(move |&r| (target, r)));
    with_reference.chain(each_two).collect()
}

fn time(difference: &Difference) -> Option<Tested> {
    let Difference { target, reference, figure, .. } = difference;
    let (value, low, high) = difference.limited()?;
    let (about, figure) = match difference.kind {
        Kind::Added => (figure.name().to_owned(), figure.title().to_owned()),
        Kind::Shift | Kind::ShiftWithFailures => {
            let quantile = &difference.quantile;
            let name = format!("{}.{quantile}", figure.name());
            (name, format!("the {quantile} of {}", figure.title()))
        }
    };
    let by = by_time(value, low, high);
    let word = if value > 0.0 { "slower" } else { "faster" };
    let open = not_significant(target, reference, &figure);
    Some(Tested {
        target: target.clone(),
        reference: reference.clone(),
        about,
        p: difference.p?,
        beyond_generator: difference.is_beyond_generator(),
        holds: format!("{target} is {word} than {reference} in {figure}, by {by}"),
        open: if difference.is_beyond_generator() || is_by_chance(difference) {
            open
        } else {
            let part = format::time(difference.generator_ns.unwrap_or_default() / 1e6);
            format!("{open}: up to {part} of the difference may be the generator's")
        },
    })
}

/// Whether the interval holds 0 without what may be the generator's.
fn is_by_chance(difference: &Difference) -> bool {
    difference.measured().is_some_and(|(_, low, high)| low <= 0.0 && high >= 0.0)
}

fn failures(errors: &ErrorDifference) -> Option<Tested> {
    let ErrorDifference { target, reference, only_target, only_reference, .. } = errors;
    if only_target + only_reference == 0 {
        return None;
    }
    let (more, less, most, least) = if only_target >= only_reference {
        (target, reference, only_target, only_reference)
    } else {
        (reference, target, only_reference, only_target)
    };
    let counts = format!(
        "{} to {} pairs{}",
        format::count(*most),
        format::count(*least),
        if errors.by_batch { ", in bursts" } else { "" }
    );
    Some(Tested {
        target: target.clone(),
        reference: reference.clone(),
        about: FAILURES.to_owned(),
        p: errors.p,
        beyond_generator: true,
        holds: format!("{more} fails more often than {less} ({counts})"),
        open: format!(
            "{more} does not fail significantly more often than {less} ({counts}, {})",
            format::p_value(errors.p)
        ),
    })
}

fn cpu(cpu: &CpuDifference) -> Option<Tested> {
    let CpuDifference { target, reference, .. } = cpu;
    let (value, low, high) = (cpu.value_ns?, cpu.low_ns?, cpu.high_ns?);
    let by = by_time(value, low, high);
    let word = if value > 0.0 { "more" } else { "less" };
    Some(Tested {
        target: target.clone(),
        reference: reference.clone(),
        about: "cpu".to_owned(),
        p: cpu.p?,
        beyond_generator: true,
        holds: format!("{target} takes {word} CPU per request than {reference}, by {by}"),
        open: not_significant(target, reference, "CPU per request"),
    })
}

fn not_significant(target: &str, reference: &str, figure: &str) -> String {
    format!("{target} and {reference} do not differ significantly in {figure}")
}

/// The size of a difference in nanoseconds, with its interval.
fn by_time(value: f64, low: f64, high: f64) -> String {
    let (low, high) = if value > 0.0 { (low, high) } else { (-high, -low) };
    format::with_interval(value.abs() / 1e6, low / 1e6, high / 1e6)
}
