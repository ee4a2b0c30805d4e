//! Runs that must not be compared: each obstacle names its reason.

use plimsoll_compare::{CompareError, Options, StoredRun, Verdict, compare};
use plimsoll_metrics::{Finding, Judgement, Level, RunEnd};
use serde_json::json;

use crate::support::{Figures, PLAIN, THREE, options, plan, run, run_of, turns};

fn pair() -> (Vec<StoredRun>, Vec<StoredRun>) {
    turns(6, || PLAIN, || PLAIN)
}

#[test]
fn single_runs_are_inconclusive_and_say_what_to_do() {
    let slow = Figures { ttft: [22.0, 41.0], ..PLAIN };
    let (base, new) = turns(1, || PLAIN, || slow);
    let found = compare(&base, &new, &options(&THREE)).unwrap();
    assert_eq!(found.verdict, Verdict::Inconclusive);
    let text = found.text(1_000).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["ttft.p99, throughput: one run on each side", "run each side 5 times, alternating"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// Whatever the gates are: a target that fails in the new runs alone is worse.
#[test]
fn a_target_that_fails_in_a_new_run_fails_the_comparison() {
    let fails = |run: &mut StoredRun| {
        let finding = Finding::new(201).with("n", "160").with("all", "160").with("share", "100%");
        let finding = finding.with("class", "rate limited (status 429)").with("action", "wait");
        let finding = finding.with("rejected", "were rejected");
        run.summary.findings.push(finding.at(Level::Fail));
    };
    let (mut base, mut new) = turns(1, || PLAIN, || PLAIN);
    fails(&mut new[0]);
    let found = compare(&base, &new, &options(&THREE)).unwrap();
    let (sentence, why) = (
        found.verdict_sentence(),
        "160 of 160 requests (100%) failed or were rejected: rate limited",
    );
    assert!(sentence.starts_with("FAIL: ") && sentence.contains(why), "{sentence}");
    assert_eq!(found.verdict, Verdict::Fail);
    let text = found.text(1_000);
    assert!(text.contains("fix: remove the cause, then run that side again"), "{text}");
    assert!(!text.contains("gates") && !text.contains("--allow-different"), "{text}");
    assert!(found.junit(true).unwrap().contains("<failure"));
    new[0].summary.metadata.run.ended = RunEnd::TooManyErrors;
    assert_eq!(compare(&base, &new, &options(&THREE)).unwrap().verdict, Verdict::Fail);
    fails(&mut base[0]);
    let found = compare(&base, &new, &options(&THREE)).unwrap();
    assert_eq!(found.verdict, Verdict::Inconclusive, "it failed before, too");
}

/// Changes one property of the last new run, and expects the comparison to name it.
fn refused(change: impl Fn(&mut StoredRun), says: &str, name: &str) {
    let (base, mut new) = pair();
    change(new.last_mut().unwrap());
    let found = compare(&base, &new, &options(&THREE)).unwrap();
    assert_eq!((found.verdict, found.gates.len()), (Verdict::Inconclusive, 0), "{says}");
    let remedy = if name.is_empty() {
        "fix: remove the cause, then run that side again".to_owned()
    } else {
        format!("fix: run both sides alike, or allow it: --allow-different {name}")
    };
    for says in [says, &remedy] {
        assert!(found.text(1_000).contains(says), "{says} is not in {}", found.text(1_000));
    }
    assert!(found.markdown().starts_with("**INVALID"), "{says}");
    let allowed = Options { allow_different: vec![name.to_owned()], ..options(&THREE) };
    if !name.is_empty() {
        let found = compare(&base, &new, &allowed).unwrap();
        assert_eq!(found.verdict, Verdict::Pass, "{name}");
        assert!(found.text(1_000).contains(&format!("different {name}")) || name == "plan");
    }
}

#[test]
fn another_machine_instrument_or_plan_is_refused_by_name_and_may_be_allowed() {
    type Change = fn(&mut StoredRun);
    let changes: [(Change, &str, &str); 9] = [
        (
            |run| run.summary.metadata.environment.cpu_model = Some("Other".to_owned()),
            "different cpu: Some CPU @ 2.50GHz / Other",
            "cpu",
        ),
        (|run| run.summary.metadata.environment.cpu_count = Some(4), "count: 2 / 4", "count"),
        (|run| run.summary.metadata.environment.kernel = None, "kernel: Linux 6.18 / -", "kernel"),
        (|run| run.summary.metadata.environment.memory_bytes = Some(1 << 30), "memory", "memory"),
        (
            |run| run.summary.metadata.environment.clock_source = Some("hpet".to_owned()),
            "clock: tsc / hpet",
            "clock",
        ),
        (|run| run.summary.metadata.environment.cpu_quota = Some(1.5), "quota: - / 1.5", "quota"),
        (
            |run| run.summary.metadata.run.tool_version = "0.1.0".to_owned(),
            "version: 0.2.0 / 0.1.0",
            "version",
        ),
        (
            |run| {
                let versions = &mut run.summary.metadata.environment.versions;
                versions.insert("build".to_owned(), "release".to_owned());
            },
            "build: dist / release",
            "build",
        ),
        (
            |run| {
                let mut other = plan();
                other["limits"]["timeout"] = json!("31s");
                *run = StoredRun::new(run.path.clone(), run.summary.clone(), Some(other));
            },
            "different plan (limits.timeout): 30s / 31s",
            "plan",
        ),
    ];
    for (change, says, name) in changes {
        refused(change, says, name);
    }
}

#[test]
fn invalid_and_unfinished_runs_are_refused() {
    refused(
        |run: &mut StoredRun| run.summary.findings = vec![Finding::new(101)],
        "runs/11 is unusable",
        "",
    );
    for (ended, says) in [
        (RunEnd::Interrupted, "runs/11 was interrupted"),
        (RunEnd::TooManyErrors, "runs/11 was stopped"),
        (RunEnd::Unfinished, "runs/11 did not finish"),
    ] {
        refused(|run| run.summary.metadata.run.ended = ended, says, "");
    }
}

#[test]
fn what_differs_by_design_is_no_obstacle() {
    let (base, mut new) = pair();
    for run in &mut new {
        let mut other = plan();
        other["targets"] = json!([{"url": "http://127.0.0.1:9001"}]);
        other["seed"] = json!(2);
        *run = StoredRun::new(run.path.clone(), run.summary.clone(), Some(other));
        run.summary.metadata.targets[0].name = "b".to_owned();
        run.summary.results.cells[0].target = Some("b".to_owned());
        run.summary.metadata.environment.load_average = Some((1.0, 2.0, 3.0));
    }
    let found = compare(&base, &new, &options(&THREE)).unwrap();
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.text(1_000));
    assert!(found.cells.compared > 0);
}

#[test]
fn a_summary_without_its_plan_is_compared_by_the_hash() {
    let (base, mut new) = pair();
    for run in &mut new {
        run.summary.metadata.run.plan_hash = plimsoll_compare::plan::hash(&plan());
        run.plan = None;
    }
    let same = compare(&base, &new, &options(&THREE)).unwrap();
    assert_eq!(same.verdict, Verdict::Pass, "{}", same.text(1_000));
    new[0].summary.metadata.run.plan_hash = "0123456789abcdef".to_owned();
    let other = compare(&base, &new, &options(&THREE)).unwrap();
    assert!(other.text(1_000).contains("different plan"), "{}", other.text(1_000));
    assert!(other.text(1_000).contains("0123456789abcdef"), "{}", other.text(1_000));
}

#[test]
fn runs_that_did_not_take_turns_are_noted() {
    let base: Vec<_> = (0..6).map(|number| run(number, PLAIN)).collect();
    let new: Vec<_> = (6..12).map(|number| run(number, PLAIN)).collect();
    let found = compare(&base, &new, &options(&THREE)).unwrap();
    assert_eq!(found.alternating, Some(false));
    assert!(found.text(1_000).contains("a drift of the machine looks like a change"));
}

#[test]
fn wrong_usage_is_an_error() {
    let (base, new) = pair();
    let twice = compare(&base, &base[..1], &options(&THREE)).unwrap_err();
    assert!(matches!(twice, CompareError::Twice(..)) && twice.is_usage(), "{twice}");
    let unknown = Options { allow_different: vec!["cpus".to_owned()], ..options(&THREE) };
    let unknown = compare(&base, &new, &unknown).unwrap_err().to_string();
    assert!(unknown.contains("`cpus`") && unknown.contains("plan, model, features"), "{unknown}");
    let gate = compare(&base, &new, &options(&[("tftt.p50", "3%")])).unwrap_err();
    assert!(gate.to_string().contains("did you mean `ttft`"), "{gate}");
    let simple = Options { regress: Some(0.1), ..Options::default() };
    let simple = compare(&base, &new, &simple).unwrap_err().to_string();
    assert!(simple.contains("6 + 6 were given"), "{simple}");
}

#[test]
fn the_simple_rule_takes_the_tail_that_both_runs_have() {
    let simple = |gates: &[(&str, &str)]| Options { regress: Some(0.1), ..options(gates) };
    for (old, new, tail) in
        [(10_000, 10_000, "p99"), (10_000, 240, "p95"), (240, 10_000, "p95"), (20, 20, "")]
    {
        let (base, new) = ([run_of(old, 0, PLAIN)], [run_of(new, 1, PLAIN)]);
        let found = compare(&base, &new, &simple(&[])).unwrap();
        let mut tails: Vec<_> = found
            .gates
            .iter()
            .filter_map(|gate| gate.name.split(['.', '{']).nth(1))
            .filter(|tail| *tail != "p50" && tail.starts_with('p'))
            .collect();
        tails.dedup();
        assert_eq!(tails.join(" "), tail, "{:?}", found.gates);
        assert_eq!(found.verdict, Verdict::Pass);
    }
    // More runs do not help if a figure is missing, and the flags for variation exclude the rule.
    let (base, new) = (run(0, PLAIN), run(1, PLAIN));
    let found = compare(&[base], &[new], &simple(&[("itl.p50", "3%")])).unwrap();
    let text = found.text(1_000);
    assert!(text.contains("; make each run longer, or gate another figure"), "{text}");
    assert!(!text.contains("--run-sd"), "{text}");
}

#[test]
fn a_figure_that_a_run_does_not_have_is_inconclusive() {
    let (base, new) = pair();
    let found = compare(&base, &new, &options(&[("itl.p50", "3%"), ("cpu", "3%")])).unwrap();
    assert_eq!(found.verdict, Verdict::Inconclusive);
    for (gate, says) in found.gates.iter().zip(["runs/0: no completed request", "--watch"]) {
        let Judgement::Inconclusive(why) = &gate.judged.judgement else { unreachable!("{gate:?}") };
        assert!(why.contains(says), "{why}");
    }
}
