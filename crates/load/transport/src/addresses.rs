//! The addresses of a name. Connections are spread over them, and addresses that are silent or
//! refuse are avoided (RFC 8305, but with equal addresses in turn).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use plimsoll_measure::{Clock, ErrorClass, Moment, Nanos, Side};
use tokio::net::{TcpSocket, TcpStream};

use crate::failure::Failure;

/// Time without a response after which the next address is tried in parallel.
const PATIENCE: Duration = Duration::from_millis(250);

/// Time for which an address that was silent or refused is tried last.
const AVOIDED: Nanos = Nanos::from_secs(30);

/// State of the addresses of one name.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// Number of connections that were started.
    started: Cell<usize>,
    known: RefCell<BTreeMap<SocketAddr, Known>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    connections: u64,
    failed: Option<Moment>,
}

impl Addresses {
    /// Connects to one of the addresses, optionally from a local one. Fails if none accepts.
    pub(crate) async fn connect<C: Clock>(
        &self,
        clock: &C,
        addresses: &[SocketAddr],
        source: Option<IpAddr>,
    ) -> Result<TcpStream, Failure> {
        if let [only] = addresses {
            // The usual case, which needs no allocation.
            let connected = connect_from(*only, source).await;
            return connected.map_err(|error| failed(*only, &error));
        }
        let mut waiting = self.in_turn(addresses, clock.now()).into_iter();
        let mut race = Race::default();
        let mut failures: Vec<Failure> = Vec::new();
        loop {
            if let Some(next) = waiting.next() {
                race.start(next, source);
            } else if race.0.is_empty() {
                return Err(all_failed(&failures));
            }
            let ended = if waiting.len() > 0 {
                tokio::time::timeout(PATIENCE, race.next()).await.ok()
            } else {
                Some(race.next().await)
            };
            match ended {
                None => {}
                Some((address, Ok(tcp))) => {
                    self.won(address, &race, clock.now());
                    return Ok(tcp);
                }
                Some((address, Err(error))) => {
                    failures.push(self.lost(address, &error, clock.now())?);
                }
            }
        }
    }

    /// An address has accepted, so the addresses that were tried earlier are silent.
    fn won(&self, address: SocketAddr, race: &Race, now: Moment) {
        for silent in race.before(address) {
            self.note(silent, |known| known.failed = Some(now));
        }
        self.note(address, |known| {
            *known = Known { connections: known.connections + 1, failed: None };
        });
    }

    /// An address has failed. Returns an error if this machine caused the failure.
    fn lost(
        &self,
        address: SocketAddr,
        error: &io::Error,
        now: Moment,
    ) -> Result<Failure, Failure> {
        let failure = failed(address, error);
        if failure.class.side() == Side::Generator {
            return Err(failure);
        }
        self.note(address, |known| known.failed = Some(now));
        Ok(failure)
    }

    /// Number of connections by address, if there are several.
    pub(crate) fn connections(&self) -> Vec<(SocketAddr, u64)> {
        let known = self.known.borrow();
        known.iter().map(|(address, known)| (*address, known.connections)).collect()
    }

    fn note(&self, address: SocketAddr, note: impl FnOnce(&mut Known)) {
        note(self.known.borrow_mut().entry(address).or_default());
    }

    /// The addresses in the order of the attempts: addresses of the preferred family in turn, each
    /// followed by one of the other family, then the addresses that failed recently.
    fn in_turn(&self, addresses: &[SocketAddr], now: Moment) -> Vec<SocketAddr> {
        let turn = self.started.get();
        self.started.set(turn.wrapping_add(1));
        let mut known = self.known.borrow_mut();
        let (good, avoided): (Vec<_>, Vec<_>) = addresses.iter().copied().partition(|address| {
            let failed = known.entry(*address).or_default().failed;
            failed.is_none_or(|failed| now.since(failed) >= AVOIDED)
        });
        let first = good.first().map(SocketAddr::is_ipv4);
        let (mut preferred, others): (Vec<_>, Vec<_>) =
            good.into_iter().partition(|address| Some(address.is_ipv4()) == first);
        let turn = turn % preferred.len().max(1);
        preferred.rotate_left(turn);
        let mut others = others.into_iter();
        let mut order = Vec::with_capacity(addresses.len());
        for address in preferred {
            order.push(address);
            order.extend(others.next());
        }
        order.extend(others);
        order.extend(avoided);
        order
    }
}

/// Parallel attempts to connect, each to another address, in the order of their start.
#[derive(Default)]
struct Race(Vec<(SocketAddr, Attempt)>);

type Attempt = Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>;

impl Race {
    fn start(&mut self, address: SocketAddr, source: Option<IpAddr>) {
        self.0.push((address, Box::pin(connect_from(address, source))));
    }

    /// Waits for the first attempt that ends.
    async fn next(&mut self) -> (SocketAddr, io::Result<TcpStream>) {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(SocketAddr, io::Result<TcpStream>)> {
        let mut attempts = self.0.iter_mut().enumerate();
        let ended =
            attempts.find_map(|(index, (address, attempt))| match attempt.as_mut().poll(context) {
                Poll::Ready(ended) => Some((index, *address, ended)),
                Poll::Pending => None,
            });
        let Some((index, address, ended)) = ended else { return Poll::Pending };
        // A successful attempt stays in the list, to mark those before it.
        if ended.is_err() {
            drop(self.0.remove(index));
        }
        Poll::Ready((address, ended))
    }

    fn before(&self, winner: SocketAddr) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|(address, _)| *address).take_while(move |address| *address != winner)
    }
}

