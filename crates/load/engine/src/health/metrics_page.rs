//! A page of metrics in Prometheus' text format, and the CPU time of a process on another host.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use plimsoll_measure::{Nanos, named_enum};
use plimsoll_plan::{TargetUrl, UrlFault};

const FORM: &str = "write http://HOST:PORT/metrics, followed by #cpus=N&LABEL=VALUE if needed";

/// Where a page of metrics is, and which of its figures count.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsPage {
    pub(crate) url: TargetUrl,
    /// CPUs that the process may use, if given by the user.
    cpus: Option<f64>,
    /// Labels of the series that count.
    labels: Vec<(String, String)>,
}

/// Why a text names no page of metrics. It does not quote the text, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URL of the metrics {0}; {FORM}")]
pub struct MetricsPageError(String);

/// Reads `http://HOST:PORT/PATH#cpus=N&LABEL=VALUE`; the part after the `#` is not sent.
impl FromStr for MetricsPage {
    type Err = MetricsPageError;

    fn from_str(text: &str) -> Result<Self, MetricsPageError> {
        let error = |fault: &str| MetricsPageError(fault.to_owned());
        let (url, chosen) = text.split_once('#').unwrap_or((text, ""));
        let url: TargetUrl = url.parse().map_err(|fault: UrlFault| error(&fault.to_string()))?;
        let mut page = Self { url, cpus: None, labels: Vec::new() };
        for part in chosen.split('&').filter(|part| !part.is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| error("has a part without `=`"))?;
            if name == "cpus" {
                let cpus = value.parse().ok().filter(|cpus: &f64| cpus.is_finite() && *cpus > 0.0);
                page.cpus = Some(cpus.ok_or_else(|| error("has an invalid number of CPUs"))?);
            } else {
                page.labels.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(page)
    }
}

/// The URL, without the part that is not sent.
impl fmt::Display for MetricsPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

named_enum! {
    /// A figure that pages give CPU time as.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum CpuMetric {
        /// A cAdvisor page, by container. cAdvisor samples every few seconds, independent of
        /// requests for its page.
        Container => "container_cpu_usage_seconds_total",
        /// A page of a process that exposes its own metrics.
        Process => "process_cpu_seconds_total",
        /// A node exporter page: a whole host.
        Host => "node_cpu_seconds_total",
    }
}

/// Values of a page at one moment: sums over its matching series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuReading {
    pub(crate) metric: CpuMetric,
    /// CPU time since the process began.
    pub(crate) cpu: Nanos,
    /// CPUs that may be used, as the page or the user says.
    pub(crate) cpus: Option<f64>,
    /// Periods of a quota: all, those in which it stopped the container, and for how many seconds.
    pub(crate) quota: Option<[f64; 3]>,
}

/// The values of a page at one moment.
pub(crate) trait FromPage: Clone + Send + Sized + 'static {
    /// Reads a page.
    ///
    /// # Errors
    /// The missing part, in words.
    fn read(page: &MetricsPage, text: &str) -> Result<Self, String>;
}

impl FromPage for CpuReading {
    fn read(page: &MetricsPage, text: &str) -> Result<Self, String> {
        let samples: Vec<_> = text.lines().filter_map(Sample::read).collect();
        let chosen = ChosenSamples { samples: &samples, page };
        // Without a label, all containers of a host would count.
        if !page.labels.is_empty()
            && let Some(reading) = page.container(&chosen)
        {
            return Ok(reading);
        }
        if let Some(cpu_s) = chosen.sum(CpuMetric::Process.name()) {
            // Go's runtime reports how many threads may run at once.
            let cpus = page.cpus.or_else(|| chosen.sum("go_sched_gomaxprocs_threads"));
            return Ok(Self { metric: CpuMetric::Process, cpu: seconds(cpu_s), cpus, quota: None });
        }
        page.host(&chosen).ok_or_else(|| page.lacks(&samples))
    }
}

impl MetricsPage {
    /// Whether a sample has the labels that the user gave.
    pub(crate) fn chooses(&self, sample: &Sample<'_>) -> bool {
        sample.has(&self.labels)
    }

