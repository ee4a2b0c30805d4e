//! A status against the result and the target beside it.

use super::{at, digits};
use crate::finding::{Findings, Level};
use crate::heading::Quantity;
use crate::number::{Bound, Locale, Number};
use crate::reading::Reading;
use crate::record::Check;

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for check in reading.tables.iter().flat_map(|table| &table.checks) {
        if check.result.number.is_plain() && check.result.has_unit {
            passed(check, findings);
            share_of_target(check, findings);
        }
    }
}

fn passed(check: &Check, findings: &mut Findings) {
    let status = check.status.to_lowercase();
    let passes = ["pass", "met", "\u{2705}", "\u{2713}", "ok", "yes"];
    let negated = ["not", "un", "fail", "miss", "nearly", "almost"];
    let says_passed = passes.iter().any(|word| status.contains(word))
        && !negated.iter().any(|word| status.contains(word));
    if !says_passed || !is_missed(check) {
        return;
    }
    let mut finding = at(&check.result, &[], Level::Contradicted, "targets");
    finding.says =
        format!("{}, target {}, {}", check.result.says(), check.limit.text, check.status);
    finding.because = format!("{} does not meet {}", check.result.number.text, check.limit.text);
    "another status, or another target".clone_into(&mut finding.fix);
    findings.add(finding);
}

fn is_missed(check: &Check) -> bool {
    let (result, limit) = (&check.result.number, check.limit.value);
    let at_least = match check.limit.bound {
        Bound::Above => true,
        Bound::Below => false,
        Bound::About => return false,
        Bound::Is => matches!(check.result.quantity, Quantity::Rate | Quantity::SuccessShare),
    };
    if at_least { result.high < limit } else { result.low > limit }
}

/// `93% of target`
fn share_of_target(check: &Check, findings: &mut Findings) {
    let Some(share) = Number::parse(&check.status, Locale::Point) else { return };
    if share.unit.is_none()
        || !share.rest.to_lowercase().starts_with("of target")
        || check.limit.value <= 0.0
    {
        return;
    }
    let actual = check.result.number.value / check.limit.value * 100.0;
    if !(share.low - 0.1 <= actual && actual <= share.high + 0.1) {
        let mut finding = at(&check.result, &[], Level::Contradicted, "targets");
        finding.says =
            format!("{}, target {}, {}", check.result.says(), check.limit.text, check.status);
        finding.because = format!("it is {} % of the target", digits(actual));
        finding.fix = format!("{} %", digits(actual));
        findings.add(finding);
    }
}
