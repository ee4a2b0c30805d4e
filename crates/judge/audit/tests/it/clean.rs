//! True tables without any finding, although some look wrong.

use plimsoll_audit::audit;

/// Figures of published benchmarks, and situations that look like a contradiction.
const TRUE: [&str; 16] = [
    // Thirty-two clients that never wait: 68,010/s x 0.47 ms = 32.
    "Clients|Reqs|Errors|RPS|p50|p95|p99|Max\n32|340,093|0|68,010|0.45 ms|0.64 ms|0.78 ms|7.17 ms",
    // After rounding, both may be 5.2 ms.
    "p50 (ms)|p99 (ms)\n5.1|5.1",
    "p50 (ms)|p99 (s)\n5.1|0.005",
    "p99 TTFT (ms)|p50 latency (ms)\n90|48",
    // Parts of a response are not response times.
    "Req/s|Concurrency|TTFT mean (ms)|ITL mean (ms)|E2E mean (s)\n10.0|20.0|50|9.8|2.0",
    // A rate is not a number of samples.
    "Gateway|Rate|p99 latency\nA|500 req/s|1.68 s",
    "requests|p99\n500/s|1.68 s",
    // Tokens per second are not requests per second.
    "Throughput (tok/s)|Concurrency|mean (s)\n8000|16|2",
    "Throughput|Concurrency|mean (s)\n8000|16|2",
    // Rejections are fast, and the times cover only successes.
    "RPS|Clients|Errors|mean (ms)\n1000|10|900|50",
    // Decimal commas.
    "p50 (ms)|p99 (ms)\n4,5|1,234",
    // Bounds and ranges are not figures.
    "p50|p99\n>= 9 ms|7 ms",
    "p50|p99\n5-9 ms|7 ms",
    "success rate|error rate\n0.99|0.01",
    // Streams share a connection.
    "RPS|Connections|mean (ms)|HTTP/2\n1000|10|50|yes",
    // Drained responses and a planned duration.
    "rps|duration (s)|requests\n10|30|320",
];

#[test]
fn true_tables_have_no_finding() {
    for case in TRUE {
        let (headings, cells) = case.split_once('\n').unwrap();
        let rule = vec!["---"; headings.split('|').count()].join("|");
        let text = format!("|{headings}|\n|{rule}|\n|{cells}|\n");
        if let Ok(report) = audit("page.md", text.as_bytes(), &[]) {
            assert!(report.findings.is_empty(), "{case}: {}", report.text());
        }
    }
}

/// Response times in seconds of clients that each send requests for ten seconds, ascending.
fn closed_loop(clients: u32, seed: &mut u64) -> Vec<f64> {
    let mut times = Vec::new();
    for _ in 0..clients {
        let mut now = 0.0;
        while now < 10.0 {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let uniform = (*seed >> 11) as f64 / (1_u64 << 53) as f64;
            let time = 0.001 - 0.05 * uniform.ln();
            now += time;
            times.push(time);
        }
    }
    times.sort_by(f64::total_cmp);
    times
}

/// Requests that cross the window's edges change the count slightly.
#[test]
fn a_simulated_closed_loop_has_no_finding() {
    let mut seed = 7_u64;
    for clients in [1, 3, 16, 200].repeat(50) {
        let times = closed_loop(clients, &mut seed);
        let (count, mean) = (times.len(), times.iter().sum::<f64>() / times.len() as f64);
        let percent = |share: usize| times[count * share / 100] * 1e3;
        let text = format!(
            "clients,rps,requests,duration (s),min (ms),mean (ms),p50 (ms),p99 (ms)\n\
             {clients},{:.1},{count},10,{:.2},{:.2},{:.2},{:.2}\n",
            count as f64 / 10.0,
            percent(0),
            mean * 1e3,
            percent(50),
            percent(99)
        );
        let report = audit("page.csv", text.as_bytes(), &[]).unwrap();
        assert!(!report.fails(false), "{text}{}", report.text());
    }
}
