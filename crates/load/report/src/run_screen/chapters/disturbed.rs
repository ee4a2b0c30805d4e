//! The windows in which workers did not look at their sockets.

use plimsoll_metrics::{DisturbedWindow, InstrumentHealth};

use crate::format;
use crate::screen::Chapter;

/// Windows that are listed; the others are counted.
const LISTED: usize = 5;

pub(super) fn chapter(health: &InstrumentHealth) -> Chapter {
    let windows = &health.disturbed_windows;
    let mut chapter = Chapter::new("Disturbed windows (Plimsoll was paused)");
    let mut longest: Vec<_> = windows.iter().collect();
    longest.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
    longest.truncate(LISTED);
    longest.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    chapter.texts(longest.iter().map(|window| line(window)));
    let omitted = health.disturbed_windows_omitted.unwrap_or_default();
    let more = (windows.len() - longest.len()) as u64 + omitted;
    if more > 0 {
        chapter.text(&format!("and {} more, shorter ones", format::count(more)));
    }
    chapter
}

fn line(window: &DisturbedWindow) -> String {
    let (length, workers) = (format::time(window.length_s * 1e3), window.workers);
    let plural = if workers == 1 { "" } else { "s" };
    let causes = match window.causes.join(", ") {
        none if none.is_empty() => "cause not known".to_owned(),
        causes => causes,
    };
    let start = window.start_s;
    format!("at {start:.2}s for {length}: {workers} worker{plural}; {causes}")
}
