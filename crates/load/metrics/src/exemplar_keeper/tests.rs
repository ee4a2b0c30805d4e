//! The choice of requests, against a sorted list and by simulation.

use plimsoll_measure::{ConversationKey, GapSummary, Outcome, Timeline};

use super::*;

/// A sort key: from the number of a request, its time to first token and its gap.
type Key = fn(&(u64, u64, u64)) -> u64;

fn at(us: u64) -> Moment {
    Moment::EPOCH + Nanos::from_micros(us)
}

/// A stream that is due at `due` and has its first token after `ttft`, then these gaps, all in
/// microseconds.
fn stream(number: u64, due: u64, ttft: u64, gaps: &[u64]) -> (Sample, Vec<Nanos>) {
    let gaps: Vec<_> = gaps.iter().map(|us| Nanos::from_micros(*us)).collect();
    let sum: u64 = gaps.iter().map(|gap| gap.as_u64()).sum();
    let last = at(due + ttft) + Nanos::new(sum);
    let sample = Sample {
        conversation: ConversationKey::arrival(number),
        stream: true,
        outcome: Outcome::Completed,
        timeline: Timeline {
            dispatched: Some(at(due)),
            first_byte: Some(at(due + ttft)),
            first_token: Some(at(due + ttft)),
            last_token: Some(last),
            finished: Some(last),
            ..Timeline::intended(at(due))
        },
        gaps: GapSummary {
            count: u32::try_from(gaps.len()).unwrap(),
            sum: Nanos::new(sum),
            max: gaps.iter().copied().max().unwrap_or_default(),
            ..GapSummary::default()
        },
        ..Sample::unsent(at(due))
    };
    (sample, gaps)
}

fn keepers(seed: u64, workers: usize) -> Vec<ExemplarKeeper> {
    let ids = IdSeed::new(Seed(seed), "test");
    (0..workers).map(|_| ExemplarKeeper::new(ids, workers)).collect()
}

fn merged(keepers: Vec<ExemplarKeeper>) -> Exemplars {
    let all = keepers.into_iter().reduce(|mut all, more| {
        all.merge(more);
        all
    });
    all.unwrap().finish()
}

