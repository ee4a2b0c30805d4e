//! Thresholds on summaries, and the validity that a summary derives from the measurements.

use plimsoll_measure::{ErrorClass, GapSummary, Outcome, TokenCount, Usage};
use plimsoll_metrics::{
    HostLoad, Judgement, Level, RunSummary, StageResources, ThresholdResult, Verdict,
};

use crate::support::{recorder, run, sample, summary};

/// 200 completed in 40 ms, 1 failed, 2 refused and 1 never sent in stage 1; a warm-up in which
/// every request timed out.
fn judge(metric: &str, expression: &str) -> ThresholdResult {
    let mut recorder = recorder();
    for i in 0..200 {
        run(&mut recorder, &sample(0, i, 9_000, Outcome::TimedOut), &[]);
        run(&mut recorder, &sample(1, 1_000 + i, 40, Outcome::Completed), &[]);
    }
    let refused = Outcome::Rejected(429);
    for outcome in [Outcome::Failed(ErrorClass::Reset), refused, Outcome::NeverSent, refused] {
        run(&mut recorder, &sample(1, 1_500, 4, outcome), &[]);
    }
    summary(&mut recorder, &[(metric, expression)]).thresholds.remove(0)
}

#[test]
fn bounds_are_kept_or_broken() {
    for (metric, expression, kept) in [
        ("service_time", "p(95)<50ms", true),
        ("service_time", "p(95)<39ms", false),
        ("service_time", "max<=40ms", true),
        ("service_time{scenario:simple}", "mean<40.1ms", true),
        ("response_time{stage:1:10s}", "mean<40.9ms", false),
        ("response_time{target:gateway}", "count==200", true),
        // 4 of 204, and 2 without the refusals.
        ("error_rate", "<2%", true),
        ("error_rate", "<1.9%", false),
        ("error_rate_excluding_rejected", "<1%", true),
        ("error_rate_excluding_rejected", "rate<0.9%", false),
        ("throughput", ">=10", true),
        ("throughput", "value>10.1", false),
        ("timed_out", "count==0", true),
        ("timed_out{stage:1}", "count==200", true),
    ] {
        let expected = if kept { Judgement::Pass } else { Judgement::Fail };
        let judged = judge(metric, expression);
        assert_eq!(judged.judgement, expected, "{metric}: {expression}: {:?}", judged.measured);
    }
}

/// Two busy loops beside a target make its answers later and fewer, and leave counts alone.
#[test]
fn a_busy_host_breaks_no_time_or_rate() {
    for (metric, expression, alone, busy) in [
        ("service_time", "p(95)<39ms", Verdict::Fail, Verdict::Inconclusive),
        ("service_time", "p(95)<50ms", Verdict::Pass, Verdict::Pass),
        ("response_time", "p(50)<1ms|2ms", Verdict::Fail, Verdict::Inconclusive),
        ("response_time", "p(50)>50ms", Verdict::Fail, Verdict::Fail),
        ("throughput", ">10.1", Verdict::Fail, Verdict::Inconclusive),
        ("error_rate", "<1.9%", Verdict::Fail, Verdict::Fail),
        ("service_time", "count>9999", Verdict::Fail, Verdict::Fail),
    ] {
        let run =
            RunSummary { thresholds: vec![judge(metric, expression)], ..RunSummary::default() };
        let verdict = |others| {
            let host = Some(HostLoad { cpus: 2, busy: others, stolen: 0.0 });
            let resources = vec![StageResources { host, ..StageResources::default() }];
            let mut run = RunSummary { resources, ..run.clone() };
            run.find();
            let [limit] = &run.thresholds[..] else { panic!("one limit") };
            let is_open = limit.judgement.verdict() == Verdict::Inconclusive;
            assert!(limit.level.is_none() || !is_open, "{limit:?}");
            let names_it = |why: &str| why.ends_with("other programs used 100% of them");
            assert!(limit.judgement.why_open().is_none_or(names_it), "{limit:?}");
            limit.judgement.verdict()
        };
        assert_eq!([verdict(0.9), verdict(1.0)], [alone, busy], "{metric} {expression}");
    }
}

/// The request that was never sent would have taken some time, and nobody knows which.
#[test]
fn one_request_without_an_end_opens_the_mean() {
    let judged = judge("response_time", "mean<9s").judgement;
    assert!(
        matches!(&judged, Judgement::Inconclusive(why) if why.contains("without an end")),
        "{judged:?}"
    );
    assert_eq!(judge("response_time", "mean<40ms").judgement, Judgement::Fail);
}

/// 40 ms from the first to the last of 5 content events: 10 ms a token if each holds one, and less
/// if they hold several, which only a reported count tells.
#[test]
fn a_time_per_estimated_token_is_an_upper_bound() {
    let judge = |completion, expression| {
        let mut recorder = recorder();
        for i in 0..200 {
            let mut stream = sample(1, 1_000 + i, 60, Outcome::Completed);
            stream.gaps = GapSummary { count: 4, ..GapSummary::default() };
            stream.usage = Usage { completion, after_first: Some(4), ..Usage::default() };
            run(&mut recorder, &stream, &[]);
        }
        let summary = summary(&mut recorder, &[("tpot", expression)]);
        summary.thresholds[0].judgement.clone()
    };
    let (reported, estimated) = (TokenCount::reported(5), TokenCount::estimated(5));
    assert_eq!(judge(reported, "p(50)<11ms"), Judgement::Pass);
    assert_eq!(judge(estimated, "p(50)<11ms"), Judgement::Pass);
    assert_eq!(judge(reported, "p(50)<9ms"), Judgement::Fail);
    assert!(matches!(judge(estimated, "p(50)<9ms"), Judgement::Inconclusive(why)
        if why.contains("may contain several tokens")));
    assert_eq!(judge(estimated, "p(50)>11ms"), Judgement::Fail);
    assert!(matches!(judge(estimated, "p(50)>9ms"), Judgement::Inconclusive(_)));
}

