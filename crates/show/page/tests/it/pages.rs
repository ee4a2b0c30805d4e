//! The page of synthetic runs.

use plimsoll_measure::{
    ConnectPhases, ConversationKey, FlowControl, GapSummary, GeneratorShare, Moment, Nanos,
    Outcome, Sample, ScenarioId, ServerReport, StageId, TargetId, Timeline, Usage,
};
use plimsoll_metrics::{
    Finding, InstrumentHealth, LoadModel, Recorder, RunInfo, RunMetadata, RunSummary, RunTimeline,
    ShardPart, ShardState, Snapshot, StageInfo, TargetInfo, TimeRecord, TimeSeries, TimelineGroup,
    TimelineInterval, TimelineTimes,
};
use plimsoll_page::{Input, page};
use plimsoll_versus::{BlockCounts, Difference, Figure, Kind, Role, TargetResult, Versus};

use crate::support::{charts, data, numbers, rows, texts, without_scripts};

pub(crate) const HOSTILE: &str = "</script></title><img src=x onerror=alert(1)>\"'&";

/// A run with stages of equal length, and requests to each target that take 5 to 60 ms. The third
/// second has no response at all.
pub(crate) fn run(
    stages: u16,
    stage_s: u64,
    targets: &[&str],
    per_second: u64,
) -> (RunSummary, TimeRecord) {
    run_of(stages, stage_s, targets, per_second, |_| {})
}

/// The same with samples that are changed before they are counted.
pub(crate) fn run_of(
    stages: u16,
    stage_s: u64,
    targets: &[&str],
    per_second: u64,
    change: impl Fn(&mut Sample),
) -> (RunSummary, TimeRecord) {
    let ends = (1..=u64::from(stages)).map(|n| at(n * stage_s * 1_000)).collect();
    let (mut recorder, mut snapshot) = (Recorder::new(ends), Snapshot::new());
    let mut series = TimeSeries::new(Moment::EPOCH);
    let seconds = u64::from(stages) * stage_s;
    for second in 0..seconds {
        for target in 0..u16::try_from(targets.len()).unwrap() {
            for n in 0..per_second {
                let due = second * 1_000 + n * 1_000 / per_second;
                let took = 5 + (second * 7 + n * 13 + u64::from(target) * 3) % 56;
                let stage = u16::try_from(second / stage_s).unwrap();
                let mut one = sample(stage, target, due, took, second == 2);
                change(&mut one);
                recorder.scheduled(one.stage, one.scenario, one.target);
                recorder.record(&one, &[], &[]);
            }
        }
        let interval = recorder.take();
        series.add(at(second * 1_000 + 1_000), &interval);
        snapshot.append(interval);
    }
    let metadata = metadata(stages, stage_s, targets);
    let health = InstrumentHealth::default();
    let record = TimeRecord::build(&series, &metadata, &health, &[]).unwrap();
    (RunSummary::build(metadata, health, &snapshot, &[]).unwrap(), record)
}

fn at(ms: u64) -> Moment {
    Moment::EPOCH + Nanos::from_millis(ms)
}

fn sample(stage: u16, target: u16, due: u64, took: u64, refused: bool) -> Sample {
    let status = if refused { 429 } else { 200 };
    Sample {
        stage: StageId(stage),
        scenario: ScenarioId(0),
        target: TargetId(target),
        conversation: ConversationKey::arrival(due),
        stream: false,
        reused: true,
        timeline: Timeline {
            intended: at(due),
            dispatched: Some(at(due)),
            first_byte: Some(at(due + took)),
            finished: Some(at(due + took)),
            ..Timeline::default()
        },
        connect: ConnectPhases::default(),
        status,
        outcome: if refused { Outcome::Rejected(429) } else { Outcome::Completed },
        usage: Usage::default(),
        gaps: GapSummary::default(),
        flow: FlowControl::default(),
        server: ServerReport::default(),
        generator: GeneratorShare::default(),
        ..Sample::unsent(at(due))
    }
}

