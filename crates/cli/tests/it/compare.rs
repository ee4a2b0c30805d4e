//! `plimsoll compare` on real runs, against two mocks of which one is slower.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_compare::{Comparison, Verdict};
use plimsoll_metrics::{Metric, QUANTILES, RunSummary};
use plimsoll_run_files::summary_json;

use crate::support::{Fixture, ProcessOutput, attempt, summary};

/// A mock whose first token takes 8 ms.
const FAST: &str = "{other_models: {ttft: 8ms}}";
/// One that takes 40 ms.
const SLOW: &str = "{other_models: {ttft: 40ms}}";
const STAGES: &str = "2:900ms";

/// A folder with runs against both mocks, in turns.
struct Runs {
    fixture: Fixture,
    fast: Vec<PathBuf>,
    slow: Vec<PathBuf>,
}

impl Runs {
    fn make(count: usize) -> Self {
        let (fixture, slow) = (Fixture::with(FAST), Fixture::with(SLOW));
        let mut runs = Self { fixture, fast: Vec::new(), slow: Vec::new() };
        for number in 0..count {
            let (fast, seed) = (runs.fixture.target(), number.to_string());
            let fast = runs.run(&fast, &["--name", &format!("fast-{number}"), "--seed", &seed]);
            runs.fast.push(fast);
            let target = slow.target();
            let slow = runs.run(&target, &["--name", &format!("slow-{number}"), "--key", "other"]);
            runs.slow.push(slow);
        }
        runs
    }

    /// Makes a run. The host of tests may be too busy for a valid one, which is not the question
    /// here; but its median must be usable, so a run without one is made again.
    fn run(&self, target: &str, args: &[&str]) -> PathBuf {
        let mut made = None;
        attempt(10, || {
            let run = self.run_once(target, args);
            let stored = summary(&run);
            let times = stored.results.total.distribution(Metric::ServiceTime);
            let median = times.and_then(|times| times.figure(&QUANTILES[0])?.sound());
            made = Some(run);
            median.map(drop).ok_or_else(|| "no usable median".to_owned())
        });
        let run = made.unwrap();
        let stored = RunSummary { findings: Vec::new(), ..summary(&run) };
        fs::write(run.join("summary.json"), summary_json(&stored).unwrap()).unwrap();
        run
    }

    fn run_once(&self, target: &str, args: &[&str]) -> PathBuf {
        let before = self.fixture.runs();
        let has = |flag: &str| args.contains(&flag);
        let stages = if has("--stages") { &[][..] } else { &["--stages", STAGES] };
        let key = if has("--key") { &[][..] } else { &["--key", "any"] };
        let fixed = ["run", "minimal", "--quiet", "--allow-invalid", "--target", target];
        self.fixture.plimsoll(&[&fixed, stages, key, args].concat());
        let mut after = self.fixture.runs();
        after.retain(|run| !before.contains(run));
        after.pop().unwrap()
    }

