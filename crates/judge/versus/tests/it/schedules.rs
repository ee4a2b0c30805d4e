//! Targets loaded by turns, and interference between targets.

use plimsoll_measure::{Block, Nanos};
use plimsoll_versus::{Figure, Kind, Streams, csv, judge, prometheus};

use crate::screens::{full, texts};
use crate::simulation::{Simulation, direct, microseconds, target};

fn simulation() -> Simulation {
    let mut targets = direct(0.0);
    targets.push(target("a", 143.0));
    Simulation::new(targets)
}

#[test]
fn by_turns_the_window_is_the_unit() {
    let by_turns = Simulation { windows_s: Some(5), ..simulation() };
    let mut blocks = by_turns.blocks();
    // In the closed model, a faster target has more turns.
    for block in blocks.iter_mut().skip(7).step_by(9) {
        block.turns[2] = None;
    }
    let versus = judge(&by_turns.facts(), &blocks);
    let added = versus.difference("a", "direct", Figure::Ttft, Kind::Added, "p50").unwrap();
    assert_eq!(added.batches, Some(12));
    let (low, high) = (microseconds(added.low_ns), microseconds(added.high_ns));
    assert!(low < 143.0 && 143.0 < high, "{low} {high}");
    assert!(versus.disturbance.is_empty());
    // Turns that a never had are no pairs: 666 of 6,000.
    assert_eq!((versus.blocks.recorded, versus.blocks.complete), (6_000, 5_334));
    let short = Simulation { seconds: 35, ..by_turns };
    let versus = judge(&short.facts(), &short.blocks());
    assert!(versus.differences.iter().all(|found| found.value_ns.is_none()));
    let why = versus.differences[0].refused.as_ref().unwrap();
    assert!(why.contains("too few rounds of windows"), "{why}");
}

/// Three rounds of windows of 3 s, in which a adds 60 us less than beside the others.
fn with_windows(less_us: u64) -> Vec<Block> {
    let mut blocks = simulation().blocks();
    for block in &mut blocks {
        let second = block.start.as_u64() / 1_000_000_000;
        if second % 20 < 3 {
            block.window = Some(u32::try_from(second / 20).unwrap());
            let turn = block.turns[2].as_mut().unwrap();
            turn.ttft = turn.ttft.map(|time| time.saturating_sub(Nanos::from_micros(less_us)));
        }
    }
    blocks
}

#[test]
fn targets_that_disturb_each_other_are_named() {
    let versus = judge(&simulation().facts(), &with_windows(60));
    let found = &versus.disturbance[0];
    let (low, high) = (microseconds(found.low_ns), microseconds(found.high_ns));
    assert!(found.matters && low < 60.0 && 60.0 < high && low > 40.0, "{found:?}");
    let text = &texts(&versus)[0];
    assert!(
        text.starts_with("a is ") && text.contains(" slower when loaded with the other targets"),
        "{text}"
    );
    // The windows do not count for the headline.
    assert_eq!(versus.blocks.recorded, 5_100);
    let added = versus.difference("a", "direct", Figure::Ttft, Kind::Added, "p50").unwrap();
    assert!((microseconds(added.value_ns) - 143.0).abs() < 3.0);
    let quiet = judge(&simulation().facts(), &with_windows(0));
    assert!(!quiet.disturbance[0].matters && quiet.findings.is_empty(), "{quiet:?}");
}

/// Whether Nagle's algorithm waits depends on the pace of the requests, not on other targets.
#[test]
fn stalls_of_40_ms_are_not_put_on_the_other_targets() {
    let mut facts = simulation().facts();
    let streams = Streams { begun: 5_200, judged: 5_100, stalled: 4_000, ..Streams::default() };
    facts.targets[2].streams = Some(streams);
    let versus = judge(&facts, &with_windows(60));
    assert!(versus.findings.is_empty(), "{:?}", versus.findings);
    // The measured value stays in the file.
    assert!(versus.disturbance[0].matters);
    // Every output shows the shape, by target.
    let cell = "4,000 stalled 40ms";
    assert!(full(&versus, 120).contains(cell));
    assert!(csv(&versus).lines().any(|line| line.starts_with("a,direct,") && line.contains(cell)));
    let line = "plimsoll_versus_streams{target=\"a\",shape=\"stalled 40ms\"} 4000";
    assert!(prometheus(&versus).contains(line), "{}", prometheus(&versus));
    // A few stalls do not explain the difference.
    facts.targets[2].streams = Some(Streams { stalled: 40, ..streams });
    assert_eq!(judge(&facts, &with_windows(60)).findings.len(), 1);
}