fn metadata(stages: u16, stage_s: u64, targets: &[&str]) -> RunMetadata {
    RunMetadata {
        run: RunInfo {
            name: HOSTILE.to_owned(),
            tool_version: "0".to_owned(),
            ..RunInfo::default()
        },
        stages: (0..stages)
            .map(|n| StageInfo {
                name: format!("@{}:{stage_s}s", n + 1),
                model: LoadModel::Open,
                warmup: n == 0 && stages > 1,
                start_s: (u64::from(n) * stage_s) as f64,
                duration_s: stage_s as f64,
                ..StageInfo::default()
            })
            .collect(),
        scenarios: vec!["simple".to_owned()],
        targets: targets
            .iter()
            .map(|name| TargetInfo {
                name: (*name).to_owned(),
                url: format!("http://127.0.0.1/{name}"),
                ..TargetInfo::default()
            })
            .collect(),
        notes: vec![format!("first error: {HOSTILE}")],
        ..RunMetadata::default()
    }
}

pub(crate) fn versus(targets: &[&str]) -> Versus {
    let difference = |quantile: &str, value_ns: f64| Difference {
        target: targets[1].to_owned(),
        reference: targets[0].to_owned(),
        figure: Figure::ResponseTime,
        kind: Kind::Added,
        quantile: quantile.to_owned(),
        pairs: 1_000,
        value_ns: Some(value_ns),
        low_ns: Some(value_ns - 40_000.0),
        high_ns: Some(value_ns + 60_000.0),
        ..Difference::default()
    };
    Versus {
        targets: targets
            .iter()
            .enumerate()
            .map(|(index, name)| TargetResult {
                name: (*name).to_owned(),
                role: if index == 0 { Role::Reference } else { Role::default() },
                ..TargetResult::default()
            })
            .collect(),
        headline: Figure::ResponseTime,
        blocks: BlockCounts::default(),
        differences: vec![difference("p50", 120_000.0), difference("p99", 900_000.0)],
        ..Versus::default()
    }
}

pub(crate) fn html_of(made: &(RunSummary, TimeRecord), versus: Option<&Versus>) -> String {
    let (summary, record) = made;
    page(&Input { summary, timeline: Some(&record.timeline), versus })
}

#[test]
fn texts_of_targets_stay_texts_and_nothing_is_loaded() {
    let made = run(2, 4, &["direct", HOSTILE], 40);
    let page = html_of(&made, Some(&versus(&["direct", HOSTILE])));
    let html = without_scripts(&page);
    assert!(!html.contains("<img"), "a tag of a target");
    let data = html.matches("<script type=\"application/json\">").count();
    assert_eq!(html.matches("<script").count(), data, "no script but data");
    assert_eq!(html.matches("</script").count(), data, "no text ends a script");
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;"));
    assert!(html.contains("default-src 'none'") && html.contains("script-src 'sha256-"));
    // The data have the unescaped text.
    assert!(texts(&crate::support::data(&page, "times")["rows"], "target").contains(&HOSTILE));
    for loads in ["<link", "@import", "url(", "<iframe", " src=\"", " href="] {
        assert!(!html.contains(loads), "{loads}");
    }
}

/// A run may be invalid because of the times of single targets although its comparison is valid, or
/// the reverse.
#[test]
fn the_verdict_of_a_comparison_is_its_own() {
    let (mut summary, record) = run(2, 4, &["direct", "gateway"], 40);
    let late = Finding::new(101).with("late", 25).with("planned", 40).with("stage", "@2:2s");
    summary.findings = vec![late.with("share", "62.5%")];
    let made = (summary, record);
    assert!(html_of(&made, None).contains("Plimsoll sent 25 of 40 requests"));
    let mut versus = versus(&["direct", "gateway"]);
    let html = html_of(&made, Some(&versus));
    assert!(!html.contains("INVALID") && html.contains("DONE"));
    versus.invalid.push("the control differs".to_owned());
    let html = html_of(&made, Some(&versus));
    assert!(html.contains("INVALID") && html.contains("the control differs"));
    assert!(!html.contains("the differences describe the targets"));
}

/// Chapters of `report.txt` beyond its screen are below the charts.
#[test]
fn the_page_has_every_chapter_of_the_file() {
    let made = run(2, 4, &["direct", "gateway"], 40);
    for versus in [None, Some(versus(&["direct", "gateway"]))] {
        let html = html_of(&made, versus.as_ref());
        let screen = plimsoll_report::run_screen(&made.0, plimsoll_report::screen::Rest::Flag);
        assert!(screen.chapters().len() > 5);
        for chapter in screen.chapters() {
            let summary = format!("<summary>{}</summary>", chapter.heading());
            assert!(html.contains(&summary), "{summary}");
        }
    }
}

