//! The example of the CI guide, against a server that refuses every second request.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use plimsoll_metrics::{Judgement, ThresholdResult};

use crate::policy_server::read_request;
use crate::support::{command, summary};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ci-threshold.yaml");

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 163\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":null}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";
const REFUSAL: &str = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\
    content-length: 33\r\n\r\n{\"error\":{\"message\":\"slow down\"}}";

/// Answers chats at once, and refuses one of `one_in` requests (0: refuses none). Counts answers
/// and refusals.
struct ChatServer {
    url: String,
    answered: Arc<[AtomicU64; 2]>,
}

impl ChatServer {
    fn spawn(one_in: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answered: Arc<[AtomicU64; 2]> = Arc::default();
        let (shared, received) = (Arc::clone(&answered), Arc::new(AtomicU64::new(0)));
        // The threads end with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answered, received) = (Arc::clone(&shared), Arc::clone(&received));
                thread::spawn(move || serve(stream, one_in, &received, &answered));
            }
        });
        Self { url, answered }
    }

    /// Numbers of answered and refused requests.
    fn counts(&self) -> [u64; 2] {
        [0, 1].map(|index: usize| self.answered[index].load(Ordering::Relaxed))
    }
}

fn serve(stream: TcpStream, one_in: u64, received: &AtomicU64, answered: &[AtomicU64; 2]) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while read_request(&mut reader).is_some() {
        let number = received.fetch_add(1, Ordering::Relaxed);
        let refused = one_in > 0 && number.is_multiple_of(one_in);
        let response = if refused { REFUSAL } else { STREAM };
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
        answered[usize::from(refused)].fetch_add(1, Ordering::Relaxed);
    }
}

/// The exit code of the example, and its judged thresholds on `error_rate`.
fn run_example(server: &ChatServer) -> (Option<i32>, Vec<ThresholdResult>) {
    let folder = tempfile::tempdir().unwrap();
    let fixed = ["--model", "any", "--stages", "@300:2s", "--quiet", "--allow-invalid"];
    let args = [&["run", EXAMPLE, "--no-probe", "--target", &server.url], &fixed[..]].concat();
    let output = command(folder.path(), &args).env_remove("GATEWAY_KEY").output().unwrap();
    let run = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap();
    let mut thresholds = summary(&run.path()).thresholds;
    thresholds.retain(|threshold| threshold.metric == "error_rate");
    (output.status.code(), thresholds)
}

#[test]
fn the_ci_example_fails_when_half_of_the_requests_are_refused() {
    let server = ChatServer::spawn(2);
    let (code, thresholds) = run_example(&server);
    let [answered, refused] = server.counts();
    assert!(refused >= 50 && answered.abs_diff(refused) <= 1, "{answered} and {refused}");
    assert_eq!(code, Some(1), "{thresholds:?}");
    let [error_rate] = &thresholds[..] else { panic!("{thresholds:?}") };
    assert_eq!(error_rate.judgement, Judgement::Fail);
    let share = refused as f64 / (answered + refused) as f64;
    assert!((error_rate.measured.unwrap() - share).abs() < 0.05, "{error_rate:?}");
}

/// Control: the same example finds no error if no request is refused.
#[test]
fn the_ci_example_finds_no_error_in_a_healthy_server() {
    let server = ChatServer::spawn(0);
    let (_, thresholds) = run_example(&server);
    assert_eq!(server.counts()[1], 0);
    let [error_rate] = &thresholds[..] else { panic!("{thresholds:?}") };
    assert_eq!(error_rate.measured, Some(0.0), "{error_rate:?}");
    assert_ne!(error_rate.judgement, Judgement::Fail);
}
