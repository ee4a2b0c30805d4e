//! Shards that do not belong together, and shards that were lost.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_measure::Stripe;
use plimsoll_merge::{Judges, MergeError, Merged, Shard, ShardSet};
use plimsoll_metrics::{Finding, Judgement, Level, Limit, ShardState};
use serde_json::{Value, json};

use crate::support::{
    REQUESTS, count_until, shard, shards, write, write_counts, write_counts_until,
};

fn set(folders: &[PathBuf], expect: Option<u64>) -> Result<ShardSet, MergeError> {
    ShardSet::new(read(folders)?, expect, None)
}

fn read(folders: &[PathBuf]) -> Result<Vec<Shard>, MergeError> {
    folders.iter().map(|folder: &PathBuf| Shard::read(folder)).collect()
}

fn merge(folders: &[PathBuf]) -> Merged {
    merge_with(folders, 0.0)
}

fn merge_with(folders: &[PathBuf], lost_at_most: f64) -> Merged {
    let limits = [Limit::parse("completed", "count>1").unwrap()];
    let judges = Judges { limits: &limits, lost_at_most };
    set(folders, None).unwrap().merge(judges).unwrap()
}

/// The text of rule 109.
fn incomplete(done: &str, below: &str, lost: &str) -> String {
    format!(
        "{done} shards completed: {lost}. The load is {below} below the plan; percentiles cover the \
         requests that were sent."
    )
}

/// Changes a value in the `plan.json` of a shard.
fn change(folder: &Path, place: &str, value: Value) {
    let path = folder.join("plan.json");
    let mut plan: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    *plan.pointer_mut(place).unwrap() = value;
    fs::write(path, plan.to_string()).unwrap();
}

#[test]
fn shards_of_different_runs_are_refused_with_what_differs() {
    for (place, value, words) in [
        ("/metadata/run/seed", json!(8), "the seed is 7 in the first and 8 in the second"),
        ("/metadata/run/run_id", json!("r2"), "the run id is `r1`"),
        ("/metadata/run/launch", json!("second"), "the launch is `first`"),
        ("/metadata/run/tool_version", json!("9"), "the version of plimsoll"),
        ("/metadata/run/build", json!("dist"), "the build of plimsoll is dist full in the first"),
        ("/metadata/run/shard", json!("1/3"), "the number of shards is 2"),
        ("/schedule_fingerprint", json!("1"), "the hash of the schedule"),
        ("/plan/limits/timeout", json!("9s"), "the plan's limits timeout is \"30s\""),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let folders = shards(parent.path(), 2);
        change(&folders[1], place, value);
        let error = set(&folders, None).unwrap_err().to_string();
        assert!(error.contains(words), "{place}: {error}");
        assert!(error.contains("shard-00001-of-00002"), "{error}");
    }
}

#[test]
fn a_shard_twice_another_number_or_no_shard_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let mut folders = shards(parent.path(), 2);
    let error = set(&folders, Some(3)).unwrap_err().to_string();
    assert!(error.contains("--expect 3") && error.contains("2 shards"), "{error}");
    folders.push(folders[0].clone());
    let error = set(&folders, None).unwrap_err().to_string();
    assert!(error.contains("shard 0/2 appears twice"), "{error}");
    let error = set(&[parent.path().to_owned()], None).unwrap_err().to_string();
    assert!(error.contains("no plan.json"), "{error}");
    let whole = shard(parent.path(), Stripe::WHOLE);
    let error = set(&[whole], None).unwrap_err().to_string();
    assert!(error.contains("it holds a whole run"), "{error}");
    assert!(set(&[], None).unwrap_err().to_string().contains("no shard"));
}

fn reason(merged: &Merged) -> String {
    let mut invalid = merged.summary.of_level(Level::Invalid);
    invalid.next().map_or_else(|| "valid".to_owned(), Finding::text)
}

#[test]
fn a_missing_shard_is_named_and_nothing_is_judged_until_it_turns_up() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 3);
    let merged = merge(&[folders[0].clone(), folders[2].clone()]);
    assert_eq!(reason(&merged), incomplete("2 of 3", "33.3%", "shard 1/3 is missing"));
    let judged = &merged.summary.thresholds[0];
    assert!(matches!(&judged.judgement, Judgement::Inconclusive(why) if why.contains("1/3")));
    let states: Vec<_> = merged.summary.shards.iter().map(|shard| shard.state).collect();
    assert_eq!(states, [ShardState::Done, ShardState::Missing, ShardState::Done]);
    // Two thirds of the load are known.
    assert_eq!(merged.summary.results.total.counters.scheduled, REQUESTS / 3 * 2);
    let again = merge(&folders);
    assert_eq!(
        (reason(&again).as_str(), &again.summary.thresholds[0].judgement),
        ("valid", &Judgement::Pass)
    );
}

