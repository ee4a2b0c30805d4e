//! The end of a run on a terminal of 24 lines.

use plimsoll_measure::{ErrorClass, Nanos, Outcome, PolicyDecision, Sample, StageId, StreamShape};
use plimsoll_metrics::{
    FailureKind, Finding, InstrumentHealth, Limit, LoadModel, Recorder, RunEnd, RunMetadata,
    RunSummary, StageInfo,
};
use plimsoll_report::screen::{Chapter, Item, LINES, Rest, Rows, Screen, Tone};
use plimsoll_report::table::Table;
use plimsoll_report::{Style, run_screen, run_verdict, text};

use crate::support::{
    ended, health, late_samples, metadata, path, sample, samples, summary, summary_of,
};

const PLAIN: Style = Style::plain(80);

/// Without the rows of the example run, whose number these runs do not have.
fn own_health() -> InstrumentHealth {
    InstrumentHealth { sink_offered: None, ..health() }
}

fn rest() -> Rest {
    Rest::Folder("runs/20251121T012345Z-realistic".to_owned())
}

fn shown(summary: &RunSummary, width: usize) -> String {
    run_screen(summary, rest()).text(Style { width, ..PLAIN })
}

#[track_caller]
fn check(name: &str, summary: &RunSummary) {
    let whole = run_screen(summary, rest()).whole(Style { width: 10_000, ..PLAIN });
    plimsoll_test_support::check_screens(path("tests/golden/screens"), name, &whole, |width| {
        shown(summary, width)
    });
}

/// A run of plain HTTP, as `http` makes it: no thresholds, no streams.
fn plain_http(change: impl Fn(usize, Sample) -> Sample) -> RunSummary {
    let mut metadata = metadata();
    "http".clone_into(&mut metadata.run.name);
    metadata.stages.remove(2);
    metadata.scenarios = vec!["get".to_owned()];
    (metadata.targets[0].model, metadata.notes) = (String::new(), Vec::new());
    "http://127.0.0.1:8080/health".clone_into(&mut metadata.targets[0].url);
    let mut recorder = Recorder::new(crate::support::stage_ends());
    for index in 0..4_000_usize {
        let service = 900 + (index as u64 * 577 % 1_000);
        let mut one = sample(1, 0, 1_000_000 + index as u64 * 2_500, service);
        one.stream = false;
        one.timeline.first_token = None;
        one.timeline.first_output_token = None;
        one.timeline.last_token = None;
        (one.usage, one.shape, one.finish_reason, one.events) = Default::default();
        one.gaps = plimsoll_measure::GapSummary::default();
        one.policy_decision = None;
        let one = change(index, one);
        recorder.scheduled(one.stage, one.scenario, one.target);
        recorder.record(&one, &[], &[]);
    }
    RunSummary::build(metadata, own_health(), &recorder.take(), &[]).unwrap()
}

/// Open stages of ten seconds; the slowest and the one with errors are inside. Only the slowest and
/// the last have enough requests for a 99th percentile.
fn of_stages(count: u16) -> RunSummary {
    let metadata = RunMetadata { stages: (0..count).map(open_stage).collect(), ..metadata() };
    let ends =
        (1..=u64::from(count)).map(|n| plimsoll_measure::Moment::EPOCH + Nanos::from_secs(10 * n));
    let mut recorder = Recorder::new(ends.collect());
    for open_stage in 0..count {
        let slow = if open_stage == count / 2 { 5 } else { 1 };
        let turns = if slow > 1 || open_stage + 1 == count { 1_000 } else { 40 };
        for turn in 0..turns {
            let at = u64::from(open_stage) * 10_000_000 + turn * 10_000_000 / turns;
            let service = slow * (50_000 + turn * 577 % 1_000 * 25);
            let mut one = sample(open_stage, 0, at, service);
            one.warmup = false;
            one.conversation = plimsoll_measure::ConversationKey::arrival(at);
            if open_stage == 2 && turn % 4 == 0 {
                one = ended(one, Outcome::Failed(ErrorClass::ServerError), 503);
            }
            recorder.scheduled(StageId(open_stage), one.scenario, one.target);
            let gaps = vec![Nanos::from_micros(service / 20); one.gaps.count as usize];
            recorder.record(&one, &gaps, &[]);
        }
    }
    RunSummary::build(metadata, own_health(), &recorder.take(), &[]).unwrap()
}

