//! Reads pages of metrics while the load goes on: of processes on other hosts, and of servers.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock};
use plimsoll_metrics::{ProcessLoad, ProcessTrack, QuotaLoad, ServerTrack};
use plimsoll_plan::Scheme;
use plimsoll_transport::{Endpoint, SingleClient, SingleRequest};
use tokio::runtime::{Builder, Runtime};

use super::metrics_page::{CpuMetric, CpuReading, FromPage, MetricsPage};
use super::server_page::ServerReading;

/// Time between two readings of a page.
const PERIOD: Duration = Duration::from_secs(1);
/// Time for a page.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum bytes of a page; a host with many containers has a page of a few megabytes.
const MOST_BYTES: usize = 32 << 20;
/// Readings must cover this share of a stage.
const COVERED: f64 = 0.5;

/// A process on another host, or a server, that is watched through a page of metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedPage {
    /// Name in reports.
    pub name: String,
    /// The page.
    pub page: MetricsPage,
}

impl WatchedPage {
    /// Reads the CPU time of the process once.
    ///
    /// # Errors
    /// Why it cannot be watched, in words.
    pub fn check(&self) -> Result<(), String> {
        PageReader::new(&self.page)?.read::<CpuReading>().map(drop)
    }
}

/// The pages of a run, each read by a thread of its own: one that hangs delays no other.
#[derive(Debug)]
pub(crate) struct PageWatch<R>(Vec<Watching<R>>);

/// The readings of a page, and why the last attempt failed, if it did.
#[derive(Clone, Debug)]
struct Readings<R> {
    all: Vec<(Moment, R)>,
    error: Option<String>,
}

#[derive(Debug)]
struct Watching<R> {
    page: WatchedPage,
    readings: Arc<Mutex<Readings<R>>>,
    /// The thread ends when this is dropped.
    _until: Sender<()>,
}

impl<R: FromPage> PageWatch<R> {
    /// Reads these pages about once a second from now on. A page whose thread or reader cannot be
    /// made is one that is never read.
    pub(crate) fn start(pages: &[WatchedPage], clock: MonotonicClock) -> Self {
        Self(
            pages
                .iter()
                .map(|page: &WatchedPage| {
                    let none = Readings { all: Vec::new(), error: None };
                    let readings = Arc::new(Mutex::new(none));
                    let (until, over) = channel::<()>();
                    let (url, into) = (page.page.clone(), Arc::clone(&readings));
                    let thread = thread::Builder::new().name("metrics page".to_owned());
                    let _ = thread.spawn(move || poll(&url, &into, &clock, &over));
                    Watching { page: page.clone(), readings, _until: until }
                })
                .collect(),
        )
    }
}

impl PageWatch<ServerReading> {
    /// The figures of each server, by the run's clock.
    pub(crate) fn tracks(&self) -> Vec<ServerTrack> {
        let tracks = self.0.iter().map(|watching: &Watching<_>| {
            let Readings { all, error } = watching.readings();
            ServerTrack {
                name: watching.page.name.clone(),
                page: watching.page.page.to_string(),
                server: all.first().map_or("", |(_, reading)| reading.server),
                error: error.filter(|_| all.is_empty()),
                readings: all.into_iter().map(|(at, reading)| (at, reading.values)).collect(),
            }
        });
        tracks.collect()
    }
}

impl PageWatch<CpuReading> {
    /// Usage of each process between two moments.
    pub(crate) fn loads(&self, from: Moment, to: Moment) -> Vec<ProcessLoad> {
        self.0
            .iter()
            .map(|watching: &Watching<_>| load(&watching.page, &watching.readings().all, from, to))
            .collect()
    }

    /// The CPU time of each process at every reading since `origin`.
    pub(crate) fn tracks(&self, origin: Moment) -> Vec<ProcessTrack> {
        let tracks = self.0.iter().map(|watching| watching.track(origin));
        tracks.filter(|track| track.readings.len() > 1).collect()
    }
}