/// Of 0.95^n, 0.5^n and 0.01^n the first below 5 % have n = 59, 5 and 1: so many values in a row
/// below a 95th percentile, on one side of a median, or above a 99th percentile are too rare.
#[test]
fn few_values_judge_a_percentile_where_all_of_them_agree() {
    let judge = |count: u64, expression| {
        let mut recorder = recorder();
        for i in 0..count {
            run(&mut recorder, &sample(1, 1_000 + i, 40 + i % 2, Outcome::Completed), &[]);
        }
        summary(&mut recorder, &[("service_time", expression)]).thresholds.remove(0)
    };
    for (count, expression, expected) in [
        (59, "p(95)<1s", Some(Judgement::Pass)),
        (58, "p(95)<1s", None),
        (5, "p(50)<42ms", Some(Judgement::Pass)),
        (4, "p(50)<42ms", None),
        (1, "p(99)<4ms", Some(Judgement::Fail)),
        (5, "p(50)<4ms", Some(Judgement::Fail)),
        (5, "p(50)>4ms", Some(Judgement::Pass)),
        // Some values are on each side.
        (59, "p(95)<41ms", None),
        (5, "p(50)>40ms", None),
    ] {
        let judged = judge(count, expression);
        let open = matches!(judged.judgement, Judgement::Inconclusive(_));
        match expected {
            Some(expected) => assert_eq!(judged.judgement, expected, "{count}: {expression}"),
            None => assert!(open, "{count}: {expression}: {judged:?}"),
        }
        assert_eq!(judged.measured, None, "{count}: {expression}");
        assert_eq!(judged.of_every_value().is_none(), open);
    }
}

/// One of 180 values misses the limit, so that 59 that meet it are not enough.
#[test]
fn enough_values_of_which_one_misses_a_limit_are_not_called_too_few_to_agree() {
    let mut recorder = recorder();
    for i in 0..180 {
        let time = if i == 0 { 50 } else { 5 };
        run(&mut recorder, &sample(1, 1_000 + i, time, Outcome::Completed), &[]);
    }
    let judged = summary(&mut recorder, &[("service_time", "p(95)<20ms")]).thresholds.remove(0);
    let why = "180 samples are too few for this percentile, which needs 200";
    assert_eq!(judged.judgement, Judgement::Inconclusive(why.to_owned()));
}

/// Of 400 requests, 120 take 50 ms and the others 5: a 99th percentile needs 1,000, but it is not
/// below the 95th, which is 50.
#[test]
fn a_lower_percentile_beyond_a_bound_breaks_it() {
    for (expression, expected) in [
        ("p(99)<20ms", Some(Judgement::Fail)),
        ("p(99)<=20ms", Some(Judgement::Fail)),
        ("p(99.9)<20ms", Some(Judgement::Fail)),
        // The 95th percentile keeps it, and nothing is known of the others.
        ("p(99)<50.5ms", None),
    ] {
        let mut recorder = recorder();
        for i in 0..400 {
            let time = if i % 10 < 3 { 50 } else { 5 };
            run(&mut recorder, &sample(1, 1_000 + i, time, Outcome::Completed), &[]);
        }
        let judged = summary(&mut recorder, &[("service_time", expression)]).thresholds.remove(0);
        match expected {
            Some(expected) => assert_eq!(judged.judgement, expected, "{expression}"),
            None => assert_ne!(judged.judgement, Judgement::Fail, "{expression}: {judged:?}"),
        }
    }
}

#[test]
fn no_data_is_never_a_pass() {
    for (metric, expression, why) in [
        ("service_time", "p(99)<10s", "which needs 1,000; 299 are enough if all meet the limit"),
        ("itl", "p(95)<10s", "no completed request has this value"),
        ("tls", "count==0", "no completed request has this value"),
        ("failed{scenario:complex}", "count==0", "nothing was scheduled"),
        ("error_rate{stage:2:10s}", "<1%", "nothing was scheduled"),
        ("error_rate{scenario:absent}", "<1%", "no such group"),
    ] {
        let judged = judge(metric, expression);
        assert_eq!(judged.measured, None, "{metric}: {expression}");
        assert!(
            matches!(&judged.judgement, Judgement::Inconclusive(cause) if cause.contains(why)),
            "{metric}: {expression}: {judged:?}"
        );
    }
}

#[test]
fn the_generators_own_errors_make_the_run_invalid() {
    let mut recorder = recorder();
    let exhausted = sample(1, 1_500, 4, Outcome::Failed(ErrorClass::PortExhaustion));
    run(&mut recorder, &exhausted, &[]);
    let summary = summary(&mut recorder, &[]);
    let finding = summary.of_level(Level::Invalid).next().unwrap();
    assert_eq!(finding.code, 103);
    assert!(finding.fix().contains("ip_local_port_range"));
}

#[test]
fn a_request_without_an_outcome_makes_the_run_invalid() {
    let mut recorder = recorder();
    let lost = sample(1, 1_500, 4, Outcome::Completed);
    recorder.scheduled(lost.stage, lost.scenario, lost.target);
    assert!(!summary(&mut recorder, &[]).is_valid());
}
