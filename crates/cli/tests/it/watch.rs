//! `--watch`: the CPU time of a server and of the processes below it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

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
