//! Logs in other units, of other runs, or with other clocks: one clear message each.

use std::fs;

use plimsoll_join::Options;
use serde_json::Value;

use crate::support::{
    Files, audit_row, id, ms, options, run_row, sent, service, total, upstream, ways,
};

#[test]
fn a_log_in_other_units_is_named_with_the_unit_it_seems_to_have() {
    let files = Files::run(100);
    let with = |digits: u32| {
        files.lines(
            "log",
            (0..100).map(|n: i64| {
                format!(
                    r#"{{"id":"{}","took":{:.9}}}"#,
                    id(n),
                    total(n) as f64 / 10_f64.powi(digits.try_into().unwrap())
                )
            }),
        );
    };
    for (digits, given, seems) in [(9, "ms", "s"), (6, "us", "ms"), (6, "s", "ms"), (3, "ms", "us")]
    {
        with(digits);
        let message = files.usage("log", &["id=id", &format!("total=took:{given}")]);
        assert!(message.contains(&format!("read as {given}")), "{message}");
        assert!(
            message.ends_with(&format!("seems to be in {seems}: --map total=took:{seems}")),
            "{message}"
        );
        let join = files.join("log", &["id=id", &format!("total=took:{seems}")]).unwrap();
        assert_eq!((join.books.matched, join.times_refused), (100, None));
    }
}

#[test]
fn a_log_of_another_run_is_named() {
    let files = Files::run(100);
    let day = 86_400_000_000_000;
    let other =
        |apart| move |n: i64| audit_row(n, apart, 64).replace(&id(n), &format!("other-{n}"));
    files.lines("log", (0..100).map(other(-day)));
    let message = files.usage("log", &[]);
    assert!(message.contains("none of the 100 rows"), "{message}");
    assert!(message.contains("ids like other-0, the run like 00000000-0000"), "{message}");
    assert!(message.contains("another run, or its clock is hours off"), "{message}");
    files.lines("log", (0..100).map(other(0)));
    let message = files.usage("log", &[]);
    assert!(!message.contains("another run, or") && message.contains("--id-header"), "{message}");
}

#[test]
fn clocks_hours_apart_are_named() {
    let files = Files::run(100);
    files.lines("log", (0..100).map(|n| audit_row(n, 7_200_000_000_000, 64)));
    let message = files.usage("log", &[]);
    assert!(message.contains("the log's times have another unit or zone"), "{message}");
    files.lines("log", (0..100).map(|n| audit_row(n, -19_800_000_000_000, 64)));
    assert!(files.usage("log", &[]).contains("another unit or zone"));
    let join = files.join("log", &["at="]).unwrap();
    assert_eq!(join.books.matched, 100);
}

