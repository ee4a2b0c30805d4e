//! Runs whose generator was late, with truths that are computed here: what the report must not
//! print as the target's.

use plimsoll_measure::{GeneratorShare, LateRead, Moment, Nanos, Outcome, Sample, StageId};
use plimsoll_metrics::catalog::RATES;
use plimsoll_metrics::{
    BoundedFigure, DistributionSummary, Group, InstrumentHealth, Judgement, Level, Limit,
    LoadModel, Metric, QUANTILES, Recorder, Refusal, RunEnd, RunMetadata, RunSummary, Snapshot,
    StageInfo, ThresholdResult,
};

use crate::support::sample;

/// A run whose samples are given in the order of their ends, in microseconds.
struct Run {
    stages: Vec<StageInfo>,
    recorder: Recorder,
    snapshot: Snapshot,
    second: u64,
}

fn stage(name: &str, model: LoadModel, start_s: f64, duration_s: f64) -> StageInfo {
    StageInfo { name: name.to_owned(), model, start_s, duration_s, ..StageInfo::default() }
}

fn us(us: u64) -> Moment {
    Moment::EPOCH + Nanos::from_micros(us)
}

impl Run {
    fn new(stages: Vec<StageInfo>) -> Self {
        let recorder = Recorder::new(
            stages
                .iter()
                .map(|stage: &StageInfo| {
                    Moment::EPOCH + Nanos::from_secs_f64(stage.start_s + stage.duration_s)
                })
                .collect(),
        );
        Self { stages, recorder, snapshot: Snapshot::new(), second: 0 }
    }

    fn add(&mut self, sample: &Sample, gaps: &[Nanos], late_reads: &[LateRead]) {
        let second =
            sample.timeline.finished.map_or(self.second, |at| at.as_nanos() / 1_000_000_000);
        if std::mem::replace(&mut self.second, second) != second {
            self.snapshot.append(self.recorder.take());
        }
        self.recorder.scheduled(sample.stage, sample.scenario, sample.target);
        self.recorder.record(sample, gaps, late_reads);
    }

    fn judge(mut self, thresholds: &[(&str, &str)]) -> RunSummary {
        self.snapshot.append(self.recorder.take());
        let metadata = RunMetadata {
            stages: self.stages,
            scenarios: vec!["simple".to_owned()],
            targets: vec![plimsoll_metrics::TargetInfo::default()],
            ..RunMetadata::default()
        };
        let metadata = RunMetadata {
            run: plimsoll_metrics::RunInfo { ended: RunEnd::Complete, ..metadata.run },
            ..metadata
        };
        let thresholds: Vec<_> = thresholds
            .iter()
            .map(|(metric, bound): &(&str, &str)| Limit::parse(metric, bound).unwrap())
            .collect();
        RunSummary::build(metadata, InstrumentHealth::default(), &self.snapshot, &thresholds)
            .unwrap()
    }
}

/// A request of a stage: intended, dispatched and ended at these microseconds, of which the
/// generator added `own` to the dispatch.
fn request(stage: u16, [intended, dispatched, finished, own]: [u64; 4]) -> Sample {
    let mut sample = sample(stage, 0, 1, Outcome::Completed);
    let line = &mut sample.timeline;
    (line.intended, line.dispatched) = (us(intended), Some(us(dispatched)));
    (line.first_byte, line.finished) = (Some(us(finished)), Some(us(finished)));
    (line.first_token, line.first_output_token, line.last_token) = (None, None, None);
    sample.generator =
        GeneratorShare { dispatch: Nanos::from_micros(own), ..GeneratorShare::default() };
    sample
}

fn figure(group: &Group, metric: Metric, label: &str) -> BoundedFigure {
    let quantile = QUANTILES.iter().find(|quantile| quantile.label == label).unwrap();
    group.distribution(metric).unwrap().figure(quantile).unwrap()
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected.abs() * 0.002
}

fn why(threshold: &ThresholdResult) -> &str {
    match &threshold.judgement {
        Judgement::Inconclusive(why) => why,
        other => unreachable!("{other:?}"),
    }
}

fn violations(summary: &RunSummary) -> Vec<u16> {
    summary.of_level(Level::Invalid).map(|finding| finding.code).collect()
}

