//! The closed model: windows of virtual users compared with the line that determines their number.

use plimsoll_measure::{Nanos, Seed};
use plimsoll_schedule::{ActiveWindow, Arrivals, Schedule};
use proptest::prelude::*;

fn schedule(stages: &str) -> Schedule {
    Schedule::new(&stages.parse().unwrap(), Arrivals::Constant, Seed(0), None).unwrap()
}

fn millis(schedule: &Schedule, vu: u32) -> Vec<(u64, u64)> {
    let ms = |at: Nanos| at.as_u64() / 1_000_000;
    schedule.windows(vu).iter().map(|window| (ms(window.from), ms(window.to))).collect()
}

#[test]
fn virtual_users_are_active_while_the_line_is_above_them() {
    for (sentence, stages, vu, expected) in [
        ("constant: all the time", "3:2s", 2, vec![(0, 2_000)]),
        ("constant: no further user", "3:2s", 3, vec![]),
        ("a ramp starts with its first number", "1..11:10s", 0, vec![(0, 10_000)]),
        ("the second joins at 1.5", "1..11:10s", 1, vec![(500, 10_000)]),
        ("the last joins at 10.5", "1..11:10s", 10, vec![(9_500, 10_000)]),
        ("a falling line stops the last first", "11..1:10s", 10, vec![(0, 500)]),
        ("then the second, last of all", "11..1:10s", 1, vec![(0, 9_500)]),
        ("the first never stops", "11..1:10s", 0, vec![(0, 10_000)]),
        ("a ramp from zero", "0..2:4s", 0, vec![(1_000, 4_000)]),
        ("adjacent stages make one window", "2:1s,w5:1s,1..3:2s", 0, vec![(0, 4_000)]),
        ("a break makes two", "2:1s,1:1s,2:1s", 1, vec![(0, 1_000), (2_000, 3_000)]),
        ("open stages are breaks", "2:1s,@9:1s,2:1s", 0, vec![(0, 1_000), (2_000, 3_000)]),
        ("a ramp joins on to what follows", "1..3:2s,3:1s", 2, vec![(1_500, 3_000)]),
        ("up and down", "0..4:4s,4..0:4s", 3, vec![(3_500, 4_500)]),
    ] {
        assert_eq!(millis(&schedule(stages), vu), expected, "{sentence}");
    }
}

#[test]
fn the_peak_of_virtual_users_is_the_highest_end() {
    for (stages, expected) in [("3:1s,1..9:1s,5:1s", 9), ("7..2:1s", 7), ("@5:1s", 0)] {
        assert_eq!(schedule(stages).max_virtual_users(), expected, "{stages}");
    }
}

fn active(windows: &[Vec<ActiveWindow>], at: Nanos) -> usize {
    windows
        .iter()
        .flatten()
        .filter(|window: &&ActiveWindow| window.from <= at && at < window.to)
        .count()
}

proptest! {
    #[test]
    fn as_many_are_active_as_the_line_rounded(
        from in 0u32..60, to in 1u32..60, secs in 1u64..100, share in 0.0f64..1.0,
    ) {
        let schedule = schedule(&format!("{from}..{to}:{secs}s"));
        let windows: Vec<_> = (0..60).map(|vu| schedule.windows(vu)).collect();
        let line = f64::from(from) + (f64::from(to) - f64::from(from)) * share;
        // Very close to a crossing, either side is right.
        prop_assume!((line.fract() - 0.5).abs() > 1e-6);
        let at = Nanos::from_secs(secs).scale(share);
        prop_assert!((active(&windows, at) as f64 - line.round()).abs() < 0.5);
    }

    #[test]
    fn the_time_of_all_users_is_the_area_under_the_line(
        from in 0u32..60, to in 1u32..60, secs in 1u64..100,
    ) {
        let schedule = schedule(&format!("{from}..{to}:{secs}s"));
        let spent: f64 = (0..60)
            .flat_map(|vu| schedule.windows(vu))
            .map(|window| window.to.saturating_sub(window.from).as_secs_f64())
            .sum();
        let area = f64::from(from + to) / 2.0 * secs as f64;
        prop_assert!((spent - area).abs() < 1e-6, "{} {}", spent, area);
    }

    #[test]
    fn windows_are_in_order_and_never_touch(
        ends in proptest::collection::vec((0u32..9, 1u32..9, any::<bool>()), 1..6), vu in 0u32..9,
    ) {
        let stages: Vec<_> = ends
            .iter()
            .map(|(a, b, open)| if *open { "@1:1s".to_owned() } else { format!("{a}..{b}:1s") })
            .collect();
        let windows = schedule(&stages.join(",")).windows(vu);
        prop_assert!(windows.iter().all(|window| window.from < window.to));
        prop_assert!(windows.windows(2).all(|pair| pair[0].to < pair[1].from));
    }
}