fn open_stage(index: u16) -> StageInfo {
    StageInfo {
        name: format!("@{}:10s", 10 * (index + 1)),
        model: LoadModel::Open,
        start_s: f64::from(index) * 10.0,
        duration_s: 10.0,
        ..StageInfo::default()
    }
}

#[test]
fn a_valid_run_whose_threshold_failed() {
    check("failed", &summary(metadata(), health()));
}

#[test]
fn an_endpoint_that_answers_everything() {
    check("http", &plain_http(|_, one| one));
}

/// One user for an hour, or until the requests are sent.
#[test]
fn a_number_of_requests_names_the_stage_that_it_ended() {
    let mut summary = plain_http(|_, one| one);
    summary.metadata.max_requests = Some(4_000);
    let stage = summary.results.by_stage.iter_mut().find(|stage| !stage.warmup).unwrap();
    stage.stage = Some("8:1h".to_owned());
    assert!(shown(&summary, 80).contains("\n8, -n 4000 "), "{}", shown(&summary, 80));
    let report = text(&summary, PLAIN);
    assert!(report.matches("8, -n 4000 ").count() > 3 && !report.contains("1h"), "{report}");
    // Sentences name it so, too.
    let mut warned = summary.clone();
    let found = Finding::new(212).with("n", 47).with("all", 400).with("share", "11.8%");
    warned.findings = vec![found.with("stage", "8:1h")];
    let warned = shown(&warned, 120);
    assert!(warned.contains("47 of 400 requests (11.8%) of 8, -n 4000 opened"), "{warned}");
    // Ctrl-C ended it, or time.
    summary.metadata.max_requests = Some(4_001);
    assert!(shown(&summary, 80).contains("\n8, -n 4001 "), "{}", shown(&summary, 80));
    // The end of a file ended it, or a budget.
    let mut of_file = summary.clone();
    of_file.metadata.max_requests = None;
    assert!(shown(&of_file, 80).contains("\n8, whole input "), "{}", shown(&of_file, 80));
    of_file.metadata.run.stopped = Some("spent 75 tokens of 64".to_owned());
    assert!(shown(&of_file, 80).contains("\n8:1h "), "{}", shown(&of_file, 80));
    summary.results.by_stage.iter_mut().for_each(|stage| stage.duration_s = 3_600.0);
    assert!(shown(&summary, 80).contains("\n8:1h "), "{}", shown(&summary, 80));
}

/// Of 600 planned arrivals 390 were sent in time: the others, 35 %, waited for a slot.
#[test]
fn a_rate_that_was_not_kept_is_told() {
    let mut summary = of_stages(1);
    let counters = &mut summary.results.by_stage[0].counters;
    (counters.arrivals_planned, counters.arrivals_in_stage) = (600, 390);
    summary.find();
    let text = shown(&summary, 120);
    let said = "PL104  210 of 600 requests (35.00%) of @10:10s waited for a free slot";
    assert!(text.contains(said), "{text}");
    summary.results.by_stage[0].counters.arrivals_late_by_generator = 210;
    summary.find();
    assert!(!shown(&summary, 120).contains("PL104"));
}

#[test]
fn three_stages_are_all_shown() {
    check("three-stages", &of_stages(3));
    let text = shown(&of_stages(3), 100);
    for stage in ["10/s *", "20/s *", "30/s *"] {
        assert_eq!(text.matches(&format!("\n{stage} ")).count(), 1, "{text}");
    }
}

