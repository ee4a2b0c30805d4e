//! The grammar of limits, and the judge: figure x limit -> judgement.

use plimsoll_metrics::{
    Bias, Bound, BoundedFigure, Comparison, Disturbance, Figure, Gate, Judgement, Limit, Margin,
    Refusal, Scope, Verdict, Worse,
};

/// A metric and a limit as written, and the limit in its one form.
#[test]
fn every_spelling_is_read_and_printed_in_one_form() {
    for (metric, written, shown_metric, shown) in [
        ("ttft", "p(95)<500ms", "ttft", "p(95)<500ms"),
        ("ttft", "p95 < 500ms", "ttft", "p(95)<500ms"),
        ("ttft.p95", "<0.5s", "ttft", "p(95)<500ms"),
        ("ttft.p99_9", "<= 1s", "ttft", "p(99.9)<=1s"),
        ("ttft", "med<1s", "ttft", "p(50)<1s"),
        ("ttft", " max < 2s ", "ttft", "max<2s"),
        ("response", "avg<250us", "response_time", "mean<250us"),
        ("service{scenario:chat}", "min>1ms", "service_time{scenario:chat}", "min>1ms"),
        ("itl", "count>=1000", "itl", "count>=1000"),
        ("error_rate", "rate<0.01", "error_rate", "<1%"),
        ("errors", "<1%", "error_rate", "<1%"),
        ("throughput", "value>=100/s", "throughput", ">=100"),
        ("throughput{ stage : @100:60s }", ">=100", "throughput{stage:@100:60s}", ">=100"),
        ("failed", "count==0", "failed", "==0"),
        ("ttft{target:a}", "p(50) <= 3ms | 5ms ", "ttft{target:a}", "p(50)<=3ms|5ms"),
        ("block_rate", "rate>=10%|>0", "block_rate", ">=10%|>0%"),
        ("error_rate", "<=0|0.1%", "error_rate", "<=0%|0.1%"),
    ] {
        let limit = Limit::parse(metric, written).unwrap();
        let found = (limit.metric(), limit.expression());
        assert_eq!(found, (shown_metric.to_owned(), shown.to_owned()), "{metric} {written}");
        let again = Limit::parse(&found.0, &found.1).unwrap();
        assert_eq!((again.metric(), again.expression()), found);
    }
}

#[test]
fn a_scope_is_one_tag() {
    for (metric, scope) in [
        ("ttft", Scope::Run),
        ("ttft{scenario:simple}", Scope::Scenario("simple".to_owned())),
        ("ttft.p95{ stage : @100:60s }", Scope::Stage("@100:60s".to_owned())),
        ("ttft{target:a}", Scope::Target("a".to_owned())),
        ("ttft{category:pii}", Scope::Category("pii".to_owned())),
        ("ttft{operation:tools/call}", Scope::Operation("tools/call".to_owned())),
    ] {
        let expression = if metric.contains('.') { "<1s" } else { "max<1s" };
        assert_eq!(*Limit::parse(metric, expression).unwrap().scope(), scope, "{metric}");
    }
}

#[test]
fn a_wrong_limit_is_refused_in_one_line_with_the_fix() {
    for (metric, expression, says) in [
        ("ttfb_", "max<1s", "did you mean `ttfb`?"),
        ("nonsense_metric", "max<1s", "the most common are response_time, ttft"),
        ("ttft", "p(95)<500", "measured in time, not `500`; write it like `p(95)<500ms`"),
        ("ttft", "p(95)<1%", "measured in time"),
        ("ttft", "<500ms", "names no value"),
        ("ttft", "rate<500ms", "names no value"),
        ("ttft", "p(100)<1s", "N between 0 and 100"),
        ("ttft", "p(0)<1s", "N between 0 and 100"),
        ("ttft", "p9x<1s", "`p9x` is not p(N)"),
        ("ttft.p95", "p(99)<1s", "`p(99)` is a second aggregate"),
        ("ttft", "p(95)", "no comparison"),
        ("ttft", "p(95)=1s", "no comparison"),
        ("ttft", "p(95)<20ms|10ms", "not wider"),
        ("ttft", "p(95)<10ms|>20ms", "not wider"),
        ("ttft", "p(95)==10ms|20ms", "not wider"),
        ("ttft", "p(95)<=10ms|<10ms", "not wider"),
        ("ttft", "p(95)<10ms|20%", "measured in time"),
        ("ttft", "p(95)<10ms|p(99)<20ms", "second aggregate"),
        ("error_rate", "p(95)<1%", "it is a single number"),
        ("error_rate", "rate<5", "measured in share"),
        ("error_rate", "rate<5ms", "measured in share"),
        ("throughput", "value>=1s", "measured in requests/s"),
        ("completed", "count>-1", "measured in requests"),
        ("ttft{scenario}", "max<1s", "is not a scope"),
        ("ttft{tenant:a}", "max<1s", "is not a scope"),
        ("ttft{stage:a", "max<1s", "is not a scope"),
    ] {
        let error = Limit::parse(metric, expression).unwrap_err().to_string();
        assert!(error.contains(says), "{metric}: {expression}: {error}");
        assert!(!error.contains('\n') && error.len() < 200, "{error}");
    }
}

