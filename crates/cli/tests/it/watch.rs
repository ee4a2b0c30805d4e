//! `--watch`: the CPU time of a server and of the processes below it; and `--server-metrics`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use crate::support::{FAST, Fixture};

/// An idle shell, and below it a mock that answers: like a master and its worker.
#[test]
fn a_master_has_the_cpu_time_of_its_workers_and_a_port_finds_its_process() {
    let fixture = Fixture::with(FAST);
    let script = format!(
        "{} mock --listen 127.0.0.1:0 & trap 'kill $!' TERM; wait $!; wait $!; true",
        env!("CARGO_BIN_EXE_plimsoll")
    );
    let mut master =
        Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut greeting = String::new();
    BufReader::new(master.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
    let target = greeting.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let port = target.rsplit(':').next().unwrap();
    let watch = [format!("master={}", master.id()), format!("worker=:{port}")];
    let run = ["run", "minimal", "--target", target, "--key", "any", "-q", "--allow-invalid"];
    let watched = ["--watch", &watch[0], "--watch", &watch[1], "--stages", "2:1500ms"];
    let output = fixture.plimsoll(&[&run[..], &watched].concat());
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(master.id().try_into().unwrap()),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    master.wait().unwrap();
    let output = output.expect(0);
    let summary = fixture.summary();
    let of = |name: &str| summary.processes.iter().find(|p| p.name == name).unwrap();
    let (master, worker) = (of("master"), of("worker"));
    assert_ne!(master.pid, worker.pid);
    assert_eq!((master.processes, worker.processes), (2, 1), "{}", output.stdout);
    // Ticks are 10 ms; the shell itself uses none. Between the two readings the host may pause,
    // while the worker continues.
    assert!(worker.cpu_s >= 0.1, "{worker:?}");
    let allowed = 0.05 + worker.cpu_s * 0.25;
    assert!((master.cpu_s - worker.cpu_s).abs() <= allowed, "{master:?} {worker:?}");
}

/// A page of vLLM whose counters grow from reading to reading: three of four input tokens hit.
fn vllm_page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (nth, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let (hits, queries) = (nth * 300, nth * 400);
            let text = format!(
                "vllm:num_requests_running 2\nvllm:num_requests_waiting 5\n\
                 vllm:prefix_cache_hits_total {hits}\nvllm:prefix_cache_queries_total {queries}\n"
            );
            let length = text.len();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}");
        }
    });
    url
}

#[test]
fn a_server_is_shown_by_its_own_metrics_and_one_that_is_gone_fails_nothing() {
    let fixture = Fixture::with(FAST);
    let server = format!("vllm={}", vllm_page());
    let servers =
        ["--server-metrics", &server, "--server-metrics", "gone=http://127.0.0.1:1/metrics"];
    let prefixes = ["--prefix-tokens", "300", "--prefixes", "2", "--prefix-share", "50%"];
    let load = ["llm", &fixture.target(), "--model", "m", "--isl", "100", "--rate", "40"];
    let rest = ["-d", "5s", "--warmup", "0", "-q", "--allow-invalid", "--full"];
    let output = fixture.plimsoll(&[&load[..], &servers, &prefixes, &rest].concat()).expect(0);
    let screen = &output.stdout;
    assert!(screen.contains("servers, by their own metrics"), "{screen}");
    assert!(screen.contains("5.00 requests waiting on average (at most 5)"), "{screen}");
    assert!(screen.contains("--server-metrics gone: cannot read http://127.0.0.1:1/"), "{screen}");
    assert!(screen.contains("by vllm: 75.0%"), "{screen}");
    let summary = fixture.summary();
    let [own] = summary.servers.as_slice() else { panic!("{:?}", summary.servers) };
    assert_eq!((own.server.as_str(), own.figure("prefix_hit_share")), ("vLLM", Some(0.75)));
    // Of 200 requests with 100 tokens, about a half has 300 more, all but two of them again.
    let repeated = summary.results.total.rates.repeated_share.unwrap();
    assert!((0.5..0.66).contains(&repeated), "{repeated}");
    let page = fs::read_to_string(fixture.only_run().join("report.html")).unwrap();
    assert!(page.contains("Requests at the server") && page.contains("by vllm: 75.0%"));
    let timeline = fs::read_to_string(fixture.only_run().join("timeline.json")).unwrap();
    assert!(timeline.contains("\"requests_waiting\":5.0"), "{timeline}");
}