#[test]
fn of_sixty_stages_the_first_the_last_and_the_worst_are_shown() {
    let summary = of_stages(60);
    check("sixty-stages", &summary);
    let text = shown(&summary, 80);
    // The first, the one with errors, the slow one and the last, by their places above.
    for stage in ["10/s", "30/s", "310/s", "600/s"] {
        assert!(text.contains(&format!("\n{stage} ")), "{stage}:\n{text}");
    }
    let flat = text.replace('\n', " ");
    assert!(flat.contains(" of 60 stages, all in report.txt) "), "{text}");
    // Where the heading has no room, a line below the table says it.
    assert!(shown(&summary, 60).contains(" more stages in report.txt\n"), "{text}");
}

#[test]
fn an_invalid_run_says_so_in_its_last_line() {
    let mut metadata = metadata();
    metadata.run.ended = RunEnd::Interrupted;
    let health =
        InstrumentHealth { sink_written: Some(2_068), sink_overflowed: Some(12), ..health() };
    let summary = summary_of(late_samples(), metadata, health);
    check("invalid", &summary);
    let text = shown(&summary, 80);
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("INTERRUPTED: ") && last.ends_with("measurement: invalid)"), "{text}");
    // The median TTFT of the closed stage stands there with its limit.
    assert!(text.contains("6.25ms (-2.00ms)"), "{text}");
}

#[test]
fn an_interrupted_run_and_one_that_was_stopped() {
    check("interrupted", &ended_by(RunEnd::Interrupted));
    check("stopped", &ended_by(RunEnd::TooManyErrors));
    let aborted = ended_by(RunEnd::Aborted);
    check("aborted", &aborted);
    let text = shown(&aborted, 80);
    assert!(text.contains("\nINVALID: Stopped early after 21s of the run: aborted; "), "{text}");
    assert!(text.ends_with("(PL108; measurement: invalid)\n"), "{text}");
}

fn ended_by(end: RunEnd) -> RunSummary {
    let mut metadata = metadata();
    metadata.run.ended = end;
    summary(metadata, health())
}

#[test]
fn a_target_that_nobody_reaches_is_no_pass() {
    let summary = plain_http(|_, one| ended(one, Outcome::Failed(ErrorClass::ConnectRefused), 0));
    check("unreachable", &summary);
    let text = shown(&summary, 80);
    assert!(text.contains("fix: start the target, or correct its URL"), "{text}");
    assert!(
        text.ends_with(
            "FAIL: 4,000 of 4,000 requests (100%) failed: connection refused (PL201; measurement: valid)\n"
        ),
        "{text}"
    );
}

/// Of 4,000 requests: half may fail, one more may not, and refusals that are expected are answers.
#[test]
fn a_target_that_fails_most_requests_fails_the_run_before_all_other_judgements() {
    let refused = |count: usize| {
        move |index: usize, one: Sample| {
            if index < count {
                ended(one, Outcome::Failed(ErrorClass::ServerError), 503)
            } else {
                one
            }
        }
    };
    let verdict = |summary: &RunSummary| run_verdict(summary).1;
    let half = plain_http(refused(1_760));
    assert!(!verdict(&half).starts_with("FAIL"), "{}", verdict(&half));
    let mut most = plain_http(refused(3_520));
    let failed =
        "FAIL: 3,520 of 4,000 requests (88.00%) failed: status 503 (PL201; measurement: valid)";
    assert_eq!(verdict(&most), failed);
    most.metadata.run.ended = RunEnd::TooManyErrors;
    most.find();
    assert!(verdict(&most).starts_with("FAIL: ") && verdict(&most).contains("(PL201, PL108;"));
    most.metadata.run.ended = RunEnd::Complete;
    // Where the generator itself had no files left, the target is not to blame.
    let mut own = most.clone();
    let groups = own.results.by_target.iter_mut().chain([&mut own.results.total]);
    groups.for_each(|group| group.errors = [("gen_fd_exhaustion".to_owned(), 3_520)].into());
    own.find();
    assert!(!verdict(&own).starts_with("FAIL"), "{}", verdict(&own));
    most.metadata.allow_failures = true;
    most.find();
    assert_eq!(verdict(&most).split(':').next(), verdict(&half).split(':').next());
    let blocked = plain_http(|_, one| {
        let block = Some(PolicyDecision::Block);
        Sample {
            expected: block,
            policy_decision: block,
            ..ended(one, Outcome::Rejected(403), 403)
        }
    });
    assert!(!verdict(&blocked).starts_with("FAIL"), "{}", verdict(&blocked));
}