#[test]
fn shards_of_an_earlier_launch_do_not_count() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 3);
    let of = |launch| ShardSet::new(read(&folders).unwrap(), Some(3), Some(launch));
    let all = of("first").unwrap().merge(Judges::default()).unwrap();
    assert_eq!(reason(&all), "valid");
    let none = of("second").unwrap_err().to_string();
    assert!(
        none.contains("no shard belongs to launch `second`") && none.contains("`first`"),
        "{none}"
    );
    change(&folders[2], "/metadata/run/launch", json!("second"));
    say(&folders[2], &json!({"launch": "second"}));
    for (launch, done, below, missing) in [
        ("second", "1 of 3", "66.7%", "shard 0/3 is missing; shard 1/3 is missing"),
        ("first", "2 of 3", "33.3%", "shard 2/3 is missing"),
    ] {
        let merged = of(launch).unwrap().merge(Judges::default()).unwrap();
        assert_eq!(reason(&merged), incomplete(done, below, missing), "{launch}");
    }
}

#[test]
fn a_shard_that_was_cut_off_counts_up_to_there_and_makes_the_whole_invalid() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 2);
    for file in ["shard.json", "summary.json"] {
        fs::remove_file(folders[1].join(file)).unwrap();
    }
    let merged = merge(&folders);
    assert_eq!(
        reason(&merged),
        incomplete(
            "1 of 2",
            "0%",
            "shard 1/2 sent its whole load, but not all of its files are there"
        )
    );
    write_counts(&folders[1], Stripe::new(1, 2).unwrap(), false);
    let merged = merge(&folders);
    assert_eq!(reason(&merged), incomplete("1 of 2", "5.00%", "shard 1/2 left counts up to 9s"));
    assert_eq!(merged.summary.results.total.counters.scheduled, REQUESTS);
    fs::remove_file(folders[1].join("counts.bin")).unwrap();
    let merged = merge(&folders);
    let lost = "shard 1/2 left no counts";
    assert_eq!(reason(&merged), incomplete("1 of 2", "50.0%", lost));
}

/// The status of a shard with these keys besides.
fn say(folder: &Path, keys: &Value) {
    let path = folder.join("shard.json");
    let mut status: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let members = status.as_object_mut().unwrap();
    members.remove("crc32");
    members.extend(keys.as_object().unwrap().clone());
    fs::write(path, with_digest(&status.to_string())).unwrap();
}

/// `shard.json` with its own digest as the last member.
fn with_digest(status: &str) -> String {
    let content = &status[..status.len() - 1];
    format!("{content},\"crc32\":{}}}\n", crc32(content.as_bytes()))
}

#[test]
fn a_late_shard_is_told_apart_from_one_that_was_cut_off() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 3);
    for file in ["summary.json", "counts.bin"] {
        fs::remove_file(folders[2].join(file)).unwrap();
    }
    say(&folders[2], &json!({"state": "late", "late_by_ns": 2_300_000_000_u64}));
    fs::remove_file(folders[0].join("shard.json")).unwrap();
    write_counts(&folders[0], Stripe::new(0, 3).unwrap(), false);
    let merged = merge(&folders);
    assert_eq!(
        reason(&merged),
        incomplete(
            "1 of 3",
            "36.7%",
            "shard 0/3 left counts up to 9s; shard 2/3 was ready 2.3s late and sent nothing"
        )
    );
    // Which of them sent nothing is one thing, what was lost of the others another.
    assert_eq!(merged.summary.results.total.counters.scheduled, REQUESTS / 3 * 2);
}