/// Polls a page, and keeps every successful reading.
fn poll<R: FromPage>(
    page: &MetricsPage,
    into: &Mutex<Readings<R>>,
    clock: &MonotonicClock,
    over: &Receiver<()>,
) {
    let Ok(reader) = PageReader::new(page) else { return };
    loop {
        let reading = reader.read();
        let mut readings = into.lock().unwrap_or_else(PoisonError::into_inner);
        match reading {
            Ok(reading) => readings.all.push((clock.now(), reading)),
            Err(error) => readings.error = Some(error),
        }
        drop(readings);
        if over.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

impl<R: FromPage> Watching<R> {
    fn readings(&self) -> Readings<R> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Watching<CpuReading> {
    /// The readings since `origin`.
    fn track(&self, origin: Moment) -> ProcessTrack {
        let all = self.readings().all;
        let since = all.iter().filter(|(at, _)| *at >= origin);
        ProcessTrack {
            name: self.page.name.clone(),
            readings: since.map(|(at, reading)| (at.since(origin), reading.cpu)).collect(),
        }
    }
}

/// Usage of a process between two moments, from the readings between them; empty if they cover too
/// little of the time, or if the process restarted.
fn load(
    watched: &WatchedPage,
    readings: &[(Moment, CpuReading)],
    from: Moment,
    to: Moment,
) -> ProcessLoad {
    let within: Vec<_> =
        changes(readings).into_iter().filter(|(at, _)| (from..=to).contains(at)).collect();
    let metric = readings.first().map_or("", |(_, reading)| reading.metric.name());
    let page = Some(format!("{} {metric}", watched.page).trim_end().to_owned());
    let load = ProcessLoad { name: watched.name.clone(), page, ..ProcessLoad::default() };
    let Some(((first, before), (last, after))) = within.first().zip(within.last()) else {
        return ProcessLoad { gone: true, ..load };
    };
    let wall_s = last.since(*first).as_secs_f64();
    let falls = within.windows(2).any(|pair| pair[1].1.cpu < pair[0].1.cpu);
    if falls || wall_s <= COVERED * to.since(from).as_secs_f64() {
        return ProcessLoad { gone: true, ..load };
    }
    let counted = before.quota.zip(after.quota).map(|(before, after)| {
        std::array::from_fn(|index| f64::max(after[index] - before[index], 0.0))
    });
    let [periods, stopped, throttled_s] = counted.unwrap_or_default();
    ProcessLoad {
        cores: after.cpu.saturating_sub(before.cpu).as_secs_f64() / wall_s,
        quota: after.cpus.map(|cpus| QuotaLoad {
            cpus,
            periods: whole(periods),
            throttled_periods: whole(stopped),
            throttled_s,
            with_generator: false,
        }),
        ..load
    }
}

/// A count, which pages print as a number with a point.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a difference of counters, which is not negative"
)]
const fn whole(count: f64) -> u64 {
    count as u64
}

/// The readings that count. A cAdvisor page repeats values that are seconds old, so the time of a
/// value is known only when the value changes.
fn changes(readings: &[(Moment, CpuReading)]) -> Vec<(Moment, CpuReading)> {
    let is_live = readings.first().is_none_or(|(_, first)| first.metric != CpuMetric::Container);
    if is_live {
        return readings.to_vec();
    }
    let changed = readings.windows(2).filter(|pair| pair[0].1.cpu != pair[1].1.cpu);
    changed.map(|pair| pair[1]).collect()
}

/// Reads one page repeatedly. The client, including the certificates of this host, is created once.
struct PageReader<'p> {
    page: &'p MetricsPage,
    client: SingleClient,
    runtime: Runtime,
}

impl<'p> PageReader<'p> {
    /// # Errors
    /// Why no page can be read from there, in words.
    fn new(page: &'p MetricsPage) -> Result<Self, String> {
        let endpoint = Endpoint::new(page.url.host().to_owned(), page.url.port());
        let client = SingleClient::new(endpoint, page.url.scheme() == Scheme::Https);
        let client = client.map_err(|cause| format!("cannot read {page}: {cause}"))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        Ok(Self { page, client, runtime })
    }

    /// # Errors
    /// Returns the reason why the page cannot be read, or the missing series, in words.
    fn read<R: FromPage>(&self) -> Result<R, String> {
        R::read(self.page, &self.text()?)
    }

    /// The text of the page.
    fn text(&self) -> Result<String, String> {
        let path = self.page.url.path_and_query();
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let request = SingleRequest {
            method: "GET",
            path: &path,
            headers: &[("accept", "text/plain; version=0.0.4")],
            body: Vec::new(),
        };
        let fetched = self.runtime.block_on(async {
            tokio::time::timeout(PATIENCE, self.client.fetch(request, MOST_BYTES)).await
        });
        let fetched = fetched.map_err(|_| self.cannot_read("no answer within 5 s"))?;
        let response = fetched.map_err(|cause| self.cannot_read(&cause))?;
        match response.status {
            200 if response.body.len() < MOST_BYTES => {
                Ok(String::from_utf8_lossy(&response.body).into_owned())
            }
            200 => Err(self.cannot_read("the page has more than 32 MiB")),
            status => Err(self.cannot_read(&format!("status {status}"))),
        }
    }