/// A reader first sees targets, load and machine, and the main figures.
#[test]
fn the_page_begins_with_facts_and_cards() {
    let mut made = run(2, 4, &["gateway"], 40);
    made.0.metadata.targets[0].model = "llama-3.1-8b".to_owned();
    made.0.metadata.environment.cpu_count = Some(2);
    let html = html_of(&made, None);
    let head = html.split("<main>").next().unwrap();
    for fact in ["llama-3.1-8b", "http://127.0.0.1/gateway", "@2:4s", "logical CPUs 2", "done/s"] {
        assert!(head.contains(fact), "{fact}");
    }
    // Pooled figures of several targets describe none of them.
    let html = html_of(&made, Some(&versus(&["direct", "gateway"])));
    assert!(!html.contains("class=\"cards\""));
}

#[test]
fn a_sweep_begins_with_its_curve_and_has_its_answer_on_top() {
    let html = |stages| html_of(&run(stages, 4, &["gateway"], 40), None);
    assert!(!html(2).contains("id=\"levels\""), "one of two is warm-up");
    let html = html(4);
    let mut ended = run(4, 4, &["gateway"], 40);
    ended.0.metadata.stages[3].duration_s = 0.0;
    let load = "<dd>@2:4s, @3:4s, 8s measured</dd>";
    assert!(html_of(&ended, None).contains(load), "a level that never began");
    let levels = data(&html, "levels");
    assert_eq!(texts(&levels["rows"], "level"), ["2/s", "3/s", "4/s"]);
    // 160 requests in 4 s.
    assert_eq!(numbers(&levels["rows"], "throughput"), [40.0; 3]);
    let (times, low) = (numbers(&levels["rows"], "time"), numbers(&levels["rows"], "time low"));
    assert!(times.iter().zip(&low).all(|(time, low)| low <= time && (5.0..=60.0).contains(time)));
    let answer = html.find("Highest proven throughput: ").unwrap();
    let order = [
        answer,
        html.find("id=\"levels\"").unwrap(),
        html.find("machine</dt>").unwrap(),
        html.find("id=\"times\"").unwrap(),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(!html.contains("class=\"cards\""), "figures over all levels are of none of them");
}

#[test]
fn every_chart_has_a_title_a_text_and_its_numbers() {
    let made = run(2, 4, &["direct", "gateway"], 40);
    let html = html_of(&made, Some(&versus(&["direct", "gateway"])));
    let drawn = charts(&html);
    let ids: Vec<_> = drawn.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["added", "times", "rates", "percentiles"]);
    for id in ids {
        assert!(html.contains(&format!("aria-labelledby=\"{id}-title {id}-text\"")), "{id}");
        assert!(!rows(&html, id).is_empty(), "{id}");
    }
    // The verdict comes before any chart, and figures are those of the files.
    assert!(html.find("measurement: ") < html.find("<section"));
    assert!(rows(&html, "added")[0][5].contains("+120us [80"), "the added time");
}

/// By hand: 40 requests per second for both targets together, and no successful response in the
/// third second.
#[test]
fn rates_are_those_of_the_requests() {
    let made = run(2, 4, &["direct", "gateway"], 40);
    let rates = &data(&html_of(&made, None), "rates");
    assert_eq!(numbers(&rates["rows"], "dispatched"), [80.0; 8]);
    let mut errors = [0.0; 8];
    errors[2] = 80.0;
    assert_eq!(numbers(&rates["rows"], "errors"), errors);
    assert_eq!(rates["warmup"][0]["to"], 4.0);
}

/// The times of a second are 5 + (7 s + 13 n) % 56 ms, computed here independently.
#[test]
fn percentiles_over_time_are_those_of_the_requests() {
    let made = run(1, 4, &["direct"], 2_000);
    let times = data(&html_of(&made, None), "times");
    for (second, row) in [0, 1, 3].into_iter().zip(times["rows"].as_array().unwrap()) {
        let mut all: Vec<u64> = (0..2_000).map(|n| 5 + (second * 7 + n * 13) % 56).collect();
        all.sort_unstable();
        for (key, at) in [("p50", 999), ("p99", 1_979)] {
            let (found, expected) = (row[key].as_f64().unwrap(), all[at] as f64);
            assert!((found / expected - 1.0).abs() < 0.006, "{key} {found} and {expected}");
        }
    }
}

