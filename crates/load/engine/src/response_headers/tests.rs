//! Tables of headers as known gateways send them.

use httparse::Header;

use super::*;

fn report_of(headers: &ResponseHeaders, lines: &[(&str, &str)]) -> ServerReport {
    let lines: Vec<_> =
        lines.iter().map(|&(name, value)| Header { name, value: value.as_bytes() }).collect();
    HeaderReader::new(headers).read(&ResponseHead { status: 200, headers: &lines })
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