/// The conversations that were kept for a reason, ascending.
fn chosen(exemplars: &Exemplars, why: Chosen) -> Vec<u64> {
    let of = exemplars.requests.iter().filter(|of| of.chosen.contains(&why));
    let mut numbers: Vec<_> = of.map(|of| of.sample.conversation.0).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn the_slowest_are_those_of_a_sorted_list_with_any_number_of_workers() {
    for workers in [1, 2, 7] {
        let mut keepers = keepers(3, workers);
        let mut numbers = Seed(9).rng("times", 0);
        let mut known = Vec::new();
        for n in 0..2_000u64 {
            let (ttft, gap) = (1 + numbers.below(1_000_000), 1 + numbers.below(1_000_000));
            let (sample, gaps) = stream(n, n * 10, ttft, &[gap, 5]);
            let worker = usize::try_from(numbers.below(workers as u64)).unwrap();
            keepers[worker].offer(&sample, &gaps, at(u64::MAX / 2_000));
            known.push((n, ttft, gap));
        }
        let found = merged(keepers);
        assert_eq!(found.offered, 2_000);
        let keys: [(Chosen, Key); 3] = [
            (Chosen::ResponseTime, |of| of.1 + of.2 + 5),
            (Chosen::Ttft, |of| of.1),
            (Chosen::LongestGap, |of| of.2),
        ];
        for (why, key) in keys {
            let mut sorted = known.clone();
            sorted.sort_by_key(|of| std::cmp::Reverse(key(of)));
            let mut expected: Vec<_> = sorted[..why.most()].iter().map(|of| of.0).collect();
            expected.sort_unstable();
            assert_eq!(chosen(&found, why), expected, "{why:?} with {workers} workers");
        }
    }
}

/// 20 of 60 requests by 1,200 seeds: each is expected 400 times, with a standard deviation of
/// sqrt(1200 / 3 * 2 / 3) = 16.3. The sum of squared deviations over the variance is distributed
/// like chi-square with 59 degrees of freedom: 59 on average, above 109.8 once in 20,000 times.
#[test]
fn every_request_has_the_same_chance_to_be_a_random_one() {
    let mut counts = [0u32; 60];
    for seed in 0..1_200 {
        let mut keepers = keepers(seed, 3);
        for n in 0..60u64 {
            // The first worker has half of them, and a later one is always slower.
            let worker = if n < 30 { 0 } else { 1 + usize::try_from(n % 2).unwrap() };
            let (sample, gaps) = stream(n, n, 10 + n, &[]);
            keepers[worker].offer(&sample, &gaps, at(0));
        }
        let found = chosen(&merged(keepers), Chosen::Random);
        assert_eq!(found.len(), 20);
        for n in found {
            counts[usize::try_from(n).unwrap()] += 1;
        }
    }
    // For k draws out of n, each cell has the variance p (1 - p), and the cells add up to a fixed
    // number.
    let variance = 1_200.0 * (1.0 / 3.0) * (2.0 / 3.0) * 60.0 / 59.0;
    let sum: f64 = counts.iter().map(|n| (f64::from(*n) - 400.0).powi(2) / variance).sum();
    assert!((20.0..110.0).contains(&sum), "{sum}: {counts:?}");
}

#[test]
fn the_random_ones_are_the_same_with_any_number_of_workers_and_others_with_another_seed() {
    let of = |seed, workers: u64| {
        let mut keepers = keepers(seed, usize::try_from(workers).unwrap());
        for n in 0..500 {
            let (sample, gaps) = stream(n, n, 10, &[]);
            keepers[usize::try_from(n % workers).unwrap()].offer(&sample, &gaps, at(0));
        }
        chosen(&merged(keepers), Chosen::Random)
    };
    assert_eq!(of(1, 1), of(1, 5));
    assert_ne!(of(1, 1), of(2, 1));
}

/// Streams of 10,000 reads, each slower than all before it: every one is kept, and displaces
/// another.
#[test]
fn the_memory_of_all_workers_is_bounded() {
    for workers in [1, 2, 16, 64, 100] {
        let mut keeper = keepers(1, workers).remove(0);
        for n in 0..100 {
            let gaps = vec![100 + n; 10_000];
            let (sample, gaps) = stream(n, n, 1_000 + n, &gaps);
            keeper.offer(&sample, &gaps, at(0));
        }
        let all = keeper.bytes() * workers;
        assert!(all <= 4 << 20, "{all} bytes of {workers} workers");
        let kept = keeper.finish();
        assert!(kept.requests.iter().all(|of| of.reads() == 10_001));
        let reads = kept.requests.iter().map(|of| of.reads_us.len()).max();
        assert!(reads >= Some(16), "{reads:?} of {workers} workers");
    }
}

#[test]
fn warm_up_and_what_was_never_sent_are_left_out_and_what_never_ended_is_slow() {
    let mut keeper = keepers(1, 1).remove(0);
    let (ended, gaps) = stream(1, 0, 5_000, &[1_500, 2_500]);
    keeper.offer(&ended, &gaps, at(9_000));
    keeper.offer(&Sample { warmup: true, ..ended }, &gaps, at(9_000));
    keeper.offer(&Sample::unsent(at(0)), &[], at(9_000));
    let (mut open, _) = stream(2, 100, 0, &[]);
    (open.outcome, open.timeline.finished) = (Outcome::InFlight, None);
    (open.timeline.first_token, open.timeline.last_token) = (None, None);
    keeper.offer(&open, &[], at(500_000));
    let kept = keeper.finish();
    assert_eq!((kept.offered, kept.requests.len()), (2, 2));
    let [first, second] = &kept.requests[..] else { panic!("{kept:?}") };
    assert_eq!(first.reads_us, [0, 1_500, 4_000]);
    assert_eq!(first.chosen, Chosen::ALL);
    assert_eq!(second.chosen, [Chosen::ResponseTime, Chosen::Random]);
    assert_eq!((second.reads(), second.recorded), (0, at(500_000)));
}

#[test]
fn turns_of_one_conversation_are_chosen_apart() {
    let mut together = 0;
    for seed in 0..400 {
        let mut keeper = keepers(seed, 1).remove(0);
        for n in 0..40 {
            for turn in 0..2 {
                let (sample, _) = stream(n, n, 10, &[]);
                keeper.offer(&Sample { turn, ..sample }, &[], at(0));
            }
        }
        let found = chosen(&keeper.finish(), Chosen::Random);
        together += found.windows(2).filter(|pair| pair[0] == pair[1]).count();
    }
    // Both turns of a conversation: 20/80 * 19/79 = 0.0601, of 40 conversations 2.405.
    let mean = together as f64 / 400.0;
    assert!((2.1..2.7).contains(&mean), "{mean}");
}
