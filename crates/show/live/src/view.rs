//! Draws the model, at any size.

use std::cmp::Reverse;

use plimsoll_measure::{Nanos, Side};
use plimsoll_metrics::{Judgement, Verdict};
use plimsoll_report::format::{self, bytes, count, share};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Widget as _};

use crate::model::{Look, Model, Part, SoFar, parts};

mod middle;

/// Minimum width and height for panels; smaller terminals show lines instead.
const PANELS: (u16, u16) = (90, 24);

/// Draws the model within the buffer.
pub fn draw(model: &Model, look: Look, buf: &mut Buffer) {
    let area = buf.area;
    if area.width < PANELS.0 || area.height < PANELS.1 {
        few_panels(model, look, area, buf);
    } else {
        panels(model, look, area, buf);
    }
    if look.help {
        draw_help(area, buf);
    }
}

/// For small terminals: the most important panels, one below the other.
fn few_panels(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let [head, verdict, outcomes, times, keys] =
        rows(area, [2, HEIGHT, BOTTOM_HEIGHT, u16::MAX, 1]);
    draw_head(model, look, head, buf);
    draw_verdict(model, verdict, buf);
    draw_outcomes(model, look, outcomes, buf);
    middle::draw_times(model, look, times, buf);
    draw_keys(model, look, keys, buf);
}

fn panels(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let targets = middle::height(model, area.height);
    let [head, verdict, middle, compared, bottom, keys] =
        rows(area, [2, HEIGHT, u16::MAX, targets, BOTTOM_HEIGHT, 1]);
    draw_head(model, look, head, buf);
    draw_verdict(model, verdict, buf);
    middle::draw(model, look, middle, buf);
    middle::draw_targets(model, compared, buf);
    draw_bottom(model, look, bottom, buf);
    draw_keys(model, look, keys, buf);
}

/// Areas of these heights from top to bottom. The highest one receives the rest.
fn rows<const N: usize>(area: Rect, heights: [u16; N]) -> [Rect; N] {
    let fixed: u16 = heights.iter().filter(|height| **height != u16::MAX).sum();
    let mut y = area.y;
    heights.map(|height| {
        let wanted = if height == u16::MAX { area.height.saturating_sub(fixed) } else { height };
        let row = Rect::new(area.x, y, area.width, wanted.min(area.bottom().saturating_sub(y)));
        y = row.bottom();
        row
    })
}

/// Areas with these shares of the width, in percent, from left to right.
fn columns<const N: usize>(area: Rect, shares: [u16; N]) -> [Rect; N] {
    let (mut x, mut so_far) = (area.x, 0);
    shares.map(|share| {
        so_far += u32::from(share);
        let end =
            area.x + u16::try_from(u32::from(area.width) * so_far / 100).unwrap_or(area.width);
        let column = Rect::new(x, area.y, end.saturating_sub(x), area.height);
        x = end;
        column
    })
}

// The first lines: the run and its progress; and the last line: keys and messages.

/// Draws the name, the stage, the time left and a bar.
fn draw_head(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width);
    let right = place(model, look);
    // The progress of the run matters more than its name.
    let room = width.saturating_sub(right.chars().count() + 3);
    let left = name(model, room.min(width / 2));
    let gap = width.saturating_sub(left.chars().count() + right.chars().count() + 2);
    let first = Line::from(vec![
        Span::raw(" "),
        Span::styled(left, BOLD),
        Span::raw(" ".repeat(gap)),
        Span::styled(right, if look.frozen { ODD } else { BOLD }),
    ]);
    panel_lines(&[first, bar(model, width)], area, buf);
}

/// Name and targets of the run.
fn name(model: &Model, width: usize) -> String {
    let targets = model.facts.targets.join(", ");
    let text = match (model.facts.name.as_str(), targets.as_str()) {
        (name, "") => name.to_owned(),
        (name, targets) => format!("{name}  {targets}"),
    };
    cut(&text, width)
}

/// The stage, and the rest of the run: requests if a number of them ends it, otherwise time.
fn place(model: &Model, look: Look) -> String {
    let frozen = if look.frozen { "PAUSED (p resumes)  " } else { "" };
    let (stages, duration) = (model.facts.stages.len(), model.facts.duration());
    let stage = model.present().map_or("", |stage| stage.name.as_str());
    let stage = format!("stage {} of {stages} {stage}", model.stage + 1);
    let place = if !model.begun {
        match model.facts.max_requests {
            Some(most) => format!("starting, {} requests to go", count(most)),
            None => format!("starting, {} to go", clock(duration)),
        }
    } else if model.ending {
        format!("ending, {} in flight", model.in_flight)
    } else if model.elapsed >= duration {
        format!("waiting for {} responses", model.in_flight)
    } else if let Some(requests) = model.requests() {
        format!("{stage}  {requests}")
    } else {
        // Rounded up, so that 0:00 is the end.
        let left = duration.saturating_sub(model.elapsed) + Nanos::from_millis(999);
        format!("{stage}  {} left of {}", clock(left), clock(duration))
    };
    format!("{frozen}{place}")
}