#[test]
fn each_percentile_has_its_interval_and_place() {
    let made = run(1, 10, &["direct"], 200);
    let html = html_of(&made, None);
    let rows = &data(&html, "percentiles")["rows"];
    assert_eq!(
        &numbers(rows, "one in").iter().map(|n| n.round()).collect::<Vec<_>>()[..2],
        [2.0, 10.0]
    );
    let median = &rows[0];
    let [low, time, high] = ["low", "time", "high"].map(|key| median[key].as_f64().unwrap());
    // The times are spread evenly over 5 to 60 ms.
    assert!((time - 32.5).abs() < 1.5 && low < time && time < high, "{median}");
    // Among 1,800 successful responses, too few are beyond the last percentile.
    assert!(rows.as_array().unwrap().last().unwrap()["time"].is_null());
}

/// The timeline of an hour with a stage per minute: 450 intervals of 8 s, each with all figures and
/// as many bins as a map has rows.
fn hour(stages: &[StageInfo], targets: &[&str]) -> RunTimeline {
    let times = |shift: u32| TimelineTimes {
        count: 80_000,
        p50: Some(12.345_678),
        p90: Some(23.456_789),
        p99: Some(34.567_891),
        max: Some(45.678_912),
        bins: (0..60).map(|bin| (300 + shift + bin, u64::from(bin * 37 % 90 + 1))).collect(),
        ..TimelineTimes::default()
    };
    let group = |second: u32, target: &&str| TimelineGroup {
        stage: stages[second as usize / 60].name.clone(),
        target: (*target).to_owned(),
        due: 80_000,
        sent: 80_000,
        times: [("response_time_ms".to_owned(), times(second % 17))].into(),
        ..TimelineGroup::default()
    };
    RunTimeline {
        interval_s: 8.0,
        targets: targets.iter().map(ToString::to_string).collect(),
        intervals: (0..450)
            .map(|n| TimelineInterval {
                start_s: f64::from(n * 8),
                length_s: 8.0,
                in_flight: vec![12_345; targets.len()],
                pacing_lag_ms: Some(plimsoll_metrics::Lag::default()),
                groups: targets.iter().map(|target| group(n * 8, target)).collect(),
                ..TimelineInterval::default()
            })
            .collect(),
        ..RunTimeline::default()
    }
}

#[test]
fn the_page_of_an_hour_with_60_stages_and_four_targets_stays_small() {
    let targets = ["direct", "gateway-a", "gateway-b", "gateway-c"];
    let (summary, _) = run(60, 1, &targets, 1);
    let timeline = hour(&summary.metadata.stages, &targets);
    let versus = versus(&targets);
    let html = page(&Input { summary: &summary, timeline: Some(&timeline), versus: Some(&versus) });
    assert!(html.len() > 500_000, "all of it is there");
    assert!(without_scripts(&html).len() < 1_200_000, "{} bytes", html.len());
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
}

#[test]
fn the_page_of_a_merged_run_has_its_shards_side_by_side_and_names_the_odd_one() {
    let (mut summary, _) = run(1, 3, &["direct"], 40);
    let page = |summary: &RunSummary| page(&Input { summary, timeline: None, versus: None });
    let shards = "<summary>Shards</summary>";
    assert!(!page(&summary).contains(shards), "it was not divided");
    let shard = |index: u32, p50_ms| ShardPart {
        shard: format!("{index}/3"),
        state: ShardState::Done,
        scheduled: 900,
        completed: 900,
        p50_ms: Some(p50_ms),
        ..ShardPart::default()
    };
    summary.shards = vec![shard(0, 5.0), shard(1, 20.0), shard(2, 5.5)];
    summary.find();
    let html = page(&summary);
    let (head, section) = html.split_once(shards).unwrap();
    let (section, _) = section.split_once("</details>").unwrap();
    assert_eq!(section.matches("<tr>").count(), 4, "{section}");
    assert!(head.contains("Shard 1/3 differs: p50 20.0ms, the others 5.00ms to 5.50ms."), "{head}");
}

#[test]
fn a_run_without_a_timeline_has_a_page() {
    let (summary, _) = run(1, 3, &["direct"], 40);
    let html = page(&Input { summary: &summary, timeline: None, versus: None });
    let ids: Vec<_> = charts(&html).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["percentiles"]);
}