#[test]
fn times_that_are_not_part_of_the_clients_are_refused() {
    let files = Files::run(100);
    files.lines(
        "log",
        (0..100).map(|n: i64| {
            format!(r#"{{"id":"{}","took":{}}}"#, id(n), (total(n) + n % 10 * 2_000_000) / 1_000)
        }),
    );
    let join = files.join("log", &["id=id", "total=took:us"]).unwrap();
    assert!(join.impossible > 50 && join.times.is_empty(), "{join:?}");
    assert!(join.times_refused.unwrap().contains("not part of the client's"));
    assert_eq!(join.books.matched, 100);
}

#[test]
fn files_that_are_no_logs_are_named() {
    let files = Files::run(30);
    for (content, map, part) in [
        ("", &[][..], "has no rows"),
        ("[{\"id\":1}]", &[], "write --map id=COLUMN; the log has id"),
        ("{\"a\":1}\n", &[], "write --map id=COLUMN; the log has a"),
        ("a,b\n", &["id=a"], "has no rows"),
        ("{\"id\":1}\nx\ny\n", &["id=id"], "2 lines of"),
        ("{\"id\":1}\n[]\n5\n", &["id=id"], "2 lines of"),
        ("{\"id\":1}\n{\"id\":1} x\nid=1\n", &["id=id"], "2 lines of"),
        ("{\"id\":null,\"x\":1}\n", &["id=id"], "has an id in column id"),
        ("id,took\n1,fast\n", &["id=id", "total=took:ms"], "cannot be read as total, like `fast`"),
    ] {
        fs::write(files.path("log"), content).unwrap();
        let message = files.usage("log", map);
        assert!(message.contains(part), "{message}");
    }
    assert!(files.usage("absent", &[]).contains("does not exist"));
    files.lines("log", (0..30).map(|n| audit_row(n, 0, 64)));
    fs::rename(files.path("results.jsonl"), files.path("gone")).unwrap();
    assert!(files.usage("log", &[]).contains("is not a run folder"));
    fs::write(files.path("plan.json"), "{}").unwrap();
    assert!(files.usage("log", &[]).contains("without --no-jsonl"));
    fs::write(files.path("results.jsonl"), "").unwrap();
    assert!(!files.join("log", &[]).unwrap_err().is_usage());
    assert!(sent(1) > sent(0));
}

/// Reading the upstream's microseconds as milliseconds would make the gateway's time negative.
#[test]
fn an_upstream_time_that_is_no_part_of_the_total_is_refused() {
    let files = Files::run(100);
    files.lines("log", (0..100).map(|n| audit_row(n, 0, 64)));
    let longer = "longer than the log's own total in 100 of 100 requests";
    let refused = files.join("log", &["upstream=upstream_us:ms"]).unwrap().times_refused.unwrap();
    assert!(refused.contains(longer), "{refused}");
    // Not a power of 1,000: twice the total.
    files.lines(
        "log",
        (0..100).map(|n: i64| {
            let total = total(n) / 1_000;
            format!(r#"{{"id":"{}","took":{total},"behind":{}}}"#, id(n), total * 2)
        }),
    );
    let map = ["id=id", "total=took:us", "upstream=behind:us"];
    let refused = files.join("log", &map).unwrap().times_refused.unwrap();
    assert!(refused.contains(longer), "{refused}");
    let join = files.join("log", &["id=id", "total=took:ns", "upstream=behind:ns"]);
    assert!(join.unwrap_err().to_string().contains("seems to be in us"));
}

/// Streams of 97 ms, whose upstream sends its headers after 20 ms and ends with them.
#[test]
fn a_time_to_the_upstreams_head_is_not_an_upstream_time() {
    let (whole, head) = (97_000_000, 20_000_000);
    let files = Files::of((0..100).map(|n| {
        let (was, ttfb) = (ms(service(n)), ms(head + 700_000));
        let times = format!(r#""service_time_ms":{},"ttfb_ms":{ttfb}"#, ms(whole));
        run_row(n).replace(&format!(r#""service_time_ms":{was}"#), &times)
    }));
    // Envoy's usual JSON log, in milliseconds.
    files.lines(
        "envoy",
        (0..100).map(|n| {
            let id = id(n);
            format!(
                r#"{{"start_time":"2026-11-18T09:46:40.100Z","duration":97,"response_code":200,"response_flags":"-","x-envoy-upstream-service-time":"20","request_id":"{id}"}}"#
            )
        }),
    );
    let join = files.join("envoy", &["at="]).unwrap();
    assert_eq!((join.books.matched, join.stages.len()), (100, 0), "{join:?}");
    let [times] = join.times.as_slice() else { panic!("{join:?}") };
    assert_eq!((times.gateway, times.upstream), (None, None));
    // The same kind of time under other names: Kong's, HAProxy's, and nginx's
    // `upstream_header_time`.
    let log = |upstream: i64| {
        files.lines(
            "log",
            (0..100).map(|n| format!(r#"{{"id":"{}","all":96.5,"up":{upstream}}}"#, id(n))),
        );
        files.join("log", &["id=id", "total=all:ms", "upstream=up:ms"]).unwrap()
    };
    let join = log(20);
    assert!(join.stages.is_empty() && join.times.is_empty(), "{join:?}");
    let refused = join.times_refused.unwrap();
    assert!(
        refused.starts_with("up ends before the client's first byte in 100 of 100"),
        "{refused}"
    );
    // An upstream time as long as the stream is the whole time.
    let [stage] = &*log(96).stages else { panic!("no stage") };
    assert!((stage.gateway_ms.unwrap() - 0.5).abs() < 0.001, "{stage:?}");
}

#[test]
fn times_of_arrival_in_other_units_are_named_with_their_date() {
    let files = Files::run(100);
    files.lines(
        "log",
        (0..100).map(|n: i64| format!(r#"{{"id":"{}","at":{}}}"#, id(n), sent(n) / 1_000_000_000)),
    );
    // Seconds since 1970 read as milliseconds: 20 days after 1970.
    let message = files.usage("log", &["id=id", "at=at:ms"]);
    assert!(message.contains("arrived at 1970-01-21"), "{message}");
    assert_eq!(files.join("log", &["id=id", "at=at:s"]).unwrap().books.matched, 100);
}

/// One row per request, as in log and run, and none of an earlier run.
#[test]
fn the_rows_of_a_join_say_where_the_time_went() {
    let files = Files::run(50);
    files.lines("log", (0..50).filter(|n| *n != 7).map(|n| audit_row(n, 0, 64)));
    let path = files.path("joined.jsonl");
    fs::write(&path, "old").unwrap();
    let wrong = Options { rows: Some(path.clone()), ..options(&["id=nothing"]) };
    let log = files.path("log");
    assert!(files.join_with(&log, &wrong).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    files.join_with(&log, &Options { rows: Some(path.clone()), ..options(&[]) }).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 50);
    for (n, row) in (0..).zip(&rows) {
        let lost = n == 7;
        assert_eq!(row["request_id"], id(n));
        assert_eq!(row["state"], if lost { "lost" } else { "matched" });
        let near = |key: &str, nanos: i64| (row[key].as_f64().unwrap() - nanos as f64 / 1e6).abs();
        assert!(near("client_ms", service(n)) < 1e-6, "{row}");
        assert_eq!(row.get("outside_ms").is_none(), lost);
        // The log has a resolution of a microsecond.
        if !lost {
            assert!(near("outside_ms", ways(n).0 + ways(n).1) < 0.0011, "{row}");
            assert!(near("gateway_ms", 300_000) < 0.0011, "{row}");
            assert!(near("upstream_ms", upstream(n)) < 0.0011, "{row}");
        }
    }
    // Incomparable times are not subtracted.
    files.lines(
        "log",
        (0..50).map(|n: i64| format!(r#"{{"id":"{}","took":{}}}"#, id(n), total(n) / 500)),
    );
    let map = options(&["id=id", "total=took:us"]);
    files.join_with(&log, &Options { rows: Some(path.clone()), ..map }).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("log_ms") && !text.contains("outside_ms"), "{text}");
}