/// The progress bar, with gaps between stages.
fn bar<'a>(model: &Model, width: usize) -> Line<'a> {
    let width = width.saturating_sub(2);
    let duration = model.facts.duration().as_u64();
    let column = |at: Nanos| {
        let column = u128::from(at.as_u64()) * width as u128 / u128::from(duration.max(1));
        usize::try_from(column).unwrap_or(width)
    };
    let done = column(model.facts.position(model.elapsed, model.ended));
    let ends: Vec<_> = model.facts.stages.iter().map(|stage| column(stage.end)).collect();
    let (over, left): (Vec<_>, Vec<_>) = (0..width).partition(|index| *index < done);
    let text = |cells: Vec<usize>| {
        cells
            .into_iter()
            .map(|index| {
                let gap = index + 1 < width && ends.contains(&(index + 1));
                match (gap, index < done) {
                    (true, _) => ' ',
                    (false, true) => '━',
                    (false, false) => '╌',
                }
            })
            .collect::<String>()
    };
    Line::from(vec![Span::raw(" "), Span::styled(text(over), P50), Span::styled(text(left), DIM)])
}

/// The keys, or the latest message.
fn draw_keys(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    if let Some(message) = &model.message {
        let text = cut(message, usize::from(area.width).saturating_sub(2));
        panel_lines(&[Line::styled(format!(" {text}"), ODD)], area, buf);
        return;
    }
    let next = if model.parts.len() > 1 { "   tab next part" } else { "" };
    let freeze = if look.frozen { "p resume" } else { "p pause" };
    let text = format!(" q end and report   {freeze}{next}   ? help");
    panel_lines(&[Line::styled(text, DIM)], area, buf);
}

// Help on the keys.

const TEXT: &str = include_str!("view/help.txt");

/// Draws the help in the centre.
fn draw_help(area: Rect, buf: &mut Buffer) {
    let (width, height) = (70.min(area.width), 15.min(area.height));
    let x = area.x + (area.width - width) / 2;
    let y = area.y + (area.height - height) / 2;
    let area = Rect::new(x, y, width, height);
    Clear.render(area, buf);
    let content: Vec<_> = TEXT.lines().map(Line::raw).collect();
    panel("keys", &content, area, buf);
}

// The verdict so far.

/// Height including the frame.
const HEIGHT: u16 = 4;

/// Draws the panel.
fn draw_verdict(model: &Model, area: Rect, buf: &mut Buffer) {
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

// Building blocks of panels.

/// Styles for good, bad, and notable values.
const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const ODD: Style = Style::new().fg(Color::Yellow);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Style of labels next to figures.
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const P50: Style = Style::new().fg(Color::Cyan);
const P99: Style = Style::new().fg(Color::Magenta);

/// Draws a frame with a title. Returns the area within.
fn framed(title: &str, area: Rect, buf: &mut Buffer) -> Rect {
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(DIM)
        .title(Line::styled(format!(" {title} "), BOLD));
    let inner = block.inner(area);
    block.render(area, buf);
    inner
}

/// Draws as many lines as fit, from the top.
fn panel_lines(lines: &[Line<'_>], area: Rect, buf: &mut Buffer) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        buf.set_line(area.x, y, line, area.width);
    }
}

/// Draws a frame with lines.
fn panel(title: &str, content: &[Line<'_>], area: Rect, buf: &mut Buffer) {
    if area.height > 2 && area.width > 4 {
        let inner = framed(title, area, buf);
        let padded = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
        panel_lines(content, padded, buf);
    }
}

/// A figure after its name.
fn figure<'a>(name: &str, value: String, style: Style) -> Line<'a> {
    Line::from(vec![Span::styled(format!("{name:<11}"), DIM), Span::styled(value, style)])
}

/// Formats a time in milliseconds, or `-`.
fn time(millis: Option<f64>) -> String {
    format::time_or_dash(millis)
}

/// Formats minutes and seconds, rounded down.
fn clock(duration: Nanos) -> String {
    let seconds = duration.as_u64() / 1_000_000_000;
    match seconds / 3_600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Truncates a text with an ellipsis if it does not fit.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

// Panels for outcomes, processes, and Plimsoll itself.

/// Height including the frame.
const BOTTOM_HEIGHT: u16 = 8;

/// Dispatch lag from which it is coloured, in milliseconds.
const LATE_MS: f64 = 1.0;

/// Draws the three panels.
fn draw_bottom(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let [left, middle, right] = columns(area, [38, 31, 31]);
    draw_outcomes(model, look, left, buf);
    panel("processes", &processes(model, usize::from(middle.width)), middle, buf);
    panel("Plimsoll itself", &generator(model), right, buf);
}

fn draw_outcomes(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
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
