use std::io::Read as _;
use std::net::{TcpListener, TcpStream as StdStream};
use std::task::Context;
use std::time::Duration;

use plimsoll_measure::{MonotonicClock, Nanos};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::{spawn_local, yield_now};

use super::*;

/// A worker that woke once and has sent nothing since.
fn queue() -> (Arc<LookTimes>, Rc<SendQueue>) {
    let looks = Arc::new(LookTimes::default());
    looks.wakes(Moment::from_nanos(1));
    (Arc::clone(&looks), Rc::new(SendQueue::new(looks)))
}

/// A worker that has sent this many requests since it woke, and whose queue is driven.
async fn busy(queue: &Rc<SendQueue>, requests: u32) {
    let driver = Rc::clone(queue);
    spawn_local(async move { driver.drive(&MonotonicClock::start()).await });
    yield_now().await;
    for _ in 0..requests {
        queue.count_request();
    }
}

/// The only connection's place of a busy worker, its remote end, and a clock.
async fn busy_with_one() -> (SendPlace, StdStream, MonotonicClock) {
    let (_, queue) = queue();
    busy(&queue, BUSY).await;
    let (place, far) = connect(&queue).await;
    (place, far, MonotonicClock::start())
}

/// The place of a new connection, and its remote end.
async fn connect(queue: &Rc<SendQueue>) -> (SendPlace, StdStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = StdStream::connect(listener.local_addr().unwrap()).unwrap();
    near.set_nonblocking(true).unwrap();
    let (far, _) = listener.accept().unwrap();
    far.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let tcp = Rc::new(TcpStream::from_std(near).unwrap());
    tcp.writable().await.unwrap();
    (SendPlace::new(Rc::clone(queue), tcp), far)
}

fn request(body: usize) -> OutgoingRequest {
    let head = b"POST / HTTP/1.1\r\n\r\n".to_vec();
    OutgoingRequest::new(EncodedRequest { head, body: vec![b'x'; body] })
}

/// The bytes that arrive within 20 ms.
fn arrived(far: &mut StdStream) -> usize {
    let (mut all, mut buffer) = (0, vec![0; 1 << 20]);
    while let Ok(length @ 1..) = far.read(&mut buffer) {
        all += length;
    }
    all
}

fn run<F: Future>(work: F) -> F::Output {
    let runtime =
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(work)
}

#[test]
fn only_a_busy_worker_lets_requests_wait_and_only_if_somebody_will_send_them() {
    run(async {
        let (looks, queue) = queue();
        (0..2 * BUSY).for_each(|_| assert!(!queue.count_request(), "nobody drives it"));
        looks.wakes(Moment::from_nanos(2));
        busy(&queue, 0).await;
        // As many requests as before the sleep mean that it is still busy.
        assert!(queue.count_request());
        looks.wakes(Moment::from_nanos(3));
        for count in 1..BUSY {
            assert!(!queue.count_request(), "{count} since it woke");
        }
        assert!(queue.count_request());
    });
}

#[test]
fn a_few_requests_are_sent_together_and_the_rest_when_others_had_their_turn() {
    run(async {
        let (_, queue) = queue();
        busy(&queue, BUSY).await;
        let clock = MonotonicClock::start();
        let mut places = Vec::new();
        for _ in 0..MOST + 2 {
            places.push(connect(&queue).await);
        }
        let began = clock.now();
        for (number, (place, _)) in places.iter().enumerate() {
            let mut outgoing = request(10);
            assert!(place.hold(&mut outgoing, Waker::noop(), &clock));
            assert!(outgoing.is_done(), "it is with the queue");
            let tried = places
                .iter()
                .filter(|(place, _)| matches!(*place.0.state.borrow(), Held::Tried(_, Ok(_))));
            assert_eq!(tried.count(), if number + 1 < MOST { 0 } else { MOST });
        }
        yield_now().await;
        for (place, far) in &mut places {
            let mut outgoing = OutgoingRequest::default();
            let at = place.take_back(&mut outgoing).unwrap().expect("it was sent");
            assert!(at >= began && at.since(began) < Nanos::from_secs(60));
            assert!(outgoing.is_done());
            assert_eq!(arrived(far), 29);
            assert_eq!(place.take_back(&mut outgoing).unwrap(), None, "once is enough");
        }
        let mut spent = Vec::new();
        queue.take_spent(|request| spent.push(request.len()));
        assert_eq!(spent, vec![29; MOST + 2]);
    });
}

#[test]
fn a_request_that_was_taken_back_is_not_sent() {
    run(async {
        let (place, mut far, clock) = busy_with_one().await;
        let mut outgoing = request(10);
        assert!(place.hold(&mut outgoing, Waker::noop(), &clock));
        assert_eq!(place.take_back(&mut outgoing).unwrap(), None);
        assert_eq!((outgoing.is_done(), outgoing.rest()[1].len()), (false, 10));
        yield_now().await;
        assert_eq!(arrived(&mut far), 0);
    });
}

#[test]
fn what_the_socket_does_not_take_is_given_back_and_wakes_its_task() {
    run(async {
        let (place, mut far, clock) = busy_with_one().await;
        let length = 64 << 20;
        let mut outgoing = request(length);
        let mut held = false;
        poll_fn(|context: &mut Context<'_>| {
            if mem::replace(&mut held, true) {
                return Poll::Ready(());
            }
            assert!(place.hold(&mut outgoing, context.waker(), &clock));
            Poll::Pending
        })
        .await;
        assert!(place.take_back(&mut outgoing).unwrap().is_some());
        let left: usize = outgoing.rest().iter().map(|part| part.len()).sum();
        assert!(left > 0 && left < length && !outgoing.is_done());
        assert_eq!(arrived(&mut far) + left, length + 19);
    });
}

#[test]
fn a_failure_to_send_is_the_failure_of_the_exchange() {
    run(async {
        let (place, far, clock) = busy_with_one().await;
        drop(far);
        // The first write after the end causes a reset, and the next one fails.
        let mut results = Vec::new();
        for _ in 0..3 {
            let mut outgoing = request(10);
            assert!(place.hold(&mut outgoing, Waker::noop(), &clock));
            tokio::time::sleep(Duration::from_millis(5)).await;
            results.push(place.take_back(&mut outgoing).map(|at| at.is_some()).ok());
        }
        assert_eq!((results[0], results[2]), (Some(true), None), "{results:?}");
    });
}