    fn cannot_read(&self, cause: &str) -> String {
        format!("cannot read {}: {cause}", self.page)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Nanos;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::EPOCH + Nanos::from_secs_f64(seconds)
    }

    fn watched(url: &str) -> WatchedPage {
        WatchedPage { name: "gateway".to_owned(), page: url.parse().unwrap() }
    }

    fn readings(metric: CpuMetric, cpu: &[f64]) -> Vec<(Moment, CpuReading)> {
        cpu.iter()
            .enumerate()
            .map(|(second, &cpu_s): (usize, &f64)| {
                (
                    at(second as f64),
                    CpuReading {
                        metric,
                        cpu: Nanos::from_secs_f64(cpu_s),
                        cpus: Some(2.0),
                        quota: None,
                    },
                )
            })
            .collect()
    }

    /// 0.5 s of CPU time a second; between seconds 2 and 8 there are 3 s.
    #[test]
    fn what_a_process_used_is_the_difference_of_the_readings_in_a_stage() {
        let steady: Vec<f64> = (0..12).map(|second| f64::from(second) * 0.5).collect();
        let all = readings(CpuMetric::Process, &steady);
        let page = watched("http://h/m");
        let found = load(&page, &all, at(1.5), at(8.5));
        assert!((found.cores - 0.5).abs() < 1e-9 && !found.gone, "{found:?}");
        assert_eq!(found.quota.map(|quota| quota.cpus), Some(2.0));
        assert_eq!(found.page.unwrap(), "http://h/m process_cpu_seconds_total");
        // The readings end in the middle of this stage, and there is none in the last.
        assert!(load(&page, &all, at(9.5), at(14.0)).gone);
        assert!(load(&page, &all, at(20.0), at(30.0)).gone);
        let mut anew = all;
        anew[5].1.cpu = Nanos::ZERO;
        assert!(load(&page, &anew, at(1.5), at(8.5)).gone, "it began anew");
    }

    /// A page that looks every four seconds: 2 s of CPU time between its looks at 4 and 8.
    #[test]
    fn a_page_that_repeats_itself_counts_where_it_changes() {
        let looked = [1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 5.0, 5.0, 5.0, 5.0];
        let all = readings(CpuMetric::Container, &looked);
        let found = load(&watched("http://h/m#name=x"), &all, at(3.0), at(9.0));
        assert!((found.cores - 0.5).abs() < 1e-9 && !found.gone, "{found:?}");
        // It shows one look in this stage, and so no difference.
        assert!(load(&watched("http://h/m#name=x"), &all, at(5.0), at(9.0)).gone);
    }

    /// A server whose process uses a tenth of a second of CPU time from page to page.
    #[test]
    fn pages_are_read_while_the_load_goes_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for (nth, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let text = format!("process_cpu_seconds_total {}\n", nth as f64 / 10.0);
                let length = text.len();
                let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}");
            }
        });
        let page = watched(&format!("http://127.0.0.1:{port}/metrics"));
        page.check().unwrap();
        let clock = MonotonicClock::start();
        let watch = PageWatch::<CpuReading>::start(std::slice::from_ref(&page), clock);
        let (began, (_never, wait)) = (clock.now(), channel::<()>());
        while watch.0[0].readings().all.len() < 3 && clock.now().since(began) < Nanos::from_secs(30)
        {
            let _ = wait.recv_timeout(Duration::from_millis(50));
        }
        let read: Vec<_> = watch.0[0]
            .readings()
            .all
            .iter()
            .map(|(_, page)| page.cpu.as_u64() / 1_000_000)
            .collect();
        assert_eq!(read[..3], [100, 200, 300]);
        assert_eq!(watch.tracks(Moment::EPOCH)[0].readings.len(), read.len());
        let gone = watched("http://127.0.0.1:1/metrics").check().unwrap_err();
        assert!(gone.starts_with("cannot read http://127.0.0.1:1/metrics: "), "{gone}");
    }
}