#[test]
fn what_nobody_may_answer_is_said_with_the_first_message_and_the_fix() {
    let mut summary = plain_http(|_, one| ended(one, Outcome::Rejected(401), 401));
    let messages = [("gateway".to_owned(), "\x1b[2JIncorrect key".to_owned())].into();
    let (kind, count) = ("status 401".to_owned(), 4_000);
    summary.metadata.failures = vec![FailureKind { kind, count, messages }];
    summary.find();
    check("refused", &summary);
    let text = shown(&summary, 80);
    assert!(text.contains("status 401: \\u{1b}[2JIncorrect"), "{text}");
    assert!(text.contains("0 ok, 4,000 rejected (4xx)."), "{text}");
}

#[test]
fn merged_streams_and_bands_stand_out() {
    let merged = samples().into_iter().map(|mut one| {
        one.shape = one.shape.map(|_| StreamShape::Merged);
        one
    });
    let mut summary = summary_of(merged.collect(), metadata(), health());
    summary.thresholds.clear();
    let bands = [("error_rate", "rate<0.1%|10%"), ("ttft", "p(95)<500ms|1s")];
    let bands = bands.map(|(metric, bounds)| Limit::parse(metric, bounds).unwrap());
    check("bands", &summary.with_limits(&bands));
}

#[test]
fn many_thresholds_leave_the_broken_ones() {
    let mut bounds: Vec<_> =
        (1..40).map(|n| Limit::parse("ttft", &format!("p(95)<{n}s")).unwrap()).collect();
    bounds.push(Limit::parse("success_rate", "value>0.999").unwrap());
    let summary = summary(metadata(), health());
    let summary = summary.with_limits(&bounds);
    let text = shown(&summary, 80);
    assert!(text.lines().count() <= LINES, "{text}");
    assert!(text.contains("FAIL  success_rate >99.9%: measured 98.52%"), "{text}");
    assert!(text.contains("more thresholds in report.txt"), "{text}");
}

#[test]
fn colours_are_those_of_the_words_and_a_target_has_none() {
    let mut summary = summary(metadata(), health());
    summary.metadata.notes = vec!["says \x1b[1;32mVALID\x1b[0m and \u{202e}more".to_owned()];
    let coloured = run_screen(&summary, rest()).text(Style { color: true, ..Style::plain(80) });
    assert!(coloured.contains("\x1b[1;31mFAIL\x1b[0m          error_rate <0.1%"), "{coloured}");
    assert!(coloured.contains("\n\x1b[1;31mFAIL\x1b[0m: 1 of 4 thresholds broken"), "{coloured}");
    let mut stripped = coloured;
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;32m", "\x1b[1;33m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, shown(&summary, 80));
    assert!(!stripped.contains('\x1b') && !stripped.contains('\u{202e}'), "{stripped}");
}

#[test]
fn without_files_the_rest_is_behind_a_flag() {
    let text = run_screen(&of_stages(60), Rest::Flag).text(PLAIN);
    assert!(text.replace('\n', " ").contains(" of 60 stages, all with --full) "), "{text}");
    assert!(!text.contains("files: "), "{text}");
}

/// By hand: two titles of a line, a table of 30 rows, 10 sentences and a verdict.
#[test]
fn two_screens_in_one_share_the_lines_and_the_worse_verdict() {
    let both =
        long_screen((Tone::Bad, "INVALID: late")).and(long_screen((Tone::Good, "DONE: kept up")));
    let lines = both.lines(PLAIN);
    assert_eq!(lines.len(), LINES);
    assert_eq!(lines.last().unwrap(), "INVALID: late");
    let with = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!((with("row 29"), with("row 0"), with("more rows in report.txt")), (2, 2, 2));
    assert_eq!((with("! sentence"), with("fix: a fix"), with("17 more warnings")), (3, 3, 1));
}

