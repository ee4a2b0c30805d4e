//! Gates: how much worse one number of a run may get from one version of a target to the next,
//! written like `ttft.p99: 10%`.

use plimsoll_rules::number::count;
use plimsoll_stats::runs::Worse;
use plimsoll_stats::{samples_needed, samples_that_agree};

use super::grammar::{Subject as Named, number};
use super::{Aggregate, Limit};
use crate::bounded_figure::BoundedFigure;
use crate::catalog::{Figure, Metric, Unit};
use crate::distribution::QUANTILES;
use crate::error::MetricsError;
use crate::limit::Scope;
use crate::results::{DistributionSummary, Group, Results};
use crate::summary::RunSummary;

/// CPU time per request of a watched process. The catalog does not list it, because it describes a
/// process, not requests.
const CPU: &str = "cpu";

/// How much worse a figure may get.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// By this share of the figure: 0.03 for `3%`.
    Relative(f64),
    /// By this much, of a share: 0.001 for `0.1pp`.
    Points(f64),
}

/// A bound on how much worse one number of a run may get.
#[derive(Clone, Debug)]
pub struct Gate {
    name: String,
    subject: Subject,
    margin: Margin,
}

/// The number that a gate is about.
#[derive(Clone, Debug)]
enum Subject {
    /// One of the catalog, of a part of the run.
    Figure(Figure, Aggregate, Scope),
    /// CPU time per request, in microseconds, of the watched process with this name; without a
    /// name, of the only one.
    Cpu(Option<String>),
}

impl Gate {
    /// Reads a gate: `ttft.p99` and `10%`, `throughput{stage:2}` and `2%`, `error_rate` and
    /// `0.1pp`, `cpu{process:gateway}` and `3%`. Times need an aggregate (`p50`, `p99.9`, `mean`,
    /// `max`), shares a margin in percentage points.
    ///
    /// # Errors
    /// [`MetricsError::Limit`], [`MetricsError::UnknownMetric`] and [`MetricsError::Scope`].
    pub fn parse(figure: &str, margin: &str) -> Result<Self, MetricsError> {
        let refuse = |cause: String| MetricsError::Limit {
            limit: format!("{}: {}", figure.trim(), margin.trim()),
            cause,
            example: "ttft.p99: 10%",
        };
        let (subject, name) = subject(figure.trim(), &refuse)?;
        let margin = parse_margin(margin.trim(), subject.unit()).map_err(refuse)?;
        Ok(Self { name, subject, margin })
    }

    /// The name of the figure, in full: `response_time.p50` for `response.p50`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much worse it may get.
    pub const fn margin(&self) -> Margin {
        self.margin
    }

    /// With a relative margin, unless the figure is a share.
    pub fn with_relative(self, share: f64) -> Self {
        match self.margin {
            Margin::Relative(_) => Self { margin: Margin::Relative(share), ..self },
            Margin::Points(_) => self,
        }
    }

    /// The unit of the figure. CPU time is in microseconds per request, and counts as a time.
    pub const fn unit(&self) -> Unit {
        self.subject.unit()
    }

    /// Whether it is CPU time per request, in microseconds.
    pub const fn is_cpu(&self) -> bool {
        matches!(self.subject, Subject::Cpu(_))
    }

    /// The direction in which the figure gets worse.
    pub fn worse(&self) -> Worse {
        match &self.subject {
            Subject::Figure(figure, ..) => figure.worse(),
            Subject::Cpu(_) => Worse::Higher,
        }
    }

    /// The figure of a run, times in milliseconds, CPU time in microseconds.
    ///
    /// # Errors
    /// Why the run has none that may be used.
    pub fn measure(&self, run: &RunSummary) -> Result<BoundedFigure, String> {
        let found = match &self.subject {
            Subject::Figure(figure, aggregate, scope) => {
                measure(*figure, *aggregate, scope, &run.results)?
            }
            Subject::Cpu(process) => BoundedFigure::exact(cpu(run, process.as_deref())?),
        };
        found.refused.map_or(Ok(found), |why| Err(why.words().to_owned()))
    }