    fn container(&self, chosen: &ChosenSamples<'_>) -> Option<CpuReading> {
        let used: Vec<_> = chosen.named(CpuMetric::Container.name()).collect();
        if used.is_empty() {
            return None;
        }
        let totals = used.iter().filter(|sample| sample.label("cpu") == Some("total"));
        let total = totals.map(|sample| sample.value).reduce(|a, b| a + b);
        let quotas = chosen.named("container_spec_cpu_quota").count() as f64;
        let quota = chosen.sum("container_spec_cpu_quota");
        // The sum of the periods is one period times the number of quotas.
        let allowed = quota
            .zip(chosen.sum("container_spec_cpu_period"))
            .map(|(quota, period)| quota * quotas / period);
        let periods = chosen.sum("container_cpu_cfs_periods_total");
        let stopped = chosen.sum("container_cpu_cfs_throttled_periods_total");
        let stopped_s = chosen.sum("container_cpu_cfs_throttled_seconds_total");
        Some(CpuReading {
            metric: CpuMetric::Container,
            cpu: seconds(total.unwrap_or_else(|| used.iter().map(|sample| sample.value).sum())),
            cpus: self.cpus.or_else(|| allowed.filter(|cpus| *cpus > 0.0)),
            quota: periods
                .zip(stopped)
                .zip(stopped_s)
                .map(|((periods, stopped), stopped_s)| [periods, stopped, stopped_s]),
        })
    }

    fn host(&self, chosen: &ChosenSamples<'_>) -> Option<CpuReading> {
        let used: Vec<_> = chosen.named(CpuMetric::Host.name()).collect();
        if used.is_empty() {
            return None;
        }
        let busy = used.iter().filter(|sample| {
            !matches!(sample.label("mode"), Some("idle" | "iowait" | "guest" | "guest_nice"))
        });
        let cpus: BTreeSet<_> = used.iter().filter_map(|sample| sample.label("cpu")).collect();
        Some(CpuReading {
            metric: CpuMetric::Host,
            cpu: seconds(busy.map(|sample| sample.value).sum()),
            cpus: self.cpus.or(Some(cpus.len() as f64)),
            quota: None,
        })
    }

    fn lacks(&self, samples: &[Sample<'_>]) -> String {
        let [container, process, host] =
            [CpuMetric::Container, CpuMetric::Process, CpuMetric::Host].map(CpuMetric::name);
        if self.labels.is_empty() && samples.iter().any(|sample| sample.name == container) {
            return format!(
                "{self} has the containers of a host: choose one by a label, like #name=gateway"
            );
        }
        let labels: Vec<_> =
            self.labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let with =
            if labels.is_empty() { String::new() } else { format!(" with {}", labels.join(", ")) };
        format!("{self} has none of {process}, {container} and {host}{with}")
    }
}

fn seconds(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds.max(0.0))
}

/// The samples of a page that have the labels which the user gave.
struct ChosenSamples<'a> {
    samples: &'a [Sample<'a>],
    page: &'a MetricsPage,
}

impl<'a> ChosenSamples<'a> {
    fn named(&self, name: &'static str) -> impl Iterator<Item = &'a Sample<'a>> {
        let page = self.page;
        self.samples.iter().filter(move |sample| sample.name == name && page.chooses(sample))
    }

    /// `None` without samples.
    fn sum(&self, name: &'static str) -> Option<f64> {
        self.named(name).map(|sample| sample.value).reduce(|a, b| a + b)
    }
}

/// A line of a page.
#[derive(Debug)]
pub(crate) struct Sample<'t> {
    pub(crate) name: &'t str,
    labels: &'t str,
    pub(crate) value: f64,
}

impl<'t> Sample<'t> {
    /// `name{label="value",...} value [timestamp]`; `None` for comments and non-numeric values.
    pub(crate) fn read(line: &'t str) -> Option<Self> {
        let end = line.find(['{', ' ', '\t'])?;
        let (name, rest) = line.split_at_checked(end)?;
        if name.is_empty() || name.starts_with('#') {
            return None;
        }
        // A value may stand in the text of a label.
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(labels) => labels.split_at_checked(end_of_labels(labels)?)?,
            None => ("", rest),
        };
        let value = rest.trim_start_matches('}').split_ascii_whitespace().next()?;
        let value = value.parse().ok().filter(|value: &f64| value.is_finite())?;
        Some(Self { name, labels, value })
    }

    /// The value of a label, as it is written.
    fn label(&self, wanted: &str) -> Option<&'t str> {
        let mut rest = self.labels;
        while let Some((name, after)) = rest.split_once("=\"") {
            let end = end_of_text(after)?;
            let (value, behind) = after.split_at_checked(end)?;
            if name.trim() == wanted {
                return Some(value);
            }
            rest = behind.get(1..)?.trim_start_matches([',', ' ']);
        }
        None
    }

    pub(crate) fn has(&self, labels: &[(String, String)]) -> bool {
        labels.iter().all(|(name, value)| self.label(name) == Some(value))
    }
}

