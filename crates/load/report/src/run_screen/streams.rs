//! The diagnosis of the streams, in plain sentences.

use plimsoll_metrics::{StreamDiagnosis, StreamWord};

use crate::format;

/// `Streams: merged: 18 events a read over 170ms (by the target or a proxy).`
pub(super) fn sentences(streams: &StreamDiagnosis) -> String {
    let mut parts = ends(streams);
    let others = if parts.is_empty() { "" } else { "the others: " };
    let ended_badly = streams.ended_badly();
    let has_others = ended_badly == 0 || ended_badly < streams.begun;
    parts.extend(shape(streams).filter(|_| has_others).map(|shape| format!("{others}{shape}")));
    parts.extend(pauses(streams));
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
            "without TPOT: their usage does not match their content (hidden reasoning, or a cut)",
        ),
    ];
    let ends = ends.into_iter().filter(|(count, _)| *count > 0);
    ends.map(|(count, what)| format!("{} {of} {what}", format::count(count))).collect()
}

/// `200 of 200 stood still for 500ms, while their other gaps are a tenth of that or less`.
fn pauses(streams: &StreamDiagnosis) -> Option<String> {
    let pause = streams.pause_ms.filter(|_| streams.stand_still())?;
    let [paused, judged] = [streams.paused, streams.judged].map(format::count);
    Some(format!(
        "{paused} of {judged} stood still for {} (mean of their longest gaps; all others are at most \
         a tenth of that on average)",
        format::time(pause)
    ))
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
            "stalls of 40ms in {} of {}: Nagle's algorithm with delayed acknowledgements (set \
             TCP_NODELAY at the target or proxy){}",
            format::count(streams.stalled),
            format::count(streams.judged),
            but_late(streams)
        ),
        StreamWord::Mixed => {
            format!("mixed: {} intact, {}", format::count(streams.intact), others(streams)?)
        }
        StreamWord::ReadLate => format!(
            "read late by Plimsoll: {} of {}; how their tokens came is not known, and their ITL is \
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

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(change: impl FnOnce(&mut StreamDiagnosis)) -> String {
        let mut streams = StreamDiagnosis {
            word: StreamWord::Unknown,
            begun: 400,
            judged: 400,
            intact: 0,
            merged: 0,
            buffered_whole: 0,
            stalled: 0,
            read_late: 0,
            cut: 0,
            no_end: 0,
            no_finish_reason: 0,
            fewer_tokens: 0,
            finish_reasons_given: true,
            events_per_read: None,
            over_ms: None,
            paused: 0,
            pause_ms: None,
        };
        change(&mut streams);
        sentences(&streams)
    }

    #[test]
    fn each_diagnosis_is_a_sentence() {
        assert_eq!(streams(|s| s.intact = 400), "Streams: intact.");
        let few = streams(|s| (s.intact, s.merged) = (390, 10));
        assert_eq!(few, "Streams: intact, but 10 merged of 400.");
        let merged = streams(|s| {
            s.merged = 400;
            hold(s, 18.0, 170.2);
        });
        let expected = "Streams: merged: 18 events a read over 170ms (by the target or a proxy).";
        assert_eq!(merged, expected);
        let corked = streams(|s| {
            (s.merged, s.read_late) = (390, 10);
            hold(s, 2.04, 200.0);
        });
        assert_eq!(
            corked,
            "Streams: merged: 2 events a read over 200ms, as TCP_CORK or a retransmission makes it \
             (by the target or a proxy), and 10 read late by Plimsoll."
        );
        let stood =
            |paused| streams(|s| (s.intact, s.paused, s.pause_ms) = (400, paused, Some(512.0)));
        let expected = "Streams: intact; 100 of 400 stood still for 512ms (mean of their longest";
        assert!(stood(100).starts_with(expected), "{}", stood(100));
        assert_eq!(stood(99), "Streams: intact.");
        let stalled = streams(|s| s.stalled = 400);
        let expected = "Streams: stalls of 40ms in 400 of 400: Nagle's algorithm with delayed";
        assert!(stalled.starts_with(expected), "{stalled}");
        let whole = streams(|s| s.buffered_whole = 400);
        assert!(
            whole.starts_with("Streams: buffered whole: every token came at the end"),
            "{whole}"
        );
        let late = streams(|s| (s.intact, s.read_late) = (100, 300));
        let expected = "Streams: read late by Plimsoll: 300 of 400; ";
        assert!(late.starts_with(expected), "{late}");
        let mixed = streams(|s| (s.intact, s.buffered_whole) = (300, 100));
        assert_eq!(mixed, "Streams: mixed: 300 intact, 100 buffered whole of 400.");
    }

    #[test]
    fn bad_ends_come_first_with_their_counts() {
        let cut = streams(|s| (s.cut, s.judged, s.intact) = (12, 388, 388));
        assert_eq!(cut, "Streams: 12 of 400 cut off before their end; the others: intact.");
        let all = streams(|s| (s.cut, s.judged, s.finish_reasons_given) = (400, 0, false));
        assert_eq!(all, "Streams: 400 of 400 cut off before their end.");
        let short = streams(|s| (s.fewer_tokens, s.judged) = (400, 0));
        assert!(!short.contains("the others"), "{short}");
        let hidden = streams(|s| (s.no_finish_reason, s.judged, s.intact) = (3, 397, 397));
        assert!(
            hidden.starts_with("Streams: 3 of 400 ended without a `finish_reason`"),
            "{hidden}"
        );
        let never = streams(|s| (s.intact, s.finish_reasons_given) = (400, false));
        assert!(never.starts_with("Streams: intact; none says why the model stopped"), "{never}");
        let short = streams(|s| s.judged = 0);
        assert_eq!(short, "Streams: too few tokens in each to tell how they came.");
    }

    fn hold(s: &mut StreamDiagnosis, events: f64, over: f64) {
        (s.events_per_read, s.over_ms) = (Some(events), Some(over));
    }
}