/// Requests every 0.5 ms; the generator manages one each ms, so it is later and later, and sends a
/// half of them when the stage is over. The target takes 0.2 ms.
#[test]
fn t_1_a_generator_that_falls_behind_makes_the_run_invalid_though_the_limit_was_full() {
    let mut run = Run::new(vec![stage("@2000:4s", LoadModel::Open, 0.0, 4.0)]);
    for i in 0..8_000 {
        let (intended, dispatched) = (i * 500, i * 1_000);
        let own = dispatched - intended;
        run.add(&request(0, [intended, dispatched, dispatched + 200, own]), &[], &[]);
    }
    let summary = run.judge(&[("response_time", "p(50)<5s"), ("service_time", "p(50)<1ms")]);
    let total = &summary.results.total;
    let median = figure(total, Metric::ResponseTime, "p50");
    // The 4,000th is 2 s late; without the generator it would have taken 0.2 ms.
    assert!(is_near(median.value, 2_000.0) && is_near(median.bound, 1_999.5), "{median:?}");
    assert_eq!(median.refused, Some(Refusal::Generator));
    assert_eq!(figure(total, Metric::ServiceTime, "p50").refused, None);
    assert_eq!(violations(&summary), [102, 101]);
    // It took 2 s at most, whatever was the generator's.
    assert_eq!(summary.thresholds[0].judgement, Judgement::Pass);
    assert_eq!(summary.thresholds[1].judgement, Judgement::Pass);
}

/// A long warm-up in time, then a measured stage of 5 s at 20/s whose target takes exactly 300 ms;
/// the generator stands still for 1.4 s of it.
#[test]
fn t_2_a_warm_up_does_not_dilute_what_the_generator_did_in_the_measured_stage() {
    let warmup = stage("w@400:12s", LoadModel::Open, 0.0, 12.0);
    let warmup = StageInfo { warmup: true, ..warmup };
    let mut run = Run::new(vec![warmup, stage("@20:5s", LoadModel::Open, 12.0, 5.0)]);
    for i in 0..4_800 {
        let at = i * 2_500;
        run.add(&request(0, [at, at, at + 300_000, 0]), &[], &[]);
    }
    let mut response_times = Vec::new();
    for i in 0..100 {
        let at = 12_000_000 + i * 50_000;
        let stopped = 14_000_000..15_400_000;
        let dispatched = if stopped.contains(&at) { stopped.end } else { at };
        response_times.push((dispatched + 300_000 - at) as f64 / 1e3);
        run.add(&request(1, [at, dispatched, dispatched + 300_000, dispatched - at]), &[], &[]);
    }
    response_times.sort_by(f64::total_cmp);
    let summary = run.judge(&[("response_time", "p(90)<1s"), ("response_time", "med<310ms")]);
    let p90 = figure(&summary.results.by_stage[1], Metric::ResponseTime, "p90");
    assert!(is_near(p90.value, response_times[89]), "{p90:?} {}", response_times[89]);
    assert!(is_near(p90.bound, response_times[89] - 300.0), "{p90:?}");
    assert_eq!(p90.refused, Some(Refusal::Generator));
    assert!(why(&summary.thresholds[0]).contains("error up to 900 ms"), "{:?}", summary.thresholds);
    // The median is 300 ms with or without the generator: the run stays valid, and is judged.
    assert_eq!(summary.thresholds[1].judgement, Judgement::Pass);
    assert!(summary.is_valid(), "{:?}", summary.findings);
    assert_eq!(summary.results.by_stage[1].refused_rates.len(), 0);
}

