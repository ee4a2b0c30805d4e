//! Tables of headers as known gateways send them.

use httparse::Header;

use super::*;

fn report_of(headers: &ResponseHeaders, lines: &[(&str, &str)]) -> ServerReport {
    let lines: Vec<_> =
        lines.iter().map(|&(name, value)| Header { name, value: value.as_bytes() }).collect();
    HeaderReader::new(headers).read(&ResponseHead { status: 200, headers: &lines }).0
}

fn report(lines: &[(&str, &str)]) -> ServerReport {
    report_of(&ResponseHeaders::default(), lines)
}

#[test]
fn cache_states_are_understood_as_caches_write_them() {
    use CacheState::{Bypass, Hit, Miss};
    for (name, value, state) in [
        ("x-cache", "hit", Some(Hit)),
        ("X-Cache", "HIT", Some(Hit)),
        ("X-Cache", "MISS, HIT", Some(Hit)),
        ("x-cache", "TCP_MEM_HIT from a.example", Some(Hit)),
        ("x-cache", "Hit from cloudfront", Some(Hit)),
        ("x-cache", "RefreshHit from cloudfront", Some(Hit)),
        ("x-cache", "Miss from cloudfront", Some(Miss)),
        ("x-cache", "Error from cloudfront", None),
        ("x-cache", "bypass", Some(Bypass)),
        ("x-cache-status", "Refresh", Some(Miss)),
        ("x-cache-status", "STALE", Some(Hit)),
        ("x-cache-status", "EXPIRED", Some(Miss)),
        ("cf-cache-status", "DYNAMIC", Some(Bypass)),
        ("cf-aig-cache-status", "HIT", Some(Hit)),
        ("x-portkey-cache-status", "SEMANTIC HIT", Some(Hit)),
        ("x-portkey-cache-status", "SEMANTIC MISS", Some(Miss)),
        ("x-portkey-cache-status", "DISABLED", Some(Bypass)),
        ("x-proxy-cache", "True", Some(Hit)),
        ("x-proxy-cache", "False", Some(Miss)),
        ("cache-status", "Edge; fwd=miss; stored", Some(Miss)),
        ("cache-status", "Origin; hit; ttl=30, Edge; fwd=uri-miss", Some(Hit)),
        ("cache-status", "WhiteCache; fwd=method", Some(Bypass)),
        ("x-cache", "", None),
        ("x-cached", "hit", None),
        ("content-type", "hit", None),
    ] {
        assert_eq!(report(&[(name, value)]).cache, state, "{name}: {value}");
    }
    let two = [("x-cache", "MISS"), ("cf-cache-status", "HIT"), ("x-proxy-cache", "BYPASS")];
    assert_eq!(report(&two).cache, Some(Hit), "one hit anywhere is a hit");
}

#[test]
fn retries_are_counted_without_the_first_attempt() {
    for (name, value, retries) in [
        ("x-litellm-attempted-retries", "2", 2),
        ("x-litellm-attempted-retries", "0", 0),
        ("x-litellm-attempted-retries", "-1", 0),
        ("x-litellm-attempted-retries", "many", 0),
        ("x-portkey-retry-attempt-count", "3", 3),
        ("x-envoy-attempt-count", "1", 0),
        ("X-Envoy-Attempt-Count", "4", 3),
        ("Ngrok-AIG-Attempts", "2", 1),
    ] {
        assert_eq!(report(&[(name, value)]).retries, retries, "{name}: {value}");
    }
}

#[test]
fn server_times_are_in_milliseconds_unless_they_say_otherwise() {
    for (name, value, micros) in [
        ("x-litellm-response-duration-ms", "626.031", Some(626_031)),
        ("x-envoy-upstream-service-time", "12", Some(12_000)),
        ("openai-processing-ms", "350", Some(350_000)),
        ("x-kong-upstream-latency", "37", Some(37_000)),
        ("x-response-time", "12.5ms", Some(12_500)),
        ("x-response-time", "0.25s", Some(250_000)),
        ("x-response-time", "80us", Some(80)),
        ("x-response-time", "soon", None),
        ("x-response-time", "-3", None),
        ("x-response-time", "1e30", None),
        ("x-runtime", "0.004", Some(4_000)),
        ("x-process-time", "1.5", Some(1_500_000)),
        ("server-timing", "db;dur=53, app;dur=47.2", Some(53_000)),
        ("server-timing", "db;dur=53, total;dur=12.5", Some(12_500)),
        ("server-timing", "cache;desc=\"Cache Read\";dur=\"23.2\"", Some(23_200)),
        ("server-timing", "miss, db;desc=x", None),
    ] {
        let time = report(&[(name, value)]).time;
        assert_eq!(time, micros.map(Nanos::from_micros), "{name}: {value}");
    }
    let several = [("x-kong-proxy-latency", "3"), ("x-kong-upstream-latency", "40")];
    assert_eq!(report(&several).time, Some(Nanos::from_millis(40)), "the first of the list");
}

