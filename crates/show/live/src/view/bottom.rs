//! Panels for outcomes, processes, and Plimsoll itself.

use plimsoll_measure::Side;
use plimsoll_report::format::{bytes, count, share};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::columns;
use super::panel::{BAD, DIM, ODD, cut, figure, panel, time};
use crate::history::parts;
use crate::model::{Look, Model, Part};

/// Height including the frame.
pub(super) const HEIGHT: u16 = 8;

/// Dispatch lag from which it is coloured, in milliseconds.
const LATE_MS: f64 = 1.0;

/// Draws the three panels.
pub(super) fn draw(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let [left, middle, right] = columns(area, [38, 31, 31]);
    draw_outcomes(model, look, left, buf);
    panel("processes", &processes(model, usize::from(middle.width)), middle, buf);
    panel("Plimsoll itself", &generator(model), right, buf);
}

pub(super) fn draw_outcomes(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    if let Some(part) = model.part(look) {
        panel(&part.titled("outcomes so far"), &outcomes(part), area, buf);
    }
}

/// Outcomes of the ended requests.
fn outcomes<'a>(part: &Part) -> Vec<Line<'a>> {
    let counters = &part.history.counters;
    let ended = counters.completed
        + counters.rejected
        + counters.failed
        + counters.timed_out
        + counters.cancelled
        + counters.never_sent;
    let ended = ended.max(1) as f64;
    let rows = [
        ("completed", counters.completed, Style::new()),
        ("rejected", counters.rejected, ODD),
        ("failed", counters.failed, BAD),
        ("timed out", counters.timed_out, BAD),
        ("not sent", counters.never_sent, BAD),
    ];
    let mut lines: Vec<_> = rows
        .into_iter()
        .map(|(name, number, style)| {
            let value = format!("{:>12} {:>8}", count(number), share(number as f64 / ended));
            if number > 0 {
                figure(name, value, style).style(Style::new())
            } else {
                figure(name, value, DIM).style(DIM)
            }
        })
        .collect();
    let frequent = part.history.errors.iter().max_by_key(|(_, number)| **number);
    lines.extend(frequent.map(|(class, number)| {
        let whose = if class.side() == Side::Generator { " (Plimsoll's side)" } else { "" };
        Line::styled(format!("most often: {} x{}{whose}", class.name(), count(*number)), BAD)
    }));
    lines
}

fn processes<'a>(model: &Model, width: usize) -> Vec<Line<'a>> {
    if model.processes.is_empty() {
        return ["none is watched", "", "--watch NAME=PID", "--watch NAME=:PORT"]
            .map(|text| Line::styled(text, DIM))
            .into();
    }
    let name = width.saturating_sub(4 + 18).max(4);
    model
        .processes
        .iter()
        .map(|process| {
            let cores = process.cores.map_or_else(|| "gone".to_owned(), cores);
            let memory = process.rss_bytes.map(|memory| bytes(memory as f64)).unwrap_or_default();
            let style = if process.cores.is_some() { Style::new() } else { BAD };
            Line::styled(
                format!("{:<name$} {cores:>8} {memory:>8}", cut(&process.name, name)),
                style,
            )
        })
        .collect()
}

fn cores(cores: f64) -> String {
    format!("{cores:.2} CPU")
}

fn generator<'a>(model: &Model) -> Vec<Line<'a>> {
    let (p50, upper, name) = parts(model.lag);
    let upper_name = if name == "p99" { " p99 now" } else { " max now" };
    let [p50, upper, worst] = [(" p50 now", p50), (upper_name, upper), (" worst", model.worst_lag)]
        .map(|(name, late)| {
            let odd = late.is_some_and(|late| late > LATE_MS);
            figure(name, time(late), if odd { ODD } else { Style::new() })
        });
    vec![
        Line::styled("how late it sends", DIM),
        p50,
        upper,
        worst,
        figure("CPU", model.own_cores.map_or_else(|| "-".to_owned(), cores), Style::new()),
    ]
}
