//! Metrics: labels come from closed sets, and series belong to names over reloads.

use std::fs;
use std::io::Write as _;

use plimsoll_gateway_server::{Gateway, Spec};

use super::support::raw::{OK, connect, fixed_upstream, get, head, proxy, read_to_end, upstream};

/// The lines of `/metrics` that begin so.
fn series(gateway: &Gateway, start: &str) -> Vec<String> {
    let text = get(gateway, "/metrics");
    text.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
}

#[test]
fn methods_that_clients_make_up_are_one_series() {
    let gateway = proxy(fixed_upstream(OK), "", "metrics: {}");
    let mut client = connect(&gateway);
    let names =
        ('A'..='L').flat_map(|first| ('A'..='Y').map(move |last| format!("M{first}{last}")));
    for method in names {
        let request = format!("{method} /x HTTP/1.1\r\nhost: x\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        assert!(head(&mut client).unwrap().starts_with("HTTP/1.1 200"));
        std::io::Read::read_exact(&mut client, &mut [0; 5]).unwrap();
    }
    // Those that are refused are no series of their own either.
    for number in 0..50 {
        let mut client = connect(&gateway);
        let request = format!("M{number} /x HTTP/1.1\r\nhost: x\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        assert!(head(&mut client).unwrap().starts_with("HTTP/1.1 400"));
    }
    let found = series(&gateway, "gateway_requests_total{method=\"other\"");
    assert_eq!(found.len(), 2, "{found:?}");
    let served = "gateway_requests_total{method=\"other\",route=\"/*\",status=\"200\"} 300";
    assert!(found.iter().any(|line| line == served), "{found:?}");
    assert!(found.iter().any(|line| line.ends_with("status=\"400\"} 50")), "{found:?}");
    let all = get(&gateway, "/metrics");
    assert!(
        !all.contains("\"M1\"") && !all.contains("\"MAB\"") && all.len() < 20_000,
        "{} bytes",
        all.len()
    );
}

#[test]
fn a_refusal_counts_for_its_layer_by_the_name_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit");
    let more = format!(
        "metrics: {{open: true}}\nauth: {{header: apikey, keys: [{{name: a, key: k}}]}}\n\
         tenant: {{required: true}}\naudit: {{path: '{}', flush: 1ms}}",
        file.display()
    );
    let mut gateway = proxy(fixed_upstream(OK), "", &more);
    for (key, status) in [("", "401"), ("apikey: wrong\r\n", "403"), ("apikey: k\r\n", "401")] {
        let mut client = connect(&gateway);
        let request = format!("GET /x HTTP/1.1\r\nhost: x\r\n{key}connection: close\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        assert!(read_to_end(&mut client).starts_with(&format!("HTTP/1.1 {status}")), "{key}");
    }
    let found = series(&gateway, "gateway_layer_refusals_total");
    let expected = ["auth", "tenant"].map(|layer| format!("{{layer=\"{layer}\"}}"));
    let expected = expected.map(|label| format!("gateway_layer_refusals_total{label}"));
    for (line, count) in expected.iter().zip([2, 1]) {
        assert!(found.contains(&format!("{line} {count}")), "{found:?}");
    }
    gateway.shutdown();
    let rows = fs::read_to_string(file).unwrap();
    let by = |layer: &str| rows.matches(&format!("\"refused_by\":\"{layer}\"")).count();
    assert_eq!((by("auth"), by("tenant"), rows.lines().count()), (2, 1, 4), "{rows}");
}

#[test]
fn statuses_that_upstreams_make_up_are_one_series() {
    let up = upstream(|mut stream| {
        let Some(head) = head(&mut stream) else { return };
        let status = head.split(['/', ' ']).nth(2).unwrap_or_default().to_owned();
        let answer = format!("HTTP/1.1 {status} Odd\r\ncontent-length: 0\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes());
    });
    let gateway = proxy(up, "", "metrics: {}");
    for status in [299, 480, 599, 600, 745, 999, 404] {
        let mut client = connect(&gateway);
        let request = format!("GET /{status} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        assert!(read_to_end(&mut client).starts_with(&format!("HTTP/1.1 {status}")), "{status}");
    }
    let found = series(&gateway, "gateway_requests_total{method=\"GET\",route=\"/*\"");
    let ends = ["status=\"404\"} 1", "status=\"other\"} 6"];
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(ends.iter().all(|end| found.iter().any(|line| line.ends_with(end))), "{found:?}");
}

#[test]
fn series_go_on_over_reloads_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (file, up) = (folder.path().join("g.yaml"), fixed_upstream(OK));
    // Routes come and go, so that their memory is used again for others.
    let write = |round: usize| {
        let more: Vec<_> = (0..round % 5)
            .map(|number| {
                format!("  - {{name: n{number}, path: /n{number}, upstream: u{round}}}\n")
            })
            .collect();
        let more = more.concat();
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{local: true}}\nmetrics: {{}}\nupstreams: {{u{round}: {{addresses: ['{up}']}}}}\n\
             routes:\n{more}  - {{name: a, path: /a, upstream: u{round}}}\n  \
             - {{name: b, path: /b, upstream: u{round}}}\n"
        );
        fs::write(&file, text).unwrap();
    };
    write(0);
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    for round in 1..=40 {
        get(&gateway, "/a");
        get(&gateway, "/b");
        get(&gateway, "/b");
        write(round);
        gateway.reload().unwrap();
    }
    let count = |route: &str| {
        let start = format!("gateway_requests_total{{method=\"GET\",route=\"{route}\"");
        let lines = series(&gateway, &start);
        lines.iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((count("/a"), count("/b")), (vec!["40".to_owned()], vec!["80".to_owned()]));
    let upstreams = series(&gateway, "gateway_upstream_healthy");
    assert_eq!(upstreams.len(), 1, "only those of the configuration in force: {upstreams:?}");
}
