//! Stages of k6 without an arrival rate are virtual users, whatever the comment beside them says.

use crate::finding::{Finding, Findings, Level};
use crate::number::short;
use crate::reading::Reading;

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    if reading.mentions(&["arrival-rate"]) || !reading.mentions(&["k6"]) {
        return;
    }
    let mut stages = Vec::new();
    for line in &reading.lines {
        let text = line.text.to_lowercase();
        let Some((stage, comment)) = text.split_once("//") else { continue };
        let is_stage = stage.contains("duration") && stage.contains("target");
        let is_rate = ["rps", "req/s", "requests/s", "requests per second"];
        if is_stage && is_rate.iter().any(|word| comment.contains(word)) {
            stages.push(line);
        }
    }
    let Some(first) = stages.first() else { return };
    findings.add(Finding {
        level: Level::Contradicted,
        rule: "virtual users",
        line: first.number,
        cell: short(&first.text),
        says: format!("\"{}\", and {} stages in all", short(&first.text), stages.len()),
        because:
            "stages without an arrival-rate executor set virtual users: their rate depends on \
                  how fast the target answers"
                .to_owned(),
        fix: "executor: ramping-arrival-rate, or \"virtual users\" in the comment".to_owned(),
    });
}
