//! The time until the first request.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::Stdio;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};

use crate::support::{attempt, command, pause};

/// A profile of a hundred scenarios.
fn profile_with_many_scenarios() -> String {
    let scenario = |n| {
        let tokens = 100 + n;
        format!("  - {{name: s{n}, content: {{mode: sized, approx_input_tokens: {tokens}}}}}")
    };
    let scenarios = (0..100).map(scenario).collect::<Vec<_>>().join("\n");
    format!("stages: '@100:5s'\nmodel: m\nscenarios:\n{scenarios}\n")
}

/// A release build takes 80 ms, 50 of them to measure the CPU time that the hypervisor steals. A
/// host that withholds the CPU makes it longer, but not each time.
#[test]
fn the_first_request_is_sent_within_a_second() {
    attempt(8, || {
        let took = time_to_first_request();
        if took < Nanos::from_secs(1) { Ok(()) } else { Err(took.to_string()) }
    });
}

fn time_to_first_request() -> Nanos {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("many.yaml"), profile_with_many_scenarios()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let target = format!("http://{}", listener.local_addr().unwrap());
    let args = ["run", "many.yaml", "--target", &target, "--key", "any", "--quiet", "--no-probe"];
    let clock = MonotonicClock::start();
    let elapsed = || clock.now().since(Moment::EPOCH);
    let mut child = command(folder.path(), &args).stdout(Stdio::null()).spawn().unwrap();
    let connected = loop {
        match listener.accept() {
            Err(error)
                if error.kind() == ErrorKind::WouldBlock && elapsed() < Nanos::from_secs(20) =>
            {
                pause();
            }
            accepted => break accepted,
        }
    };
    let took = elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    connected.unwrap();
    took
}