/// Streams of 5 s with an event each 10 ms, the first after 24.6 ms; the generator is stopped for
/// 90 ms of every 400, and reads what came meanwhile when it goes on.
#[test]
fn t_3_long_streams_do_not_hide_late_first_tokens_and_gaps() {
    let mut run = Run::new(vec![stage("8:60s", LoadModel::Closed, 0.0, 60.0)]);
    let read_at = |at: u64| if at % 400_000 < 90_000 { at - at % 400_000 + 90_000 } else { at };
    let (mut firsts, mut all_gaps) = (Vec::new(), Vec::new());
    for i in 0..400 {
        // Begins spread over the whole period, as 400 is no multiple of 137.
        let begin = 400_000 + i * 137_000;
        let sent: Vec<_> = (0..500).map(|event| begin + 24_600 + event * 10_000).collect();
        let (mut reads, mut events): (Vec<u64>, Vec<u32>) = (Vec::new(), Vec::new());
        for at in sent.iter().map(|at| read_at(*at)) {
            if reads.last() == Some(&at) {
                *events.last_mut().unwrap() += 1;
            } else {
                reads.push(at);
                events.push(1);
            }
        }
        // The worker knows only that it did not look for 90 ms.
        let earlier =
            |at: u64| if at % 400_000 == 90_000 { Nanos::from_micros(90_000) } else { Nanos::ZERO };
        let late: Vec<_> = (0..reads.len())
            .filter(|&read| earlier(reads[read]) > Nanos::ZERO)
            .map(|read| LateRead {
                gap: u32::try_from(read).unwrap().checked_sub(1),
                events: events[read],
                earlier_by: earlier(reads[read]),
                last_earlier_by: earlier(reads[read]),
            })
            .collect();
        let gaps: Vec<_> =
            reads.windows(2).map(|two| Nanos::from_micros(two[1] - two[0])).collect();
        let mut stream = request(0, [begin, begin, *reads.last().unwrap(), 0]);
        stream.timeline.first_byte = Some(us(reads[0]));
        stream.timeline.first_token = Some(us(reads[0]));
        stream.timeline.last_token = stream.timeline.finished;
        let by = earlier(reads[0]);
        stream.generator.first_byte = by;
        stream.generator.first_token = by;
        firsts.push((reads[0] - begin) as f64 / 1e3);
        all_gaps.extend(gaps.iter().map(|gap| gap.as_millis_f64()));
        run.add(&stream, &gaps, &late);
    }
    let nearest_rank = |values: &mut Vec<f64>, percent: usize| {
        values.sort_by(f64::total_cmp);
        values[(percent * values.len()).div_ceil(100) - 1]
    };
    let summary = run.judge(&[("ttft", "p(95)<50ms"), ("itl", "p(99)<50ms")]);
    let stage = &summary.results.by_stage[0];
    let p95 = figure(stage, Metric::Ttft, "p95");
    // Measured 90 ms or more for a truth of 24.6 ms.
    assert!(is_near(p95.value, nearest_rank(&mut firsts, 95)) && p95.value > 90.0, "{p95:?}");
    assert!(p95.value - p95.bound < 24.7, "{p95:?}");
    assert_eq!(p95.refused, Some(Refusal::Generator));
    let p99 = figure(stage, Metric::Itl, "p99");
    assert!(is_near(p99.value, nearest_rank(&mut all_gaps, 99)) && p99.value > 80.0, "{p99:?}");
    assert!((8.0..30.0).contains(&(p99.value - p99.bound)), "{p99:?}");
    assert_eq!(p99.refused, Some(Refusal::Generator));
    for threshold in &summary.thresholds {
        assert!(why(threshold).contains("too uncertain"));
    }
    // The medians are the target's: 24.6 and 10 ms.
    assert_eq!(figure(stage, Metric::Ttft, "p50").refused, None);
    assert!(is_near(figure(stage, Metric::Itl, "p50").value, 10.0));
    assert_eq!(figure(stage, Metric::Itl, "p50").refused, None);
    assert!(summary.is_valid(), "{:?}", summary.findings);
}

/// Two users and a target of 20 ms; the generator stands still from 3 to 5 s of 8.
#[test]
fn t_4_a_closed_loop_that_the_generator_held_up_has_a_rate_with_its_limit() {
    let closed = stage("2:8s", LoadModel::Closed, 0.0, 8.0);
    let mut run = Run::new(vec![StageInfo { users: Some(2.0), ..closed }]);
    let (mut sent, stopped) = (0, 3_000_000..5_000_000);
    let mut free = 0;
    while free < 8_000_000 {
        let dispatched = if stopped.contains(&free) { stopped.end } else { free };
        for _user in 0..2 {
            run.add(
                &request(0, [free, dispatched, dispatched + 20_000, dispatched - free]),
                &[],
                &[],
            );
            sent += 1;
        }
        free = dispatched + 20_000;
    }
    let summary = run.judge(&[("achieved_rate", ">=90"), ("error_rate", "<1%")]);
    let rate = RATES.iter().find(|rate| rate.name == "achieved_rate").unwrap();
    let rate = summary.results.by_stage[0].rate(rate).unwrap();
    // 2 of 8 s were the generator's: 75/s were measured where the target gives 100/s.
    assert!(is_near(rate.value, f64::from(sent) / 8.0) && is_near(rate.value + rate.bound, 100.0));
    assert_eq!(rate.refused, Some(Refusal::Generator));
    assert_eq!(violations(&summary), [0; 0]);
    let why = why(&summary.thresholds[0]);
    assert!(why.contains("up to 25.0/s more without the generator"), "{why}");
    assert_eq!(summary.thresholds[1].judgement, Judgement::Pass);
}