#[test]
fn a_profile_replaces_the_lists() {
    let own = ResponseHeaders {
        cache: vec!["X-My-Cache".to_owned()],
        server_time: Vec::new(),
        ..ResponseHeaders::default()
    };
    let lines = [("x-my-cache", "hit"), ("x-response-time", "5")];
    let expected = ServerReport { cache: Some(CacheState::Hit), ..ServerReport::default() };
    assert_eq!(report_of(&own, &lines), expected);
    assert_eq!(report_of(&own, &[("x-cache", "hit")]), ServerReport::default());
}

#[test]
fn recorded_texts_are_short_and_always_text() {
    let record = vec!["X-Served-By".to_owned(), "x-none".to_owned(), "x-raw".to_owned()];
    let reader = HeaderReader::new(&ResponseHeaders { record, ..ResponseHeaders::default() });
    let long = "n".repeat(1_000);
    let lines = [
        Header { name: "x-served-by", value: long.as_bytes() },
        Header { name: "X-Raw", value: b"a\xFF" },
    ];
    assert!(reader.records());
    let texts = reader.recorded(&ResponseHead { status: 200, headers: &lines });
    let expected = [("x-served-by", "n".repeat(256)), ("x-raw", "a\u{fffd}".to_owned())];
    assert_eq!(texts, expected.map(|(name, text)| (name.into(), text)));
}

/// The parts of a response with these `Server-Timing` headers, in microseconds by their names.
fn parts(reader: &HeaderReader, values: &[&[u8]]) -> Option<Vec<(String, u64)>> {
    let lines: Vec<_> =
        values.iter().map(|value| Header { name: "Server-Timing", value }).collect();
    let head = ResponseHead { status: 200, headers: &lines };
    assert!(reader.read(&head).1, "the header is seen");
    let parts = reader.parts(&head)?;
    assert_eq!(parts == ServerParts::Refused, parts.times().is_none());
    let named = reader.named(&parts).into_iter();
    Some(named.map(|(name, time)| (name.to_string(), time.as_u64() / 1_000)).collect())
}

fn part(name: &str, micros: u64) -> (String, u64) {
    (name.to_owned(), micros)
}

#[test]
fn parts_of_server_timing_have_the_targets_own_names() {
    let reader = HeaderReader::new(&ResponseHeaders::default());
    let read = |value: &str| parts(&reader, &[value.as_bytes()]);
    let both = Some(vec![part("gw", 1_200), part("DB-read", 3_000)]);
    assert_eq!(read("gw;dur=1.2, DB-read;dur=3"), both);
    // In the order of the run's names. The total is not one of its own parts.
    assert_eq!(read("total;dur=9, DB-read ; dur=\"3\",gw;DUR=1.2;desc=x"), both);
    let quoted = r#"gw;desc="a, b;dur=9\", c";dur=5, x;desc="dur=7""#;
    assert_eq!(read(quoted), Some(vec![part("gw", 5_000)]));
    assert_eq!(read("gw;dur=1, gw;dur=2"), Some(vec![part("gw", 3_000)]));
    let two: [&[u8]; 2] = [b"gw;dur=1", b"DB-read;dur=2"];
    assert_eq!(parts(&reader, &two), Some(vec![part("gw", 1_000), part("DB-read", 2_000)]));
    for nothing in ["", "miss, db;desc=x", "total;dur=4"] {
        assert_eq!(read(nothing), None, "{nothing}");
    }
    assert_eq!(reader.part_names(), ["gw", "DB-read"]);
}