    /// Requests that a share is a share of; `None` for other figures.
    pub fn trials(&self, run: &RunSummary) -> Option<u64> {
        match &self.subject {
            Subject::Figure(figure, _, scope) if figure.unit() == Unit::Share => {
                run.results.group(scope).map(|group: &Group| match figure.name() {
                    "policy_correctness" => group.counters.judged,
                    _ => group.counters.scheduled,
                })
            }
            _ => None,
        }
    }
}

impl Subject {
    const fn unit(&self) -> Unit {
        match self {
            Self::Figure(figure, ..) => figure.unit(),
            Self::Cpu(_) => Unit::Time,
        }
    }
}

/// Reads the figure; returns its full name too.
fn subject(
    text: &str,
    refuse: &dyn Fn(String) -> MetricsError,
) -> Result<(Subject, String), MetricsError> {
    let (head, tag) = text.split_once('{').map_or((text, None), |(head, tag)| (head, Some(tag)));
    if head.trim() == CPU {
        let process = tag.map(|tag| {
            let inside = tag.trim_end().strip_suffix('}').and_then(|tag| tag.split_once(':'));
            let name = inside.filter(|(key, _)| key.trim() == "process");
            let name = name.map(|(_, name)| name.trim().to_owned());
            name.ok_or_else(|| refuse("it needs a watched process: `cpu{process:NAME}`".to_owned()))
        });
        return Ok((Subject::Cpu(process.transpose()?), text.to_owned()));
    }
    let named = Named::parse(text)?;
    if let Figure::Counter(_) = named.figure {
        let cause = "it is a count, which grows with the run; name a time, a rate or a share";
        return Err(refuse(cause.to_owned()));
    }
    let aggregate = named.aggregate("").map_err(refuse)?;
    let written = match (aggregate, named.aggregate.as_deref()) {
        (Aggregate::Value, _) | (_, None) => String::new(),
        (_, Some(written)) => format!(".{written}"),
    };
    let name = format!("{}{written}{}", named.figure.name(), named.scope);
    Ok((Subject::Figure(named.figure, aggregate, named.scope), name))
}

fn parse_margin(text: &str, unit: Unit) -> Result<Margin, String> {
    let points = text.strip_suffix("pp").map(positive);
    let percent = text.strip_suffix('%').map(positive);
    let cause = match (points, percent, unit == Unit::Share) {
        (Some(Some(points)), _, true) => return Ok(Margin::Points(points)),
        (_, Some(Some(share)), false) if share < 1.0 => return Ok(Margin::Relative(share)),
        (Some(_), _, false) => "its margin is relative: percent, not percentage points",
        (_, Some(_), true) => "it is a share, and may be 0: its margin is in percentage points",
        (_, Some(Some(_)), false) => "its margin is 100 % or more",
        (None, None, _) => "its margin has no unit",
        _ => "its margin is not a number above 0",
    };
    Err(cause.to_owned())
}

fn positive(text: &str) -> Option<f64> {
    number(text).filter(|number| *number > 0.0).map(|n| n / 100.0)
}

/// CPU time per request of a watched process over the whole run, in microseconds.
fn cpu(run: &RunSummary, process: Option<&str>) -> Result<f64, String> {
    let mut watched = run.processes.iter().filter(|process| process.stage.is_none());
    let mut matching =
        watched.by_ref().filter(|found| process.is_none_or(|wanted| wanted == found.name));
    let found = matching.next().ok_or_else(|| match process {
        Some(name) => format!("no process was watched as `{name}` (--watch {name}=:PORT)"),
        None => "no process was watched (--watch NAME=:PORT)".to_owned(),
    })?;
    if matching.next().is_some() {
        return Err("several processes were watched: name one, like `cpu{process:NAME}`".to_owned());
    }
    found.cpu_us_per_request.ok_or_else(|| "the process served no request".to_owned())
}