/// Two users and a target of 20 ms; of 283 requests each, 11 are 30 ms late. That takes 5.5 % of
/// 6 s. A Poisson process of as many requests would leave its rate unknown by 8 %, but users are
/// none.
#[test]
fn short_stops_of_a_closed_loop_that_add_up_refuse_its_rate() {
    let closed = stage("2:6s", LoadModel::Closed, 0.0, 6.0);
    let mut run = Run::new(vec![StageInfo { users: Some(2.0), ..closed }]);
    let mut free = 0;
    for cycle in 1.. {
        let late = if cycle % 24 == 0 { 30_000 } else { 0 };
        if free + late + 20_000 >= 6_000_000 {
            break;
        }
        for _user in 0..2 {
            run.add(&request(0, [free, free + late, free + late + 20_000, late]), &[], &[]);
        }
        free += late + 20_000;
    }
    let summary = run.judge(&[]);
    let rate = RATES.iter().find(|rate| rate.name == "throughput").unwrap();
    let rate = summary.results.by_stage[0].rate(rate).unwrap();
    assert!((rate.bound / rate.value - 0.055 / 0.945).abs() < 0.000_1, "{rate:?}");
    assert_eq!(rate.refused, Some(Refusal::Generator));
}

/// 20 users; 280 requests take up to 13 ms, then each of the users hangs: 6.7 % had no end. A
/// generator that is late by 4 ms changes nothing of that.
#[test]
fn t_5_a_percentile_that_hanging_requests_would_change_is_unknown() {
    for late in [0, 4_000] {
        let summary = twenty_users_hang(late);
        // p95 is unknown, p90 is not, and p94 neither if it is asked for.
        for unknown in [0, 2, 3] {
            assert!(why(&summary.thresholds[unknown]).contains("without an end"), "{late}");
        }
        assert_eq!(summary.thresholds[1].judgement, Judgement::Pass);
        assert_eq!(summary.thresholds[4].judgement, Judgement::Pass);
        let times = summary.results.total.distribution(Metric::ResponseTime).unwrap();
        assert_eq!((times.unfinished, times.refused.get("p95")), (20, Some(&Refusal::Censored)));
    }
}

fn twenty_users_hang(late: u64) -> RunSummary {
    let closed = stage("20:12s", LoadModel::Closed, 0.0, 12.0);
    let mut run = Run::new(vec![StageInfo { users: Some(20.0), ..closed }]);
    for i in 0..280 {
        let at = i * 1_000;
        run.add(&request(0, [at, at + late, at + late + 10_000 + 10 * i, late]), &[], &[]);
    }
    for i in 0..20 {
        let mut hung = request(0, [300_000 + i, 300_000 + i, 300_000 + i, 0]);
        hung.outcome = Outcome::InFlight;
        hung.timeline =
            plimsoll_measure::Timeline { finished: None, first_byte: None, ..hung.timeline };
        run.add(&hung, &[], &[]);
    }
    let bounds = ["p(95)<50ms", "p(90)<50ms", "p(94)<50ms", "max<1s", "p(50)<50ms"];
    run.judge(&bounds.map(|bound| ("response_time", bound)))
}

