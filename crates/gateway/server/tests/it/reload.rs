//! Reloads of the configuration under load.

use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use plimsoll_gateway_server::{Gateway, Spec};

use super::support::raw::{OK, connect, fixed_upstream, head};

#[test]
fn no_request_is_lost_while_the_configuration_is_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let (file, up) = (folder.path().join("g.yaml"), fixed_upstream(OK));
    let write = |number: usize| {
        let text = format!(
            "listen: 127.0.0.1:0\nworkers: 2\nupstreams: {{u{}: {{addresses: ['{up}']}}}}\n\
             routes:\n  - {{name: r{number}, path: /x, upstream: u{}}}\n",
            number % 3,
            number % 3
        );
        fs::write(&file, text).unwrap();
    };
    write(0);
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut stream = connect(&gateway);
                while !over.load(Ordering::SeqCst) {
                    stream.write_all(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
                    let answer = head(&mut stream).unwrap();
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                    let mut body = [0; 5];
                    stream.read_exact(&mut body).unwrap();
                    assert_eq!(&body, b"hello");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for number in 1..=60 {
            write(number);
            gateway.reload().unwrap();
            let seen = answered.load(Ordering::SeqCst);
            while answered.load(Ordering::SeqCst) < seen + 10 {
                thread::yield_now();
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    assert!(answered.load(Ordering::SeqCst) >= 600);
}