/// Three things of ten stand out on 23 lines, and five on 40.
#[test]
fn a_higher_terminal_shows_more() {
    let screen = long_screen((Tone::Good, "DONE: kept up"));
    let of = |lines| screen.lines(Style { lines, ..PLAIN });
    let pointed_out = |lines: &[String]| lines.iter().filter(|l| l.starts_with("! ")).count();
    let [usual, high] = [LINES, 40].map(of);
    assert!(usual.len() <= LINES && (LINES + 1..=40).contains(&high.len()), "{}", high.len());
    assert_eq!((pointed_out(&usual), pointed_out(&high)), (3, 5));
}

fn long_screen(verdict: (Tone, &str)) -> Screen {
    let mut screen = Screen::new(rest());
    screen.title("what was measured");
    let mut table = Table::new(["", "p50"]);
    (0..30).for_each(|row| table.row([format!("row {row}"), "1ms".to_owned()]));
    screen.rows("", Rows { table, unit: "rows", first: vec![29], most: 30, ..Rows::default() });
    screen.stands_out(
        (0..10).map(|n| Item::new(Tone::Unsure, &format!("sentence {n}")).fix("a fix")),
    );
    screen.verdict(verdict.0, verdict.1);
    screen
}

/// By hand: a file is read from its top, and has what a terminal has no room for.
#[test]
fn a_file_begins_with_the_verdict_and_ends_with_its_chapters() {
    let mut screen = Screen::new(rest());
    screen.title("what was measured");
    screen.judged("", "bounds", vec![Item::judged(Tone::Bad, "FAIL", "p99: 12ms")], 1);
    let mut table = Table::new(["", "p50"]);
    table.row(["row", "12ms (-8%)"]);
    table.row(["[X] row", "11ms (-8%)"]);
    let notes = vec!["a note".to_owned()];
    screen.rows("", Rows { table, notes, most: 9, unusable: &["[X]"], ..Rows::default() });
    screen.fact("a fact");
    screen.chapter(Chapter::new("empty"));
    let mut chapter = Chapter::new("Machine");
    chapter.list([("CPU", Some("a \x1b[2Jchip".to_owned())), ("steal", None)]);
    chapter.text("a sentence");
    screen.chapter(chapter);
    screen.more(1, "tables");
    screen.verdict(Tone::Bad, "FAIL: late");
    assert_eq!(
        screen.report(PLAIN),
        "\
what was measured
FAIL: late

FAIL  p99: 12ms

                p50
row      12ms (-8%)
[X] row  11ms (-8%)
  a note

a fact

Machine
  CPU  a \\u{1b}[2Jchip
  a sentence
"
    );
    // Markdown has it behind a click, where no text of it is Markdown.
    let folded = "a fact\n\n<details><summary>Machine</summary>\n\n      CPU  a \\u{1b}[2Jchip\n      \
                  a sentence\n\n</details>\n";
    let markdown = screen.markdown("");
    assert!(markdown.ends_with(folded) && !markdown.contains("more table"), "{markdown}");
    assert_eq!(
        screen.text(PLAIN),
        "\
what was measured
FAIL  p99: 12ms

                p50
row      12ms (-8%)
[X] row           -

1 more table in report.txt
a fact

files: runs/20251121T012345Z-realistic
FAIL: late
"
    );
}

#[test]
fn folders_share_a_line_if_it_has_room_for_them() {
    let mut both =
        screen_in("runs/20261124T194706Z-demo").and(screen_in("runs/20261124T194719Z-added"));
    both.file("record: calibration.json");
    let lines = |width| both.lines(Style { width, ..PLAIN });
    let record = "record: calibration.json";
    let one = "files: runs/20261124T194706Z-demo and runs/20261124T194719Z-added";
    assert_eq!(lines(one.len()), [one, record]);
    let (first, second) =
        ("files: runs/20261124T194706Z-demo", "files: runs/20261124T194719Z-added");
    assert_eq!(lines(one.len() - 1), [first, second, record]);
}

fn screen_in(folder: &str) -> Screen {
    Screen::new(Rest::Folder(folder.to_owned()))
}