#[test]
fn every_gate_is_read_and_named_in_full() {
    use Margin::{Points, Relative};
    use Worse::{Higher, Lower};
    for (figure, margin, name, parsed, worse) in [
        ("ttft.p50", "3%", "ttft.p50", Relative(0.03), Higher),
        (" response.p99 ", " 10 % ", "response_time.p99", Relative(0.1), Higher),
        ("service.mean", "2.5%", "service_time.mean", Relative(0.025), Higher),
        ("itl.p99.9", "20%", "itl.p99.9", Relative(0.2), Higher),
        ("throughput", "2%", "throughput", Relative(0.02), Lower),
        ("errors", "0.1pp", "error_rate", Points(0.001), Higher),
        ("success_rate", "1pp", "success_rate", Points(0.01), Lower),
        ("policy_correctness", "1pp", "policy_correctness", Points(0.01), Lower),
        ("cpu", "3%", "cpu", Relative(0.03), Higher),
        ("cpu{process:gw}", "3%", "cpu{process:gw}", Relative(0.03), Higher),
        ("ttft.p50{stage:@9:1s}", "3%", "ttft.p50{stage:@9:1s}", Relative(0.03), Higher),
    ] {
        let gate = Gate::parse(figure, margin).unwrap();
        assert_eq!((gate.name(), gate.worse()), (name, worse), "{figure}: {margin}");
        let (found, wanted) = match (gate.margin(), parsed) {
            (Relative(found), Relative(wanted)) | (Points(found), Points(wanted)) => {
                (found, wanted)
            }
            other => panic!("{figure}: {other:?}"),
        };
        assert!((found - wanted).abs() < 1e-12, "{figure}: {margin}");
    }
}

#[test]
fn a_wrong_gate_is_refused_with_the_fix() {
    for (figure, margin, says) in [
        ("tftt.p50", "3%", "did you mean `ttft`?"),
        ("ttft", "3%", "value of the distribution"),
        ("ttft.p100", "3%", "N between 0 and 100"),
        ("ttft.p50", "3", "no unit"),
        ("ttft.p50", "3ms", "no unit"),
        ("ttft.p50", "0%", "not a number above 0"),
        ("ttft.p50", "-3%", "not a number above 0"),
        ("ttft.p50", "100%", "100 % or more"),
        ("ttft.p50", "0.1pp", "percent, not percentage points"),
        ("error_rate", "3%", "percentage points"),
        ("throughput.p50", "3%", "single number"),
        ("completed", "3%", "grows with the run"),
        ("ttft.p50{tenant:a}", "3%", "is not a scope"),
        ("cpu{stage:a}", "3%", "a watched process"),
    ] {
        let error = Gate::parse(figure, margin).unwrap_err().to_string();
        assert!(error.contains(says), "{figure}: {margin}: {error}");
    }
}

const KEPT: Option<bool> = Some(true);
const BROKEN: Option<bool> = Some(false);
const OPEN: Option<bool> = None;

/// A figure: its value, the generator's part, its interval, and whether requests have no end.
type Given = (f64, f64, Option<[f64; 2]>, bool);

const fn exact(value: f64) -> Given {
    (value, 0.0, None, false)
}

const fn ours(value: f64, part: f64) -> Given {
    (value, part, None, false)
}

const fn between(low: f64, value: f64, high: f64) -> Given {
    (value, 0.0, Some([low, high]), false)
}

const fn censored(value: f64) -> Given {
    (value, 0.0, None, true)
}

fn judge(given: Given, metric: &str, limit: &str) -> Option<bool> {
    let (value, bound, interval, censored) = given;
    let limit = Limit::parse(metric, limit).unwrap();
    let refused = censored.then_some(Refusal::Censored);
    let figure = BoundedFigure { value, bound, interval, refused };
    let bias = limit.figure().bias();
    limit.bound().judge(|among| figure.among(among).limits(bias), 1)
}