#[test]
fn a_shard_that_a_signal_ended_is_named_with_time_and_share_and_the_plan_is_not_shortened() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 3);
    let planned = |merged: &Merged| merged.summary.results.total.counters.arrivals_planned;
    assert_eq!(planned(&merge(&folders)), REQUESTS);
    let signal =
        |at_s: f64| json!({"state": "partial", "interrupted": {"at_s": at_s, "of_s": 10.0}});
    say(&folders[1], &signal(4.1));
    // Of its 300 arrivals it counted those of 4 seconds.
    write_counts_until(&folders[1], Stripe::new(1, 3).unwrap(), 4);
    let merged = merge(&folders);
    let words = incomplete("2 of 3", "19.7%", "shard 1/3 got a signal at 4.1s of 10s");
    assert_eq!(reason(&merged), words);
    let judged = &merged.summary.thresholds[0].judgement;
    assert!(matches!(judged, Judgement::Inconclusive(why) if why.contains("1/3")), "{judged:?}");
    assert_eq!((planned(&merged), merged.summary.health.planned_arrivals), (900, Some(900)));
    // 133 of its 300 arrivals are due in the first 4 seconds.
    assert_eq!(merged.summary.health.achieved_arrivals, Some(733));
    assert_eq!(merged.summary.of_level(Level::Invalid).count(), 1);
    // A shard of which nothing is known leaves the plan as it is, too.
    assert_eq!(planned(&merge(&folders[..2])), REQUESTS);
    // Where a signal ended all of them, the run is interrupted, as that of one process.
    for (folder, at_s) in folders.iter().zip([4.0, 4.1, 4.0]) {
        say(folder, &signal(at_s));
    }
    let merged = merge(&folders);
    assert_eq!((reason(&merged).as_str(), planned(&merged)), ("valid", 733));
    let of_shards = merged.summary.shards.iter().map(|part| part.state);
    assert!(of_shards.clone().all(|state| state == ShardState::Partial), "{of_shards:?}");
}

/// The missing part of a load, whether 40 % may be missing, and the message.
#[test]
fn losses_up_to_a_share_are_stated_and_the_rest_is_judged() {
    type Loss = fn(&[PathBuf]);
    let cases: [(&str, f64, bool, Loss); 7] = [
        ("a missing shard of three", 0.4, true, |all| fs::remove_dir_all(&all[1]).unwrap()),
        ("the same, a third accepted", 1.0 / 3.0, true, |all| fs::remove_dir_all(&all[1]).unwrap()),
        ("the same, less accepted", 0.3, false, |all| fs::remove_dir_all(&all[1]).unwrap()),
        ("two of three", 0.4, false, |all| {
            all[1..].iter().for_each(|f| fs::remove_dir_all(f).unwrap());
        }),
        ("cut off after 4 of 10 s", 0.21, true, cut_at_4_s),
        ("the same, less accepted", 0.19, false, cut_at_4_s),
        // It counted everything, but a file of it cannot be used.
        ("a damaged file", 0.3, false, |all| {
            say(&all[1], &json!({"files": {"results.jsonl": {"bytes": 7, "crc32": 1}}}));
        }),
    ];
    for (what, most, accepted, lose) in cases {
        let parent = tempfile::tempdir().unwrap();
        let folders = shards(parent.path(), 3);
        lose(&folders);
        let kept: Vec<_> = folders.into_iter().filter(|folder| folder.exists()).collect();
        let merged = merge_with(&kept, most).summary;
        assert_eq!(merged.is_valid(), accepted, "{what}: {:?}", merged.findings);
        let judged = &merged.thresholds[0].judgement;
        assert_eq!(*judged == Judgement::Pass, accepted, "{what}: {judged:?}");
        let told: Vec<_> =
            merged.of_level(Level::Warning).filter(|finding| finding.code == 109).collect();
        assert_eq!(told.len(), usize::from(accepted), "{what}: {:?}", merged.findings);
        let counters = merged.results.total.counters;
        // The plan is the whole one, unless its rest is what was judged.
        let planned = if accepted { counters.scheduled } else { REQUESTS };
        assert_eq!(counters.arrivals_planned, planned, "{what}");
    }
}

