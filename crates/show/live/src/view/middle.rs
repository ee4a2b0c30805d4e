//! Stages and rates on the left, times over the last two minutes on the right.

use plimsoll_measure::Nanos;
use plimsoll_report::format::{count, difference, digits, time as time_words};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Widget as _};

use super::{
    BAD, BOLD, DIM, ODD, P50, P99, clock, columns, cut, figure, framed, panel, rows, time,
};
use crate::model::{
    Difference, Look, Model, Planned, Point, SECONDS, Spread, StageFacts, UpperEnd, Which, parts,
};

/// Height of the panel of rates, including its frame.
const RATES: u16 = 7;
/// Minimum height of a chart in lines.
const FEWEST_LINES: u16 = 4;

/// Draws the three panels.
pub(super) fn draw(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let [left, right] = columns(area, [38, 62]);
    // Stages take the lines that they need, and leave the rest to the rates.
    let wanted = u16::try_from(model.facts.stages.len() + 2).unwrap_or(u16::MAX);
    let room = Some(left.height.saturating_sub(RATES)).filter(|room| *room > 2).unwrap_or(0);
    let [stages, rates] = rows(left, [wanted.min(room), u16::MAX]);
    draw_stages(model, stages, buf);
    draw_rates(model, look, rates, buf);
    draw_times(model, look, right, buf);
}

fn draw_stages(model: &Model, area: Rect, buf: &mut Buffer) {
    let room = usize::from(area.height.saturating_sub(2));
    let width = usize::from(area.width.saturating_sub(4));
    let stages = &model.facts.stages;
    // The current stage is always shown, with the one before it.
    let first = model.stage.saturating_sub(1).min(stages.len().saturating_sub(room));
    let shown = stages.iter().enumerate().skip(first).take(room);
    let content: Vec<_> =
        shown.map(|(index, stage)| stage_line(model, index, stage, width)).collect();
    let title = match stages.len() {
        count if count > room => format!("stages ({count})"),
        _ => "stages".to_owned(),
    };
    panel(&title, &content, area, buf);
}

fn stage_line<'a>(model: &Model, index: usize, stage: &StageFacts, width: usize) -> Line<'a> {
    let present = index == model.stage && model.elapsed < stage.end && model.begun;
    let length = stage.end.saturating_sub(stage.start);
    let warmup = if stage.warmup { "warm-up " } else { "" };
    let requests = model.requests().filter(|_| !stage.warmup);
    let (mark, state, style) = if model.begun && model.elapsed >= stage.end {
        ("✓", String::new(), DIM)
    } else if present {
        let gone = model.elapsed.saturating_sub(stage.start);
        let of_time = format!("{warmup}{} of {}", clock(gone), clock(length));
        ("▶", requests.unwrap_or(of_time), BOLD)
    } else {
        ("·", requests.unwrap_or_else(|| format!("{warmup}{}", clock(length))), DIM)
    };
    let name = cut(&stage.name, width.saturating_sub(state.chars().count() + 3));
    let gap = width.saturating_sub(name.chars().count() + state.chars().count() + 2);
    Line::styled(format!("{mark} {name}{}{state}", " ".repeat(gap)), style)
}

fn draw_rates(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let Some(part) = model.part(look) else { return };
    let last = part.history.last();
    let mut content = vec![];
    if look.part == 0 {
        content.push(planned(model, last.planned));
        content.push(figure("sent", format!("{}/s", digits(model.sent)), BOLD));
    }
    content.push(figure("completed", format!("{}/s", digits(last.completed)), BOLD));
    if look.part == 0 {
        content.push(figure("in flight", count(model.in_flight), BOLD));
    }
    if last.tokens > 0.0 {
        content.push(figure("tokens out", format!("{}/s", digits(last.tokens)), BOLD));
    }
    panel(&part.titled("last second"), &content, area, buf);
}

/// The planned load of the current stage.
fn planned<'a>(model: &Model, rate: f64) -> Line<'a> {
    match model.planned() {
        Planned::Requests => figure("planned", format!("{}/s", digits(rate)), BOLD),
        Planned::Users(users) => figure("planned", format!("{users} at once"), BOLD),
        Planned::Nothing => figure("planned", "nothing more".to_owned(), DIM),
    }
}

/// Draws times over time, and the figures of the last second.
pub(super) fn draw_times(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let Some(part) = model.part(look).filter(|_| area.height > 2 && area.width > 30) else {
        return;
    };
    let title = part.titled(&format!("{}, second by second", model.facts.time.title()));
    let inner = framed(&cut(&title, usize::from(area.width).saturating_sub(6)), area, buf);
    let [chart, last] = rows(inner, [u16::MAX, 1]);
    let points: Vec<_> = part.history.points.iter().copied().collect();
    let span = model.facts.duration().as_secs_f64().clamp(20.0, SECONDS as f64);
    // With fewer lines, the two curves would coincide.
    if chart.height >= FEWEST_LINES {
        draw_chart(&points, span, chart, buf);
    }
    let now = part.history.last();
    let mut spans = vec![Span::styled(" ", DIM)];
    spans.extend(percentile_spans("", now.time));
    if now.ttft.is_some() {
        spans.extend(percentile_spans("  TTFT ", now.ttft));
    }
    super::panel_lines(&[Line::from(spans)], last, buf);
}

fn percentile_spans<'a>(name: &str, values: Option<Spread>) -> [Span<'a>; 4] {
    let (p50, upper, upper_name) = parts(values);
    [
        Span::styled(format!("{name}p50 "), DIM),
        Span::styled(time(p50), P50),
        Span::styled(format!(" {upper_name} "), DIM),
        Span::styled(time(upper), P99),
    ]
}