/// Times in milliseconds. Every kind of figure has limits just kept, just broken and in doubt.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_figure_passes_if_all_its_values_keep_the_limit_and_fails_if_none_does() {
    let time = ("response_time", "p(95)");
    let gap = ("itl", "p(95)");
    let rate = ("throughput", "");
    let share = ("error_rate", "");
    let count = ("failed", "");
    for (figure, (metric, aggregate), limit, expected) in [
        // No measurement error: the value decides, at the edges too.
        (exact(99.9), time, "<100ms", KEPT),
        (exact(100.0), time, "<100ms", BROKEN),
        (exact(100.0), time, "<=100ms", KEPT),
        (exact(100.1), time, "<=100ms", BROKEN),
        (exact(100.1), time, ">100ms", KEPT),
        (exact(100.0), time, ">100ms", BROKEN),
        (exact(100.0), time, ">=100ms", KEPT),
        (exact(99.9), time, ">=100ms", BROKEN),
        (exact(0.0), count, "==0", KEPT),
        (exact(1.0), count, "==0", BROKEN),
        (exact(0.009), share, "<1%", KEPT),
        (exact(0.01), share, "<1%", BROKEN),
        (exact(0.01), share, "<=1%", KEPT),
        (exact(100.0), rate, ">=100", KEPT),
        (exact(99.0), rate, ">=100", BROKEN),
        // The generator can only have added to a time.
        (ours(99.0, 90.0), time, "<100ms", KEPT),
        (ours(101.0, 0.5), time, "<100ms", BROKEN),
        (ours(101.0, 1.5), time, "<100ms", OPEN),
        (ours(101.0, 101.0), time, "<100ms", OPEN),
        (ours(429.0, 172.0), time, "<100ms", BROKEN),
        (ours(429.0, 407.0), time, "<100ms", OPEN),
        (ours(101.0, 0.5), time, ">100ms", KEPT),
        (ours(101.0, 1.5), time, ">100ms", OPEN),
        (ours(99.0, 90.0), time, ">100ms", BROKEN),
        // It can only have taken from a rate.
        (ours(100.0, 900.0), rate, ">=100", KEPT),
        (ours(50.0, 10.0), rate, ">70", BROKEN),
        (ours(50.0, 20.0), rate, ">70", BROKEN),
        (ours(50.0, 20.1), rate, ">70", OPEN),
        (ours(50.0, 122.5), rate, ">70", OPEN),
        (ours(50.0, 0.0), rate, ">70", BROKEN),
        (ours(60.0, 5.0), rate, "<70", KEPT),
        (ours(60.0, 15.0), rate, "<70", OPEN),
        (ours(80.0, 15.0), rate, "<70", BROKEN),
        // A gap may be longer or shorter without it.
        (ours(20.0, 4.0), gap, "<25ms", KEPT),
        (ours(20.0, 5.0), gap, "<25ms", OPEN),
        (ours(30.0, 5.0), gap, "<25ms", BROKEN),
        (ours(29.0, 5.0), gap, "<25ms", OPEN),
        (ours(31.0, 5.0), gap, ">25ms", KEPT),
        (ours(19.0, 5.0), gap, ">25ms", BROKEN),
        // Requests without an end may be longer.
        (censored(99.0), time, "<100ms", OPEN),
        (censored(100.0), time, "<100ms", BROKEN),
        (censored(101.0), time, "<100ms", BROKEN),
        (censored(101.0), time, ">100ms", KEPT),
        (censored(99.0), time, ">100ms", OPEN),
        // An interval must lie on one side.
        (between(90.0, 95.0, 99.0), rate, "<100", KEPT),
        (between(90.0, 95.0, 100.0), rate, "<100", OPEN),
        (between(100.0, 105.0, 110.0), rate, "<100", BROKEN),
        (between(99.0, 105.0, 110.0), rate, "<100", OPEN),
        (between(5_022.0, 9_000.0, f64::INFINITY), rate, ">=2000", KEPT),
        (between(1_900.0, 9_000.0, f64::INFINITY), rate, ">=2000", OPEN),
        (between(0.0, 900.0, 1_900.0), rate, ">=2000", BROKEN),
        (between(0.0, 900.0, f64::INFINITY), rate, ">=2000", OPEN),
        ((100.0, 20.0, Some([95.0, 105.0]), false), rate, ">=95", KEPT),
        ((100.0, 20.0, Some([95.0, 105.0]), false), rate, ">=96", OPEN),
        ((100.0, 20.0, Some([95.0, 105.0]), false), rate, ">=125", OPEN),
        ((100.0, 20.0, Some([95.0, 105.0]), false), rate, ">=126", BROKEN),
        // One value is not proven by an interval around it, nor is it excluded.
        (between(1.0, 2.0, 3.0), count, "==2", OPEN),
        (between(1.0, 2.0, 3.0), count, "==4", BROKEN),
        (between(2.0, 2.0, 2.0), count, "==2", KEPT),
        // Unknown.
        (exact(f64::NAN), time, "<100ms", OPEN),
        (exact(f64::NAN), time, ">100ms", OPEN),
        (exact(f64::NAN), count, "==0", OPEN),
    ] {
        let found = judge(figure, metric, &format!("{aggregate}{limit}"));
        assert_eq!(found, expected, "{figure:?} {metric} {aggregate}{limit}");
    }
}