    fn compare(&self, base: &[PathBuf], new: &[PathBuf], args: &[&str]) -> ProcessOutput {
        let texts = |runs: &[PathBuf]| {
            runs.iter().map(|run| run.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let (base, new) = (texts(base), texts(new));
        let mut all = vec!["compare"];
        all.extend(base.iter().map(String::as_str));
        if !new.is_empty() {
            all.push("--new");
            all.extend(new.iter().map(String::as_str));
        }
        all.extend(args);
        self.fixture.plimsoll(&all)
    }

    /// A copy of a run with another summary.
    fn edited(&self, run: &Path, name: &str, old: &str, new: &str) -> PathBuf {
        let copy = self.fixture.folder.path().join(name);
        fs::create_dir(&copy).unwrap();
        fs::copy(run.join("plan.json"), copy.join("plan.json")).unwrap();
        let text = fs::read_to_string(run.join("summary.json")).unwrap();
        let edited = text.replacen(old, new, 1);
        assert_ne!(edited, text, "{old} is not in the summary");
        fs::write(copy.join("summary.json"), edited).unwrap();
        copy
    }
}

fn flat(output: &ProcessOutput) -> String {
    output.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

const TIME: [&str; 2] = ["--gate", "service_time.p50=50%"];

#[test]
fn six_and_six_runs_are_judged_and_written_in_every_format() {
    let runs = Runs::make(6);
    let files = ["--json", "c.json", "--markdown", "c.md", "--junit", "c.xml"];
    let args = [&TIME[..], &files].concat();
    let output = runs.compare(&runs.fast, &runs.slow, &args).expect(1);
    for part in [
        "compare: 6 + 6 runs, equal machines, same plan (",
        ", alternating in time",
        "FAIL: 1 of 1 gate failed: service_time.p50",
    ] {
        assert!(flat(&output).contains(part), "{part} is not in {}", output.stdout);
    }
    let file = |name: &str| fs::read_to_string(runs.fixture.folder.path().join(name)).unwrap();
    let found: Comparison = serde_json::from_str(&file("c.json")).unwrap();
    assert_eq!((found.verdict, found.base.len(), found.new.len()), (Verdict::Fail, 6, 6));
    // The slower mock waits 40 ms, the other 8.
    assert!(found.gates[0].new.unwrap() >= 40.0, "{:?}", found.gates);
    assert!(file("c.md").starts_with("**FAIL"));
    assert!(file("c.xml").contains("failures=\"1\""));

    the_comparison_has_a_folder_and_is_shown_again(&runs, &output, &file("c.json"));

    // The other way round the new runs are faster.
    let output = runs.compare(&runs.slow, &runs.fast, &TIME).expect(0);
    assert!(output.stdout.contains("PASS: 1 of 1 gate"), "{}", output.stdout);

    single_runs_are_inconclusive_or_judged_by_the_simple_rule(&runs);
    what_differs_is_refused_by_name(&runs);
    what_is_no_run_is_refused(&runs);
}

fn the_comparison_has_a_folder_and_is_shown_again(runs: &Runs, shown: &ProcessOutput, json: &str) {
    let folder = runs
        .fixture
        .runs()
        .into_iter()
        .find(|path: &PathBuf| path.to_str().unwrap().ends_with("-compare"))
        .unwrap();
    let file = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(file("comparison.json"), json);
    let first = shown.stdout.lines().next().unwrap();
    assert!(file("report.txt").starts_with(first), "{first}");
    let page = file("report.html");
    // The verdict comes before any chart, and each run of both sides has a line.
    let verdict = page.find("<b class=\"bad\">FAIL</b>: 1 of 1 gate failed").unwrap();
    assert!(verdict < page.find("<section").unwrap());
    for side in ["old", "new"] {
        let rows = page.matches(&format!("\"of\":\"{side}\",\"one in\":2.0,")).count();
        assert_eq!(rows, 6, "{side}: a median of each run");
    }
    let report = |args: &[&str]| {
        let folder = folder.to_str().unwrap();
        runs.fixture.plimsoll(&[&["report", folder], args].concat())
    };
    assert_eq!(report(&["--full"]).expect(0).stdout, file("report.txt"));
    assert_eq!(report(&[]).expect(0).stdout.lines().next(), Some(first));
    assert_eq!(report(&["--html"]).expect(0).stdout, page);
    assert_eq!(report(&["--format", "json"]).expect(0).stdout, json);
    let refused = report(&["--format", "csv"]).expect(2);
    assert!(refused.stderr.contains("a comparison supports the formats"), "{}", refused.stderr);
    // The folder is not a run, and has no page unless one is requested.
    let output = runs.compare(&runs.fast, &[folder], &TIME).expect(2);
    assert!(output.stderr.contains("is the folder of a comparison"), "{}", output.stderr);
    runs.compare(&runs.fast, &runs.slow, &[&TIME[..], &["--no-html", "--out", "plain"]].concat());
    let plain = fs::read_dir(runs.fixture.folder.path().join("plain")).unwrap().next().unwrap();
    let plain = plain.unwrap().path();
    assert!(plain.join("comparison.json").exists() && !plain.join("report.html").exists());
}

fn single_runs_are_inconclusive_or_judged_by_the_simple_rule(runs: &Runs) {
    let (fast, slow) = (&runs.fast[..1], &runs.slow[..1]);
    let output = runs.compare(fast, slow, &TIME).expect(4);
    let advice = "run each side 5 times, alternating";
    assert!(flat(&output).contains(advice), "{}", output.stdout);
    let passes = [&TIME[..], &["--inconclusive", "pass"]].concat();
    runs.compare(fast, slow, &passes).expect(0);
    let simple = runs.compare(fast, slow, &["--regress-pct", "10"]).expect(1);
    assert!(flat(&simple).contains("simple rule: two numbers, one run each"), "{}", simple.stdout);
}

fn what_differs_is_refused_by_name(runs: &Runs) {
    let errors = ["--gate", "error_rate=50pp"];
    let other = runs.run(&runs.fixture.target(), &["--stages", "3:900ms"]);
    let output = runs.compare(&runs.slow, &[other], &errors).expect(3);
    assert!(
        flat(&output).contains("different plan (stages): 2:900ms / 3:900ms"),
        "{}",
        output.stdout
    );

    let model = summary(&runs.fast[0]).metadata.environment.clock_source.unwrap();
    let cpu = runs.edited(
        &runs.fast[0],
        "other-clock",
        &format!("\"clock_source\": \"{model}\""),
        "\"clock_source\": \"sundial\"",
    );
    let others = [cpu];
    let output = runs.compare(&runs.slow, &others, &errors).expect(3);
    let says = format!("different clock: {model} / sundial");
    assert!(flat(&output).contains(&says), "{}", output.stdout);
    assert!(flat(&output).contains("INVALID: these runs must not be compared"));
    let allowed = [&errors[..], &["--allow-different", "clock"]].concat();
    runs.compare(&runs.slow, &others, &allowed).expect(0);

    let invalid = runs.edited(
        &runs.fast[0],
        "invalid",
        "\"findings\": []",
        r#""findings": [{"code": 106, "level": "invalid", "values": {}}]"#,
    );
    let output = runs.compare(&runs.slow, &[invalid], &errors).expect(3);
    assert!(flat(&output).contains("is unusable"), "{}", output.stdout);
}

fn what_is_no_run_is_refused(runs: &Runs) {
    let folder = |name: &str| runs.fixture.folder.path().join(name);
    for (name, file) in [("suite", "suite.json"), ("killed", "plan.json"), ("torn", "summary.json")]
    {
        fs::create_dir(folder(name)).unwrap();
        fs::write(folder(name).join(file), "{\"schema\": \"plim").unwrap();
    }
    for (name, code, part) in [
        ("absent", 2, "is not a run folder"),
        ("suite", 2, "--against"),
        ("killed", 3, "did not finish"),
        ("torn", 3, "torn/summary.json"),
    ] {
        for (base, new) in [(&runs.slow[..], &[folder(name)][..]), (&[folder(name)], &runs.slow)] {
            let output = runs.compare(base, new, &[]).expect(code);
            assert!(output.stderr.contains(part), "{name}: {}", output.stderr);
            assert_eq!(output.stderr.lines().count(), 1, "{name}: {}", output.stderr);
        }
    }
    for (args, part) in [
        (&["--gate", "tftt.p50=3%"][..], "did you mean `ttft`"),
        (&["--allow-different", "cpus"], "`cpus` is nothing that can differ"),
        (&["--regress-pct", "10"], "but 6 + 6 were given"),
    ] {
        let output = runs.compare(&runs.slow, &runs.fast, args).expect(2);
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
    }
    let output = runs.compare(&runs.slow, &runs.slow[..1], &[]).expect(2);
    assert!(output.stderr.contains("is given twice"), "{}", output.stderr);
}

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ci-compare");

/// Tests the script of the guide; the host may make one of its runs invalid, which ends it with 3.
#[test]
fn the_script_for_pull_requests_fails_a_slower_version() {
    attempt(15, || {
        let (old, new) = (Fixture::with(FAST), Fixture::with(SLOW));
        let profile = old.folder.path().join("profile.yaml");
        let lines = "model: m\nkey: k\nstages: 2:900ms\ngate: {service_time.p50: 50%}\n\
                     content: {mode: sized, approx_input_tokens: 20}\n";
        fs::write(&profile, lines).unwrap();
        let output = std::process::Command::new(EXAMPLE)
            .args([profile.to_str().unwrap(), &old.target(), &new.target()])
            .current_dir(old.folder.path())
            .envs([("RUNS", "2"), ("OUT", "out"), ("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll"))])
            .output()
            .unwrap();
        let output = ProcessOutput::from(output);
        let comment = fs::read_to_string(old.folder.path().join("out/comparison.md"));
        match (output.code, comment) {
            (Some(1), Ok(comment)) if comment.starts_with("**FAIL") => Ok(()),
            (code, _) => Err(format!("{code:?}: {}{}", output.stdout, output.stderr)),
        }
    });
}

#[test]
fn a_run_records_the_hash_of_its_plan() {
    let fixture = Fixture::with(FAST);
    for (name, stages, seed) in
        [("a", "1:200ms", "1"), ("b", "1:200ms", "2"), ("c", "2:200ms", "1")]
    {
        fixture.run(&["minimal", "--name", name, "--stages", stages, "--seed", seed]).expect(0);
    }
    let hash = |name: &str| {
        let run = fixture
            .runs()
            .into_iter()
            .find(|run: &PathBuf| run.to_str().unwrap().ends_with(&format!("-{name}")))
            .unwrap();
        summary(&run).metadata.run.plan_hash
    };
    assert_eq!(hash("a").len(), 16);
    assert_eq!(hash("a"), hash("b"));
    assert_ne!(hash("a"), hash("c"));
}
