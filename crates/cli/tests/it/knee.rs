//! `plimsoll knee` against a mock. How well a search finds a knee is tested by simulation.

use std::fs;

use serde_json::Value;

use crate::support::Fixture;

#[test]
fn a_load_that_is_kept_in_short_probes_is_no_proof() {
    let fixture = Fixture::with("{other_models: {ttft: 1ms}, log: memory}");
    let target = fixture.target();
    // A profile without stages will do.
    let profile = "protocol: http\nhttp: {method: GET, path: /health}\n";
    fs::write(fixture.folder.path().join("own.yaml"), profile).unwrap();
    let args = ["knee", "own.yaml", "--target", &target, "--slo"];
    let search =
        ["response_time<9s : 60%", "--from", "20.7", "--to", "20.7", "--confirm", "0s", "-q"];
    let output = fixture.plimsoll(&[&args[..], &search, &["--at-least", "10"]].concat()).expect(4);
    let last = output.expect_screen();
    let word = "INCONCLUSIVE: 10.0/s required; capacity at least 19.7/s (for 2s only)";
    assert!(last.starts_with(word), "{last}");
    let run = fixture.only_run();
    let json = fs::read_to_string(run.join("knee.json")).unwrap();
    let knee = &serde_json::from_str::<Value>(&json).unwrap()["knees"][0];
    assert_eq!(
        (&knee["knee"]["kind"], &knee["at_least"]["state"]),
        (&"at_least".into(), &"unclear".into())
    );
    // Every request that was counted reached the mock; the warm-up did, too, and is not counted.
    let counted: u64 = knee["probes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|probe| probe["requests"].as_u64().unwrap())
        .sum();
    let seen = fixture.mock.take_log().len() as u64;
    assert!((60..=140).contains(&counted) && seen > counted, "{counted} of {seen}");
    let point = &knee["probes"][0]["figures"];
    let figure = |key: &str| point[key].as_f64().unwrap();
    let count = |key: &str| knee["probes"][0][key].as_f64().unwrap();
    assert!((19.7..21.7).contains(&(count("requests") / count("seconds"))), "{knee}");
    assert!(figure("in_flight") < 5.0 && figure("goodput_per_s") <= 20.7001, "{point}");
    assert_eq!((&point["ttft_p50_ms"], &point["tokens_per_s"]), (&Value::Null, &Value::Null));
    let file = |name: &str| fs::read_to_string(run.join(name)).unwrap();
    assert!(file("report.txt").contains("20.7/s"));
    // The page, and everything again from the folder.
    let report = |args: &[&str]| {
        let args = [&["report", run.to_str().unwrap()], args].concat();
        fixture.plimsoll(&args).expect(0).stdout
    };
    let page = report(&["--html"]);
    assert_eq!(page, file("report.html"));
    assert!(page.contains("<section id=\"kept\"") && page.contains("capacity at least 19.7/s"));
    assert_eq!(report(&["--format", "json"]), json);
    assert!(report(&["--full"]).contains("20.7/s"));
    let folder = format!("{}/", fixture.folder.path().display());
    assert_eq!(report(&[]).replace(&folder, ""), output.stdout);
}

/// Two mocks, one of which is too slow for the objective: they take turns, and each has a result.
#[test]
fn several_targets_take_turns() {
    let fast = Fixture::with("{other_models: {ttft: 1ms}, log: memory}");
    let slow = Fixture::with("{other_models: {ttft: 900ms}, log: memory}");
    let profile = "protocol: openai-chat\nstream: true\nmodel: m\nkey: k\nmax_tokens: 4\ncontent: {mode: sized, approx_input_tokens: 8}\n";
    fs::write(fast.folder.path().join("own.yaml"), profile).unwrap();
    let targets = [format!("fast={}", fast.target()), format!("slow={}", slow.target())];
    let args = ["knee", "own.yaml", "--target", &targets[0], "--target", &targets[1], "--slo"];
    let search = ["ttft<500ms : 60%", "--from", "20", "--to", "20", "--confirm", "0s", "-q"];
    let output = fast.plimsoll(&[&args[..], &search].concat()).expect(1);
    let last = output.expect_screen();
    assert!(
        last.starts_with("FAIL: capacity fast at least 19.1/s (for 2s only), slow below 21.0/s"),
        "{last}"
    );
    let json = fs::read_to_string(fast.only_run().join("knee.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let kinds: Vec<_> = json["knees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|knee| (knee["name"].as_str().unwrap(), knee["knee"]["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds, [("fast", "at_least"), ("slow", "below")]);
    let point = &json["knees"][0]["probes"][0]["figures"];
    assert!(point["tokens_per_s"].as_f64().unwrap() > 1.0, "{point}");
    assert!(!fast.mock.take_log().is_empty() && !slow.mock.take_log().is_empty());
}

/// A target that refuses every connection is named at once, and is not four loads that were missed.
#[test]
fn a_dead_target_ends_the_search() {
    let fixture = Fixture::with("{other_models: {ttft: 1ms}}");
    let profile = "protocol: http\nhttp: {method: GET, path: /health}\n";
    fs::write(fixture.folder.path().join("own.yaml"), profile).unwrap();
    let args = ["knee", "own.yaml", "--target", "http://127.0.0.1:1", "-q"];
    let output = fixture.plimsoll(&[&args[..], &["--slo", "ttfb<1s : 99%"]].concat()).expect(1);
    assert!(output.expect_screen().starts_with("FAIL: "));
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("failed from 1s of the search on, and so did those at 10.0/s right after"),
        "{text}"
    );
    assert!(text.contains("connection refused"), "{text}");
    let json = fs::read_to_string(fixture.only_run().join("knee.json")).unwrap();
    let knee = &serde_json::from_str::<Value>(&json).unwrap()["knees"][0];
    assert!(knee["took_s"].as_f64().unwrap() < 20.0, "{knee}");
    assert_eq!((&knee["verdict"], &knee["findings"][0]["code"]), (&"fail".into(), &605.into()));
}

#[test]
fn wrong_usage_names_the_fix() {
    let fixture = Fixture::with("{other_models: {ttft: 1ms}}");
    let target = fixture.target();
    for (slo, flags, says) in [
        ("speed<1s : 99%", &[][..], "unknown time `speed`"),
        ("ttft<1s", &[], "has no share of requests"),
        (
            "ttft<1s : 99%",
            &["--from", "9", "--to", "3"],
            "the highest load, 3, is below the lowest, 9",
        ),
        ("ttft<1s : 99%", &["-c", "9,3"], "the highest load, 3, is below the lowest, 9"),
        ("ttft<1s : 99%", &["--stages", "5:5s"], "leave out --stages"),
        ("ttft<1s : 99%", &["--shard", "0/2"], "leave out --shard"),
        ("ttft<1s : 99%", &["--budget", "10s"], "too short for a search"),
        ("ttft<1s : 99%", &["--target", "http://127.0.0.1:1"], "several targets need names"),
    ] {
        let args = ["knee", "minimal", "--target", &target, "--key", "k", "--slo", slo];
        let output = fixture.plimsoll(&[&args[..], flags].concat()).expect(2);
        assert!(output.stderr.contains(says), "{slo} {flags:?}: {}", output.stderr);
    }
    assert!(fixture.runs().is_empty());
}