/// The normal quantiles at 5 % and at 5 % / 10 are 1.960 and 2.807: an end 10 away from its value
/// moves to 14.3.
#[test]
fn one_of_several_limits_fails_at_a_stricter_level_and_passes_at_the_same() {
    let figure =
        BoundedFigure { value: 100.0, bound: 0.0, interval: Some([90.0, 110.0]), refused: None };
    let limit = |limit| Limit::parse("throughput", limit).unwrap().bound();
    for (text, among, expected) in [
        ("<89", 1, BROKEN),
        ("<89", 10, OPEN),
        ("<85", 10, BROKEN),
        ("<86", 10, OPEN),
        (">111", 1, BROKEN),
        (">111", 10, OPEN),
        (">115", 10, BROKEN),
        ("<111", 1, KEPT),
        ("<111", 1_000, KEPT),
        (">89", 1_000, KEPT),
        (">95", 1, OPEN),
    ] {
        let bias = Bias::Takes;
        let found = limit(text).judge(|among| figure.among(among).limits(bias), among);
        assert_eq!(found, expected, "{text} among {among}");
    }
}

/// Ends of the share with every miss (low) and without the generator's (high), against 99 %.
#[test]
fn a_share_of_requests_is_judged_with_and_without_the_misses_in_doubt() {
    for (low, high, expected) in [
        (0.99, 1.0, KEPT),
        (0.989, 1.0, OPEN),
        (0.98, 0.99, OPEN),
        (0.98, 0.989, BROKEN),
        (0.0, 1.0, OPEN),
    ] {
        assert_eq!(
            Bound::new(Comparison::AtLeast, 0.99).decides([low, high]),
            expected,
            "{low} {high}"
        );
    }
}

/// A disturbance in one direction cannot explain a met limit on the other side.
#[test]
fn a_disturbed_host_settles_what_it_can_only_have_made_worse() {
    for (metric, limit, kept, settled) in [
        ("response_time", Comparison::Less, true, true),
        ("response_time", Comparison::Less, false, false),
        ("response_time", Comparison::Greater, false, true),
        ("response_time", Comparison::Greater, true, false),
        ("response_ttft", Comparison::Less, true, true),
        ("service_time", Comparison::Less, true, false),
        ("itl", Comparison::Less, true, false),
        ("tpot", Comparison::Less, false, false),
        ("throughput", Comparison::AtLeast, true, true),
        ("throughput", Comparison::AtLeast, false, false),
        ("throughput", Comparison::Less, false, true),
        ("goodput", Comparison::AtLeast, true, true),
        ("good_share", Comparison::AtLeast, true, true),
        ("good_share", Comparison::AtLeast, false, false),
        ("error_rate", Comparison::Less, true, true),
        ("error_rate", Comparison::Less, false, false),
        ("timeout_rate", Comparison::Less, false, false),
        ("block_rate", Comparison::AtLeast, true, true),
        ("policy_correctness", Comparison::AtLeast, true, true),
        ("policy_correctness", Comparison::AtLeast, false, true),
        ("resumption_rate", Comparison::AtLeast, false, true),
    ] {
        let disturbance = Figure::named(metric).unwrap().disturbance();
        let found = disturbance.settles(kept, limit.is_upper());
        assert_eq!(found, settled, "{metric} {} {kept}", limit.sign());
        assert!(disturbance != Disturbance::None || settled);
    }
}

#[test]
fn the_most_severe_judgement_counts_and_an_empty_list_proves_nothing() {
    let open = || Judgement::Inconclusive("few".to_owned());
    for (judgements, verdict) in [
        (vec![], Verdict::Inconclusive),
        (vec![Judgement::Pass], Verdict::Pass),
        (vec![Judgement::Pass, open()], Verdict::Inconclusive),
        (vec![open(), Judgement::Fail, Judgement::Pass], Verdict::Fail),
    ] {
        assert_eq!(Verdict::of(&judgements), verdict, "{judgements:?}");
    }
}