async fn connect_from(address: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let tcp = match source {
        None => TcpStream::connect(address).await?,
        Some(source) => {
            let socket =
                if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // The kernel chooses the port together with the target's address, so that each pair of
            // addresses can use all ports. Kernels before Linux 4.2 do not support this.
            let _ = setsockopt(&socket, IpBindAddressNoPort, &true);
            socket.bind(SocketAddr::new(source, 0))?;
            socket.connect(address).await?
        }
    };
    // Requests are written in one piece, so Nagle's algorithm would only add delay.
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

fn failed(address: SocketAddr, error: &io::Error) -> Failure {
    let failure = Failure::connecting(error);
    Failure { detail: format!("{address}: {}", failure.detail), ..failure }
}

/// The failure of a name: the class of its last address, and the error of each address.
fn all_failed(failures: &[Failure]) -> Failure {
    let details: Vec<_> = failures.iter().map(|failure| failure.detail.as_str()).collect();
    let class = failures.last().map_or(ErrorClass::Dns, |failure| failure.class);
    let detail = if details.is_empty() { "no address".to_owned() } else { details.join(", ") };
    Failure::new(class, detail)
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::{ManualClock, MonotonicClock};

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn run<T>(body: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(body)
    }

    /// A listener whose kernel accepts connections, and one whose full queue drops them.
    fn listeners(port: u16) -> (std::net::TcpListener, SocketAddr) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        let own = listener.local_addr().unwrap();
        (listener, own)
    }

    fn silent(at: &str, port: u16) -> (std::net::TcpListener, Vec<socket2::Socket>) {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let own = SocketAddr::new(at.parse().unwrap(), port);
        socket.bind(&own.into()).unwrap();
        socket.listen(0).unwrap();
        let fill = |_| {
            let client =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            client.set_nonblocking(true).unwrap();
            let _ = client.connect(&own.into());
            client
        };
        (socket.into(), (0..6).map(fill).collect())
    }

    #[test]
    fn a_source_address_leaves_the_port_to_the_connect() {
        let (_listener, target) = listeners(0);
        let source = "127.0.0.2".parse().unwrap();
        let tcp = run(connect_from(target, Some(source))).unwrap();
        assert_eq!(tcp.local_addr().unwrap().ip(), source);
        assert!(nix::sys::socket::getsockopt(&tcp, IpBindAddressNoPort).unwrap());
    }

    #[test]
    fn addresses_take_turns_within_the_preferred_family() {
        let addresses = Addresses::default();
        let all = ["[::1]:1", "[::2]:1", "127.0.0.1:1"].map(address);
        let shown = |now| {
            let order = addresses.in_turn(&all, now);
            order.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" ")
        };
        let now = Moment::EPOCH + Nanos::from_secs(60);
        assert_eq!(shown(now), "[::1]:1 127.0.0.1:1 [::2]:1");
        assert_eq!(shown(now), "[::2]:1 127.0.0.1:1 [::1]:1");
        addresses.note(all[0], |known| known.failed = Some(now));
        addresses.note(all[1], |known| known.failed = Some(now));
        assert_eq!(shown(now), "127.0.0.1:1 [::1]:1 [::2]:1", "those that failed come last");
        assert_eq!(shown(now + AVOIDED), "[::2]:1 127.0.0.1:1 [::1]:1", "and get another chance");
    }

    #[test]
    fn connections_are_spread_and_counted() {
        let (_listener, own) = listeners(0);
        let second = std::net::TcpListener::bind(("127.0.0.2", own.port())).unwrap();
        let all = [own, second.local_addr().unwrap()];
        let (addresses, clock) = (Addresses::default(), ManualClock::default());
        run(async {
            for _ in 0..6 {
                addresses.connect(&clock, &all, None).await.unwrap();
            }
        });
        assert_eq!(addresses.connections(), [(all[0], 3), (all[1], 3)]);
    }

    #[test]
    fn a_refusing_address_is_passed_over_at_once_and_all_are_named_in_the_end() {
        let (_listener, own) = listeners(0);
        let dead = SocketAddr::new("127.0.0.3".parse().unwrap(), own.port());
        let (addresses, clock) = (Addresses::default(), ManualClock::default());
        run(async {
            for _ in 0..4 {
                let tcp = addresses.connect(&clock, &[dead, own], None).await.unwrap();
                assert_eq!(tcp.peer_addr().unwrap(), own);
            }
            assert_eq!(addresses.connections(), [(own, 4), (dead, 0)]);
            let gone = [address("127.0.0.3:1"), address("127.0.0.4:1")];
            let failure = addresses.connect(&clock, &gone, None).await.unwrap_err();
            assert_eq!(failure.class, ErrorClass::ConnectRefused);
            for part in ["127.0.0.3:1", "127.0.0.4:1"] {
                assert!(failure.detail.contains(part), "{}", failure.detail);
            }
        });
    }

    #[test]
    fn a_silent_address_costs_its_patience_once() {
        let (_listener, own) = listeners(0);
        let (_silent, _fill) = silent("127.0.0.5", own.port());
        let dead = SocketAddr::new("127.0.0.5".parse().unwrap(), own.port());
        let (addresses, clock) = (Addresses::default(), MonotonicClock::start());
        run(async {
            let mut times = Vec::new();
            for _ in 0..3 {
                let began = clock.now();
                let tcp = addresses.connect(&clock, &[dead, own], None).await.unwrap();
                assert_eq!(tcp.peer_addr().unwrap(), own);
                times.push(clock.now().since(began));
            }
            let patience = Nanos::from_millis(250);
            assert!(times[0] >= patience, "{times:?}");
            assert!(times[1..].iter().all(|time| *time < patience), "{times:?}");
        });
        assert_eq!(addresses.connections(), [(own, 3), (dead, 0)]);
    }
}