/// The length of the load comes from the plan, although the counted part is shorter.
#[test]
fn a_loss_of_all_shards_is_not_accepted_as_a_small_one() {
    let late = json!({"state": "late", "late_by_ns": 60_000_000_000_u64});
    for (seconds, share) in [(0, "100%"), (4, "60.0%")] {
        let parent = tempfile::tempdir().unwrap();
        let folders = shards(parent.path(), 2);
        for (index, folder) in (0..).zip(&folders) {
            fs::remove_file(folder.join("summary.json")).unwrap();
            if seconds == 0 {
                fs::remove_file(folder.join("counts.bin")).unwrap();
                say(folder, &late);
            } else {
                fs::remove_file(folder.join("shard.json")).unwrap();
                write(folder, &count_until(Stripe::new(index, 2).unwrap(), seconds), false);
            }
        }
        let merged = merge_with(&folders, 0.5).summary;
        assert!(!merged.is_valid(), "{:?}", merged.findings);
        let found = merged.findings.iter().find(|finding| finding.code == 109).unwrap();
        assert_eq!(found.values["share"], share);
    }
}

fn cut_at_4_s(all: &[PathBuf]) {
    say(&all[1], &json!({"state": "partial", "interrupted": {"at_s": 4.0, "of_s": 10.0}}));
    write_counts_until(&all[1], Stripe::new(1, 3).unwrap(), 4);
}

#[test]
fn clocks_that_a_launcher_compared_are_set_right_and_their_uncertainty_is_told() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 2);
    let spread = |merged: &Merged| {
        let starts = merged.summary.shards.iter().filter_map(|part| part.start_s);
        starts.fold(0.0, f64::max)
    };
    assert!(spread(&merge(&folders)) < 0.001);
    // The second host's clock is an hour ahead, which its launcher found out to 3 ms.
    let path = folders[1].join("summary.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("1763688225000000000", "1763691825000000000")).unwrap();
    say(&folders[0], &json!({"clock_offset_ns": 0, "clock_uncertainty_ns": 1_000_000}));
    let hour = 3_600_000_000_000_i64;
    say(&folders[1], &json!({"clock_offset_ns": hour, "clock_uncertainty_ns": 3_000_000}));
    let merged = merge(&folders);
    assert_eq!(reason(&merged), "valid");
    assert!(spread(&merged) < 0.001);
}

#[test]
fn rates_of_shards_that_were_all_cut_off_are_those_of_the_counted_time() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 2);
    for folder in &folders {
        for file in ["shard.json", "summary.json"] {
            fs::remove_file(folder.join(file)).unwrap();
        }
        change(folder, "/metadata/stages/0/duration_s", json!(60.0));
    }
    let merged = merge(&folders);
    assert!(reason(&merged).starts_with("0 of 2 shards completed"));
    // 90 of 100 requests each second are answered well, for as long as was counted.
    let rate = merged.summary.results.total.rates.throughput_per_s.unwrap();
    assert!((85.0..95.0).contains(&rate), "{rate}");
}

#[test]
fn clocks_an_hour_apart_make_the_whole_invalid() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 2);
    let path = folders[1].join("summary.json");
    let text = fs::read_to_string(&path).unwrap();
    let later = text.replace("1763688225000000000", "1763691825000000000");
    fs::write(&path, later).unwrap();
    let found = reason(&merge(&folders));
    assert!(found.contains("3,600s apart"), "{found}");
}