// The figures that limits and gates are about.

impl Limit {
    /// The figure, or why there is none.
    pub(super) fn measure(&self, results: &Results) -> Result<BoundedFigure, String> {
        measure(self.figure, self.aggregate, &self.scope, results)
    }

    /// The ends of a percentile with too few values: it is at least the highest percentile with
    /// enough values, and at most the largest value, if that many values would rarely lie on one
    /// side by chance ([`samples_that_agree`]).
    pub(super) fn ends_of_few(&self, results: &Results) -> Option<[f64; 2]> {
        let (Figure::Distribution(metric), Aggregate::Quantile(q)) = (self.figure, self.aggregate)
        else {
            return None;
        };
        let times = results.group(&self.scope)?.distribution(metric)?;
        let ends = |figure: BoundedFigure| figure.limits(self.figure.bias());
        let lower = QUANTILES.iter().filter(|quantile| quantile.q < q);
        let lower = lower.filter_map(|quantile| times.figure(quantile)).map(|f| ends(f)[0]);
        let least =
            (times.count >= samples_that_agree(1.0 - q)).then(|| ends(times.min_figure())[0]);
        let most = (times.count >= samples_that_agree(q)).then(|| ends(times.max_figure())[1]);
        let low = lower.chain(least).fold(0.0, f64::max);
        Some([low, most.unwrap_or(f64::INFINITY)])
    }

    /// Whether the figure is a time per token of answers whose content events were counted: they
    /// may hold several tokens each, so that the time may be shorter.
    pub(super) fn rests_on_estimated_tokens(&self, results: &Results) -> bool {
        let Figure::Distribution(metric) = self.figure else { return false };
        results.group(&self.scope).is_some_and(|group| group.has_estimated_tokens(metric))
    }
}

/// One number of a part of a run with its bound, or why there is none.
pub(super) fn measure(
    figure: Figure,
    aggregate: Aggregate,
    scope: &Scope,
    results: &Results,
) -> Result<BoundedFigure, String> {
    let group = results.group(scope).ok_or("no such group in the run")?;
    if group.counters.scheduled == 0 {
        return Err("nothing was scheduled".to_owned());
    }
    match figure {
        Figure::Distribution(metric) => {
            let times = group.distribution(metric).ok_or_else(|| without_value(group, metric))?;
            of_times(times, aggregate)
        }
        Figure::Counter(counter) => Ok(BoundedFigure::exact((counter.of)(&group.counters) as f64)),
        Figure::Rate(rate) => group.rate(rate).ok_or_else(|| {
            let why = match (rate.name, rate.unit) {
                ("goodput" | "good_share", _) if group.counters.goodput_judged == 0 => {
                    "the profile has no `goodput`"
                }
                (_, Unit::Share) => "no requests to compute a share of",
                _ => "the stage had no duration",
            };
            why.to_owned()
        }),
    }
}

/// Why a distribution has no value.
fn without_value(group: &Group, metric: Metric) -> String {
    let of = metric.population().name();
    if metric.is_of_streams() && group.streams.is_none() && group.counters.completed > 0 {
        return format!("no {of} request was a stream (--set stream=true)");
    }
    format!("no {of} request has this value")
}

fn of_times(times: &DistributionSummary, aggregate: Aggregate) -> Result<BoundedFigure, String> {
    match aggregate {
        Aggregate::Quantile(q) => {
            let found = times.figure_at(q).map_err(|error: MetricsError| error.to_string())?;
            found.ok_or_else(|| {
                let [count, needed] = [times.count, samples_needed(q)].map(count);
                format!("{count} samples are too few for this percentile, which needs {needed}")
            })
        }
        Aggregate::Mean => Ok(times.mean_figure()),
        Aggregate::Min => Ok(times.min_figure()),
        Aggregate::Max => Ok(times.max_figure()),
        Aggregate::Count | Aggregate::Value => Ok(BoundedFigure::exact(times.count as f64)),
    }
}