/// Every request 0.3 ms late for a target of 20 ms: printed beside the figure, and nothing else.
#[test]
fn a_small_part_of_the_generator_is_printed_and_refuses_nothing() {
    let mut run = Run::new(vec![stage("@100:10s", LoadModel::Open, 0.0, 10.0)]);
    for i in 0..1_000 {
        let at = i * 10_000;
        run.add(&request(0, [at, at + 300, at + 20_300, 300]), &[], &[]);
    }
    let bounds = [("response_time", "p(95)<20.1ms"), ("response_time", "p(95)<21ms")];
    let summary = run.judge(&bounds);
    let p95 = figure(&summary.results.total, Metric::ResponseTime, "p95");
    assert!((p95.bound - 0.3).abs() < 0.02 && p95.has_notable_bound(), "{p95:?}");
    assert_eq!(p95.refused, None);
    assert!(summary.is_valid());
    // The measurement error decides the first threshold, but not the second.
    assert!(why(&summary.thresholds[0]).contains("too uncertain"), "{:?}", summary.thresholds);
    assert_eq!(summary.thresholds[1].judgement, Judgement::Pass);
}

#[test]
fn parts_of_a_run_keep_their_bounds_when_they_are_merged() {
    let of = |ids: std::ops::Range<u64>| {
        let mut recorder = Recorder::new(vec![us(10_000_000)]);
        for i in ids {
            let at = i * 10_000;
            let late = request(0, [at, at + 5_000 * (i % 2), at + 20_000, 5_000 * (i % 2)]);
            recorder.scheduled(StageId(0), late.scenario, late.target);
            recorder.record(&late, &[], &[]);
        }
        recorder.take()
    };
    let mut parts = of(0..300);
    parts.merge(of(300..1_000));
    let [merged, whole] = [parts, of(0..1_000)].map(|snapshot| {
        let without = snapshot.total(|_| true).undisturbed(Metric::ResponseTime).unwrap();
        (without.count(), without.sum(), without.nearest_rank(0.5), without.max())
    });
    assert_eq!(merged, whole);
    // 500 took 20 ms, and 500 would have taken 15 ms.
    assert_eq!((merged.0, merged.1), (1_000, 500 * 35_000_000));
}

/// 400 requests of 10 to 14 ms, of which the generator made every seventh 40 ms longer. Every other
/// one has this outcome.
fn disturbed(outcome: Outcome) -> Run {
    let mut run = Run::new(vec![stage("x", LoadModel::Open, 0.0, 10.0)]);
    for i in 0..400 {
        let late = if i % 7 == 0 { 40_000 } else { 0 };
        let service = 10_000 + i * 10;
        let at = i * 20_000;
        let outcome = if i % 2 == 0 { Outcome::Completed } else { outcome };
        let sample = request(0, [at, at + late, at + late + service, late]);
        run.add(&Sample { outcome, ..sample }, &[], &[]);
    }
    run
}

#[test]
fn merged_distributions_know_what_the_generator_added_to_either() {
    let whole = disturbed(Outcome::Completed).judge(&[]).results.total;
    let apart = disturbed(Outcome::Rejected(403)).judge(&[]).results.total;
    let whole = whole.distribution(Metric::ResponseTime).unwrap();
    let parts = [Metric::ResponseTime, Metric::RejectedResponseTime];
    let [completed, rejected] = parts.map(|metric| apart.distribution(metric).unwrap());
    for (one, other) in [(completed, rejected), (rejected, completed)] {
        let merged = one.merged(other, Metric::ResponseTime).unwrap();
        assert_eq!((merged.count, merged.unfinished), (400, 0));
        let figures = |times: &DistributionSummary| {
            let mut all: Vec<_> = QUANTILES.iter().filter_map(|q| times.figure(q)).collect();
            all.extend([times.mean_figure(), times.min_figure(), times.max_figure()]);
            all
        };
        for (found, expected) in figures(&merged).into_iter().zip(figures(whole)) {
            assert!(is_near(found.value, expected.value), "{found:?} {expected:?}");
            // To the histogram's resolution.
            assert!((found.bound - expected.bound).abs() < 0.06, "{found:?} {expected:?}");
            assert_eq!(found.refused, expected.refused);
        }
    }
    // p95 is that of the late ones, and p50 is not.
    let merged = completed.merged(rejected, Metric::ResponseTime).unwrap();
    let p95 = merged.figure(&QUANTILES[2]).unwrap();
    assert_eq!((p95.refused, p95.sound()), (Some(Refusal::Generator), None));
    assert_eq!(merged.figure(&QUANTILES[0]).unwrap().refused, None);
}