/// An interrupted copy leaves a truncated file: the other shards count, the shard is named with its
/// file, and the merge is repeated once the file is whole.
#[test]
fn a_damaged_file_makes_the_whole_invalid_with_the_shard_and_the_file() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 3);
    for name in ["counts.bin", "summary.json", "shard.json"] {
        let path = folders[1].join(name);
        let whole = fs::read(&path).unwrap();
        for length in [0, 5, 30, whole.len() / 2, whole.len() - 2] {
            fs::write(&path, &whole[..length]).unwrap();
            let merged = merge(&folders);
            let found = reason(&merged);
            let words = format!("shard 1/3 has damaged files ({name}: ");
            assert!(found.starts_with("2 of 3 ") && found.contains(&words), "{length}: {found}");
            let judged = &merged.summary.thresholds[0].judgement;
            assert!(matches!(judged, Judgement::Inconclusive(_)), "{name}: {judged:?}");
            let counted = if name == "counts.bin" { REQUESTS / 3 * 2 } else { REQUESTS };
            assert_eq!(merged.summary.results.total.counters.scheduled, counted, "{name}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(reason(&merge(&folders)), "valid", "{name}");
    }
}

/// Effect of an interrupted copy, or one from the wrong place, on rows and pairs.
#[test]
fn a_file_that_is_not_the_one_of_its_shard_makes_the_whole_invalid() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 3);
    for folder in &folders {
        let mut files = serde_json::Map::new();
        for name in ["results.jsonl.zst", "pairs.bin"] {
            fs::write(folder.join(name), format!("{name} of {}", folder.display())).unwrap();
        }
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let content = fs::read(&path).unwrap();
            let digest = json!({"bytes": content.len(), "crc32": crc32(&content)});
            files.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), digest);
        }
        files.remove("shard.json");
        say(folder, &json!({"files": files}));
    }
    assert_eq!(reason(&merge(&folders)), "valid");
    for name in ["results.jsonl.zst", "pairs.bin", "counts.bin", "summary.json", "plan.json"] {
        let [own, other] = [1, 0].map(|shard: usize| fs::read(folders[shard].join(name)).unwrap());
        let (path, cut) = (folders[1].join(name), own.len() - 2);
        let mut flipped = own.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for changed in [Some(&own[..cut]), Some(&flipped), Some(&other), None] {
            match changed {
                Some(content) => fs::write(&path, content).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let Ok(set) = set(&folders, None) else {
                assert_eq!(name, "plan.json");
                continue;
            };
            let found = reason(&set.merge(Judges::default()).unwrap());
            let words = format!("shard 1/3 has damaged files ({name} ");
            assert!(found.starts_with("2 of 3 ") && found.contains(&words), "{found}");
        }
        fs::write(&path, &own).unwrap();
        assert_eq!(reason(&merge(&folders)), "valid", "{name}");
    }
}

/// Without its list of digests no other file would be checked.
#[test]
fn a_shard_file_of_another_shard_or_changed_by_hand_makes_the_whole_invalid() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 3);
    let path = folders[1].join("shard.json");
    say(&folders[1], &json!({"files": {"counts.bin": {"bytes": 1, "crc32": 1}}}));
    let whole = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\"counts.bin\":{\"bytes\":1,\"crc32\":1}", ""),
        ("\"1/3\"", "\"1/4\""),
        ("\"1/3\"", "\"2/3\""),
        ("\"launch\":\"first\"", "\"launch\":\"other\""),
        ("\"launch\"", "\"lauoch\""),
        ("\"files\"", "\"filer\""),
        (",\"crc32\":", ",\"crc31\":"),
    ] {
        let changed = whole.replace(from, to);
        assert_ne!(changed, whole, "{from}");
        fs::write(&path, changed).unwrap();
        let found = reason(&merge(&folders));
        let words = "shard 1/3 has damaged files (shard.json";
        assert!(found.starts_with("2 of 3 ") && found.contains(words), "{to}: {found}");
    }
    // Like a copy from the wrong folder: the file itself is complete.
    for status in [json!({"shard": "2/3"}), json!({"launch": "other"})] {
        fs::write(&path, &whole).unwrap();
        say(&folders[1], &json!({"files": {}}));
        say(&folders[1], &status);
        let found = reason(&merge(&folders));
        assert!(found.contains("shard 1/3 has damaged files (shard.json is of "), "{found}");
    }
    say(&folders[1], &json!({"files": {}, "shard": "1/3", "launch": "first"}));
    assert_eq!(reason(&merge(&folders)), "valid");
    // Rows that the shard did not write, beside or instead of its own.
    fs::write(folders[1].join("results.jsonl"), "{}\n").unwrap();
    let found = reason(&merge(&folders));
    assert!(found.contains("has damaged files (results.jsonl is not in shard.json)"), "{found}");
}

/// Computes the checksum of ISO 3309, bit by bit.
fn crc32(content: &[u8]) -> u32 {
    !content.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
    })
}

#[test]
fn a_bit_that_flipped_in_the_counts_is_found() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 2);
    let path = folders[0].join("counts.bin");
    let mut flipped = fs::read(&path).unwrap();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    fs::write(&path, flipped).unwrap();
    assert!(reason(&merge(&folders)).contains("shard 0/2 has damaged files (counts.bin"));
}

#[test]
fn a_damaged_plan_says_how_to_go_on_without_it() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 2);
    fs::write(folders[1].join("plan.json"), "{\"sch").unwrap();
    let error = set(&folders, None).unwrap_err().to_string();
    assert!(error.contains("shard-00001-of-00002") && error.contains("leave it out"), "{error}");
    assert!(reason(&merge(&folders[..1])).contains("shard 1/2 is missing"));
}
