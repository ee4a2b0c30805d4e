//! The diagnosis of the streams, in plain sentences.

use plimsoll_metrics::{StreamDiagnosis, StreamWord};

use super::format;

/// `Streams: merged: 18 events a read over 170ms (by the target or a proxy).`
pub(super) fn sentences(streams: &StreamDiagnosis) -> String {
    let mut parts = ends(streams);
    let others = if parts.is_empty() { "" } else { "the others: " };
    parts.extend(shape(streams).map(|shape| format!("{others}{shape}")));
    if !streams.finish_reasons_given && streams.begun > streams.cut {
        parts.push(
            "none says why the model stopped (`finish_reason`), so one that was cut before a gateway \
             ended it looks whole"
                .to_owned(),
        );
    }
    format!("Streams: {}.", parts.join("; "))
}

/// The bad ends, whatever their number.
fn ends(streams: &StreamDiagnosis) -> Vec<String> {
    let of = format!("of {}", format::count(streams.begun));
    let ends = [
        (streams.cut, "cut off before their end"),
        (streams.no_end, "without an end in time"),
        (streams.no_finish_reason, "ended without a `finish_reason`, as streams do that were cut"),
        (
            streams.fewer_tokens,
            "with fewer tokens than their own usage says (or with reasoning that it does not show)",
        ),
    ];
    let ends = ends.into_iter().filter(|(count, _)| *count > 0);
    ends.map(|(count, what)| format!("{} {of} {what}", format::count(count))).collect()
}

fn shape(streams: &StreamDiagnosis) -> Option<String> {
    Some(match streams.shape() {
        StreamWord::Intact => match others(streams) {
            None => "intact".to_owned(),
            Some(others) => format!("intact, but {others}"),
        },
        StreamWord::Merged => {
            format!("merged: {} (by the target or a proxy){}", held(streams), but_late(streams))
        }
        StreamWord::BufferedWhole => format!(
            "buffered whole: every token came at the end, in one piece, so TTFT is the end (by the \
             target, a proxy or a cache){}",
            but_late(streams)
        ),
        StreamWord::Stalled => format!(
            "stalls of 40ms: Nagle's algorithm with delayed acknowledgements ({}; set TCP_NODELAY at \
             the target or proxy){}",
            held(streams),
            but_late(streams)
        ),
        StreamWord::Mixed => {
            format!("mixed: {} intact, {}", format::count(streams.intact), others(streams)?)
        }
        StreamWord::ReadLate => format!(
            "{} of {} read late by Plimsoll: how their tokens came is not known, and their ITL is \
             not the target's",
            format::count(streams.read_late),
            format::count(streams.judged)
        ),
        // Not a shape: the bad ends say it, or nothing can be said.
        _ if streams.judged == 0 && streams.begun > streams.cut + streams.no_end => {
            "too few tokens in each to tell how they came".to_owned()
        }
        _ => return None,
    })
}

/// `18 events a read over 170ms`.
fn held(streams: &StreamDiagnosis) -> String {
    let events = streams.events_per_read.unwrap_or_default();
    let events = if events < 9.95 { format!("{events:.1}") } else { format!("{events:.0}") };
    let events = events.trim_end_matches(".0");
    let over = streams.over_ms.unwrap_or_default();
    let mut held = format!("{events} events a read over {}", format::time(over));
    // 200 ms is also a limit of TCP itself.
    if (190.0..=215.0).contains(&over) {
        held.push_str(", as TCP_CORK or a retransmission makes it");
    }
    held
}

/// Streams of another shape than `intact`, by shape.
fn others(streams: &StreamDiagnosis) -> Option<String> {
    let others = [
        (streams.merged, "merged"),
        (streams.buffered_whole, "buffered whole"),
        (streams.stalled, "with stalls of 40ms"),
        (streams.read_late, "read late by Plimsoll"),
    ];
    let others: Vec<_> = others
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", format::count(count)))
        .collect();
    (!others.is_empty())
        .then(|| format!("{} of {}", others.join(", "), format::count(streams.judged)))
}

fn but_late(streams: &StreamDiagnosis) -> String {
    match streams.read_late {
        0 => String::new(),
        late => format!(", and {} read late by Plimsoll", format::count(late)),
    }
}
