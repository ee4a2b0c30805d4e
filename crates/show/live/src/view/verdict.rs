//! The verdict so far.

use std::cmp::Reverse;

use plimsoll_metrics::{Judgement, Verdict};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::panel::{BAD, DIM, GOOD, ODD, cut, panel};
use crate::facts::SoFar;
use crate::model::Model;

/// Height including the frame.
pub(super) const HEIGHT: u16 = 4;

/// Draws the panel.
pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let (word, style, rest, why) = words(model);
    let width = usize::from(area.width).saturating_sub(4);
    let first = Line::from(vec![Span::styled(word, style), Span::raw(rest)]);
    let why = Line::styled(cut(&why, width), DIM);
    panel("verdict if it ended now", &[first, why], area, buf);
}

/// The word, its style, the text after it, and the reason.
fn words(model: &Model) -> (&'static str, Style, String, String) {
    let Some(so_far) = &model.verdict else {
        let why = "thresholds and measurement error are checked every few seconds";
        return ("not judged yet", DIM, String::new(), why.to_owned());
    };
    if let Some(why) = so_far.invalid.first() {
        let more = match so_far.invalid.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let rest = ": the measurement error affects a headline figure".to_owned();
        return ("INVALID", BAD, rest, format!("{why}{more}"));
    }
    let judgements = || so_far.thresholds.iter().map(|threshold| &threshold.judgement);
    let counts @ [kept, broken, open] = Judgement::count(judgements());
    if counts == [0; 3] {
        let rest = ": OK so far; no thresholds set".to_owned();
        return ("valid", GOOD, rest, why(so_far));
    }
    let (word, style) = match Verdict::of(judgements()) {
        Verdict::Pass => ("PASS", GOOD),
        Verdict::Fail => ("FAIL", BAD),
        Verdict::Inconclusive => ("not decided", ODD),
    };
    let parts = [(broken, "broken"), (kept, "kept"), (open, "pending")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, word)| format!("{count} {word}")).collect();
    (word, style, format!(": thresholds {}", parts.join(", ")), why(so_far))
}

/// The most important threshold, with the measured value.
fn why(so_far: &SoFar) -> String {
    let mut sorted: Vec<_> = so_far.thresholds.iter().collect();
    sorted.sort_by_key(|threshold| Reverse(threshold.judgement.verdict()));
    let words: Vec<_> = sorted
        .into_iter()
        .take(3)
        .map(|threshold| {
            let measured = threshold.measured.map(|value| threshold.unit.value_words(value));
            let measured = match (&threshold.judgement, measured) {
                (Judgement::Inconclusive(why), _) => why.clone(),
                (_, Some(measured)) => format!("{measured} so far"),
                (_, None) => threshold.of_every_value().unwrap_or("-").to_owned(),
            };
            format!("{} {}: {measured}", threshold.metric, threshold.expression)
        })
        .collect();
    crate::model::harmless(&words.join("   "))
}