#[test]
fn parts_that_cannot_be_true_are_refused_as_a_whole_and_name_nothing() {
    let reader = HeaderReader::new(&ResponseHeaders::default());
    let long = format!("{};dur=1", "n".repeat(65));
    for value in ["a;dur=1, b;dur=x", "a;dur=-1", "a;dur=NaN", "a;dur=inf", "a b;dur=1", ";dur=1"] {
        assert_eq!(parts(&reader, &[value.as_bytes()]), Some(Vec::new()), "{value}");
    }
    for value in [long.as_bytes(), b"a;dur=\xff", b"a;dur=", b"a;dur=1e300"] {
        assert_eq!(parts(&reader, &[value]), Some(Vec::new()), "{value:?}");
    }
    assert!(reader.part_names().is_empty());
}

#[test]
fn the_first_names_are_told_apart_and_all_further_ones_are_other() {
    let reader = HeaderReader::new(&ResponseHeaders::default());
    let all: Vec<_> = (0..11).map(|number| format!("p{number};dur={number}.5")).collect();
    let found = parts(&reader, &[all.join(",").as_bytes()]).unwrap();
    assert_eq!((found.len(), &found[7]), (9, &part("p7", 7_500)));
    // 8.5 + 9.5 + 10.5
    assert_eq!(found[8], part("other", 28_500));
    assert_eq!(reader.part_names().len(), 8);
    let later = parts(&reader, &[b"new;dur=1, p3;dur=2, other;dur=3"]).unwrap();
    assert_eq!(later, [part("p3", 2_000), part("other", 4_000)]);
}

#[test]
fn parts_are_not_looked_for_where_the_header_is_not_asked_for() {
    let none = ResponseHeaders { server_time: Vec::new(), ..ResponseHeaders::default() };
    let lines = [Header { name: "server-timing", value: b"a;dur=1" }];
    let head = ResponseHead { status: 200, headers: &lines };
    assert!(!HeaderReader::new(&none).read(&head).1);
    assert_eq!(HeaderReader::new(&none).parts(&head), None);
    let lines = [Header { name: "x-cache", value: b"HIT" }];
    let head = ResponseHead { status: 200, headers: &lines };
    assert!(!HeaderReader::new(&ResponseHeaders::default()).read(&head).1);
}

#[test]
fn what_a_gateway_states_of_its_own_overhead_is_a_part_by_the_name_of_the_header() {
    let reader = HeaderReader::new(&ResponseHeaders::default());
    let read = |lines: &[(&str, &str)]| {
        let lines: Vec<_> =
            lines.iter().map(|&(name, value)| Header { name, value: value.as_bytes() }).collect();
        let head = ResponseHead { status: 200, headers: &lines };
        assert!(reader.read(&head).1, "the header is seen");
        let parts = reader.parts(&head).unwrap();
        let named = reader.named(&parts).into_iter();
        named.map(|(name, time)| (name.to_string(), time.as_u64() / 1_000)).collect::<Vec<_>>()
    };
    let (litellm, mlflow) =
        ("x-litellm-overhead-duration-ms", "x-mlflow-gateway-overhead-duration-ms");
    let whole = ("x-litellm-response-duration-ms", "626.031");
    assert_eq!(read(&[(litellm, "3.25"), whole]), [part(litellm, 3_250)]);
    assert_eq!(read(&[("X-MLflow-Gateway-Overhead-Duration-Ms", "7")]), [part(mlflow, 7_000)]);
    let both = [("server-timing", "db;dur=2"), (litellm, "1")];
    assert_eq!(read(&both), [part(litellm, 1_000), part("db", 2_000)]);
    for untrue in ["None", "-1", "1e99", ""] {
        assert_eq!(read(&[(litellm, untrue)]), [], "{untrue}");
    }
}

/// Workers share the names: each sees the same numbers, whoever came first.
#[test]
fn names_have_the_same_number_for_every_worker() {
    let reader = HeaderReader::new(&ResponseHeaders::default());
    let worker = |number: usize| {
        for turn in 0..200 {
            let name = format!("n{}", (number * 3 + turn) % 12);
            let found = parts(&reader, &[format!("{name};dur=1").as_bytes()]).unwrap();
            assert!(found == [part(&name, 1_000)] || found == [part("other", 1_000)]);
        }
    };
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || worker(number));
        }
    });
    let names: std::collections::BTreeSet<_> = reader.part_names().into_iter().collect();
    assert_eq!(names.len(), 8, "{names:?}");
}