/// The place of the quote that ends a text.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// The place of the brace that ends the labels.
fn end_of_labels(text: &str) -> Option<usize> {
    let (mut escaped, mut quoted) = (false, false);
    text.bytes().position(|byte| {
        let ends = byte == b'}' && !quoted;
        quoted ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> MetricsPage {
        text.parse().unwrap()
    }

    #[test]
    fn a_url_has_a_page_and_what_counts_on_it() {
        let given = page("http://h:9100/metrics#cpus=2.5&pod=gw-1");
        assert_eq!(given.to_string(), "http://h:9100/metrics");
        assert_eq!(given.cpus, Some(2.5));
        assert_eq!(given.labels, [("pod".to_owned(), "gw-1".to_owned())]);
        assert_eq!(page("https://[::1]/m?x=1").to_string(), "https://[::1]/m?x=<redacted>");
        assert_eq!(page("http://h").to_string(), "http://h");
        assert_eq!(page("h:9100").to_string(), "http://h:9100");
        for (text, part) in [
            ("http://:9/", "no host"),
            ("http://me:pw@h/", "credentials"),
            ("http://h:x/", "port"),
            ("http://h/#cpus=0", "CPUs"),
            ("http://h/#cpus=inf", "CPUs"),
            ("http://h/#pod", "without `=`"),
        ] {
            let error = text.parse::<MetricsPage>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("/metrics"), "{error}");
        }
    }

    #[test]
    fn a_process_shows_its_own_time_and_go_its_threads() {
        let text = "# HELP process_cpu_seconds_total Time.\n# TYPE x counter\n\
                    process_cpu_seconds_total 12.5\ngo_sched_gomaxprocs_threads 4\n\
                    process_cpu_seconds_totals 99\nother NaN\n\n{ broken";
        let reading = CpuReading::read(&page("http://h/m"), text).unwrap();
        assert_eq!((reading.metric, reading.cpu.as_secs_f64()), (CpuMetric::Process, 12.5));
        assert_eq!(reading.cpus, Some(4.0));
        let told = CpuReading::read(&page("http://h/m#cpus=2"), text).unwrap();
        assert_eq!(told.cpus, Some(2.0), "the user knows better");
    }

    /// Two containers; the labels of one have a brace and a quote in their text.
    #[test]
    fn a_container_is_chosen_by_a_label() {
        let text = "\
container_cpu_usage_seconds_total{cpu=\"total\",id=\"/a}\\\"{\",name=\"gw\"} 40 1763800000000
container_cpu_usage_seconds_total{cpu=\"cpu00\",id=\"/a\",name=\"gw\"} 15
container_cpu_usage_seconds_total{cpu=\"total\",id=\"/b\",name=\"db\"} 7
container_spec_cpu_quota{id=\"/a\",name=\"gw\"} 150000
container_spec_cpu_period{id=\"/a\",name=\"gw\"} 100000
container_cpu_cfs_periods_total{name=\"gw\"} 600
container_cpu_cfs_throttled_periods_total{name=\"gw\"} 450
container_cpu_cfs_throttled_seconds_total{name=\"gw\"} 21.5
process_cpu_seconds_total 3";
        let reading = CpuReading::read(&page("http://h/m#name=gw"), text).unwrap();
        let quota = Some([600.0, 450.0, 21.5]);
        let expected = CpuReading {
            metric: CpuMetric::Container,
            cpu: Nanos::from_secs(40),
            cpus: Some(1.5),
            quota,
        };
        assert_eq!(reading, expected);
        let other = CpuReading::read(&page("http://h/m#name=db"), text).unwrap();
        assert_eq!((other.cpu.as_secs_f64(), other.cpus, other.quota), (7.0, None, None));
        // Not a container of this name, and the process on the page has no such label.
        let error = CpuReading::read(&page("http://h/m#name=none"), text).unwrap_err();
        assert!(error.contains("name=\"none\""), "{error}");
        let process = "process_cpu_seconds_total 3";
        let without = text.replace(process, "");
        let error = CpuReading::read(&page("http://h/m"), &without).unwrap_err();
        assert!(error.contains("choose one by a label"), "{error}");
    }

    #[test]
    fn a_host_is_what_its_cpus_do_not_idle() {
        let text = "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 100\n\
                    node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 30\n\
                    node_cpu_seconds_total{cpu=\"1\",mode=\"iowait\"} 50\n\
                    node_cpu_seconds_total{cpu=\"1\",mode=\"system\"} 5\n\
                    node_cpu_seconds_total{cpu=\"1\",mode=\"steal\"} 2";
        let reading = CpuReading::read(&page("http://h/m"), text).unwrap();
        assert_eq!((reading.metric, reading.cpu.as_secs_f64()), (CpuMetric::Host, 37.0));
        assert_eq!(reading.cpus, Some(2.0));
        assert!(CpuReading::read(&page("http://h/m"), "<html>not found</html>").is_err());
    }
}
