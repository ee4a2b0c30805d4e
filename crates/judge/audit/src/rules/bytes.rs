//! Bytes per second = rate x size of an answer. Headers add to it, compression takes from it, and
//! bits are taken for bytes: only what none of these explains is named.

use super::{at, digits, records};
use crate::finding::{Findings, Level};
use crate::heading::Quantity;
use crate::reading::Reading;

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for record in records(reading) {
        let (Some(data), Some(rate), Some(size)) = (
            record.only(Quantity::DataRate).filter(|value| value.has_unit),
            record.only(Quantity::Rate),
            record.only(Quantity::Size).filter(|value| value.has_unit),
        ) else {
            continue;
        };
        if rate.number.low <= 0.0 {
            continue;
        }
        let least = data.number.low / rate.number.high;
        let most = data.number.high / rate.number.low;
        let (header, bits) = (4096.0, 8.0);
        if least <= (size.number.high + header) * bits && most >= size.number.low / 20.0 {
            continue;
        }
        let mut finding = at(data, &[rate, size], Level::Contradicted, "bytes");
        let each = data.number.value / rate.number.value;
        finding.because = format!(
            "{} / {} = {} bytes for each request; headers, compression or bits do not explain it",
            data.number.text,
            rate.number.text,
            digits(each)
        );
        let wanted = digits(rate.number.value * size.number.value / 1e6);
        finding.fix = format!("about {wanted} MB/s, or {} bytes", digits(each));
        findings.add(finding);
    }
}