/// Draws medians and upper ends on a logarithmic axis, with the last second on the right.
fn draw_chart(points: &[Point], span: f64, area: Rect, buf: &mut Buffer) {
    let end = points.last().map_or(0.0, |point| point.at_s);
    let of_points = |of: &dyn Fn(Spread) -> Option<f64>| -> Vec<(f64, f64)> {
        points
            .iter()
            .filter_map(|point: &Point| {
                Some((point.at_s - end, of(point.time?)?.max(1e-6).log10()))
            })
            .collect()
    };
    // The whole line shows the same statistic as the last second's figures below it.
    let upper_end = UpperEnd::of_all(points.last().map(|point| point.time).into_iter());
    let (p50, upper) = (of_points(&|all| Some(all.p50)), of_points(&|all| all.upper(upper_end)));
    let values = p50.iter().chain(&upper).map(|(_, value)| *value);
    let Some((low, high)) = values.clone().reduce(f64::min).zip(values.reduce(f64::max)) else {
        let text = Line::styled("  no request completed yet", DIM);
        super::panel_lines(&[text], area, buf);
        return;
    };
    // At least a factor of two, so that noise does not look like a change.
    let middle = f64::midpoint(low, high);
    let half = (f64::midpoint(high, -low) * 1.1).max(0.15);
    let (low, high) = (middle - half, middle + half);
    let sets = [(&upper, P99), (&p50, P50)].map(|(data, style)| {
        let set = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line);
        set.style(style).data(data)
    });
    let [start, half_way] =
        [span, span / 2.0].map(|ago| format!("-{}", clock(Nanos::from_secs_f64(ago))));
    let times = [start, half_way, "now".to_owned()].map(|text| Span::styled(text, DIM));
    let values = [low, middle, high]
        .map(|at| Span::styled(format!("{:>6}", time_words(10_f64.powf(at))), DIM));
    Chart::new(sets.to_vec())
        .x_axis(Axis::default().bounds([-span, 0.0]).labels(times).style(DIM))
        .y_axis(Axis::default().bounds([low, high]).labels(values).style(DIM))
        .render(area, buf);
}

// The targets of a comparison, and their differences so far.

/// Height of the panel including its frame; 0 without a comparison.
pub(super) fn height(model: &Model, available: u16) -> u16 {
    if !model.facts.compares {
        return 0;
    }
    let lines = model.facts.targets.len() + 1 + between(model).count();
    // The figures above need room too.
    u16::try_from(lines + 2).unwrap_or(u16::MAX).min(available.saturating_sub(24))
}

/// Differences between two targets other than the reference.
fn between(model: &Model) -> impl Iterator<Item = &Difference> {
    let reference = reference(model);
    model.differences.iter().filter(move |found| Some(found.reference) != reference)
}

/// The reference, with which the others are compared.
fn reference(model: &Model) -> Option<usize> {
    model.differences.first().map(|first| first.reference)
}

/// Draws the panel.
pub(super) fn draw_targets(model: &Model, area: Rect, buf: &mut Buffer) {
    if area.height < 3 {
        return;
    }
    let name = |index: usize| model.facts.targets.get(index).map_or("", String::as_str);
    let figure = model.differences.first().map_or("", |first| first.figure.as_str());
    let upper = upper_end(model);
    let upper_name = format!("{} now", upper.name());
    let against = reference(model).map_or("the reference", name);
    let mut content = vec![Line::styled(
        format!(
            "{:<16} {:>10} {:>9} {:>9} {:>8}   {figure} added to {against}",
            "", "completed", "p50 now", upper_name, "failed"
        ),
        DIM,
    )];
    content.extend((0..model.facts.targets.len()).map(|target| line(model, target, upper)));
    content.extend(between(model).map(|found| {
        let words = format!("{} against {}: ", name(found.target), name(found.reference));
        Line::from(vec![Span::styled(words, DIM), Span::styled(added(found), BOLD)])
    }));
    panel("targets; intervals are always-valid, from 20 s on", &content, area, buf);
}

fn line<'a>(model: &Model, target: usize, upper: UpperEnd) -> Line<'a> {
    let name = model.facts.targets.get(target).map_or("", String::as_str);
    let part = model.parts.iter().find(|part| part.which == Which::Target(target));
    let history = part.map(|part| &part.history);
    let counters = history.map(|history| history.counters).unwrap_or_default();
    let now = history.and_then(|history| history.last().time);
    let failed = counters.failed + counters.timed_out;
    let found = model.differences.iter().find(|found| found.target == target);
    let found = found.filter(|found| Some(found.reference) == reference(model));
    let out = model.taken_out.get(target).copied().flatten();
    let (words, style) = out.map_or_else(
        || (found.map_or_else(|| "-".to_owned(), added), BOLD),
        |at| (format!("taken out after {:.0} s", at.as_secs_f64()), ODD),
    );
    let p50 = time(now.map(|now| now.p50));
    let upper = time(now.and_then(|now| now.upper(upper)));
    Line::from(vec![
        Span::styled(format!("{:<16} ", cut(name, 16)), BOLD),
        Span::raw(format!("{:>10} {p50:>9} {upper:>9} ", count(counters.completed))),
        Span::styled(format!("{:>8}", count(failed)), if failed > 0 { BAD } else { Style::new() }),
        Span::styled(format!("   {words}"), style),
    ])
}

/// The upper end that every target's last second has, because a column shows a single statistic.
fn upper_end(model: &Model) -> UpperEnd {
    let targets = model.parts.iter().filter(|part| matches!(part.which, Which::Target(_)));
    UpperEnd::of_all(targets.map(|part| part.history.last().time))
}

/// The median difference with its interval.
fn added(found: &Difference) -> String {
    found.millis.map_or_else(|| "-".to_owned(), |[value, low, high]| difference(value, low, high))
}
