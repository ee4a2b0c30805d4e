//! Gates: how much worse one number of a run may get from one version of a target to the next,
//! written like `ttft.p99: 10%`.

use plimsoll_stats::runs::Worse;

use super::Aggregate;
use super::judge::measure;
use super::parse::{number, scoped, unknown};
use crate::bounded_figure::BoundedFigure;
use crate::catalog::{Figure, Unit};
use crate::error::MetricsError;
use crate::quantile::QUANTILES;
use crate::results::Group;
use crate::scope::Scope;
use crate::summary::RunSummary;

/// CPU time per request of a watched process. It is no figure of the catalog, because it is about a
/// process and not about requests.
const CPU: &str = "cpu";

/// Short names of figures, for gates.
const ALIASES: [(&str, &str); 3] =
    [("response", "response_time"), ("service", "service_time"), ("errors", "error_rate")];

/// Rates and shares of which less is worse; of the others more is.
const LESS_IS_WORSE: [&str; 11] = [
    "planned_rate",
    "achieved_rate",
    "throughput",
    "goodput",
    "good_share",
    "output_token_rate_reported",
    "output_token_rate_estimated",
    "success_rate",
    "policy_correctness",
    "resumption_rate",
    "block_rate",
];

/// How much worse a figure may get.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// By this share of itself: 0.03 for `3%`.
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
    /// [`MetricsError::Gate`], [`MetricsError::UnknownMetric`] and [`MetricsError::Scope`].
    pub fn parse(figure: &str, margin: &str) -> Result<Self, MetricsError> {
        let gate = format!("{}: {}", figure.trim(), margin.trim());
        let refuse =
            |cause: &str| MetricsError::Gate { gate: gate.clone(), cause: cause.to_owned() };
        let (subject, name) = subject(figure.trim(), &refuse)?;
        let margin = parse_margin(margin.trim(), subject.unit(), &refuse)?;
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
            Subject::Figure(figure, ..) if LESS_IS_WORSE.contains(&figure.name()) => Worse::Lower,
            _ => Worse::Higher,
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

    /// The ends of the figure's 95 % interval within a run, in its unit, where it has one.
    pub fn interval(&self, run: &RunSummary) -> Option<(f64, f64)> {
        if let Subject::Figure(Figure::Rate(_), ..) = &self.subject {
            return self.measure(run).ok()?.interval.map(|[low, high]| (low, high));
        }
        let Subject::Figure(Figure::Distribution(metric), Aggregate::Quantile(q), scope) =
            &self.subject
        else {
            return None;
        };
        let quantile = QUANTILES.iter().find(|known| (known.q - q).abs() < 1e-9)?;
        let interval = run.results.group(scope)?.distribution(*metric)?.interval(quantile)?;
        Some((interval.low, interval.high))
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
    refuse: &dyn Fn(&str) -> MetricsError,
) -> Result<(Subject, String), MetricsError> {
    let (head, tag) = text.split_once('{').map_or((text, None), |(head, tag)| (head, Some(tag)));
    if head.trim() == CPU {
        let process = tag.map(|tag| {
            let inside = tag.trim_end().strip_suffix('}').and_then(|tag| tag.split_once(':'));
            let process = inside.filter(|(key, _)| key.trim() == "process");
            process.map(|(_, name)| name.trim().to_owned()).ok_or_else(|| {
                refuse("the scope of `cpu` is a watched process, like `cpu{process:gateway}`")
            })
        });
        return Ok((Subject::Cpu(process.transpose()?), text.to_owned()));
    }
    let (full, scope) = scoped(text)?;
    let (name, aggregate) = full.split_once('.').unwrap_or((full, ""));
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    let figure = Figure::named(name).ok_or_else(|| unknown(name))?;
    let parsed = match figure {
        Figure::Distribution(_) => time_aggregate(aggregate).ok_or_else(|| {
            refuse(
                "it does not say which value of the distribution: `.p50`, `.p99`, `.mean`, `.max`",
            )
        })?,
        Figure::Rate(_) if aggregate.is_empty() => Aggregate::Value,
        Figure::Rate(_) => return Err(refuse("it is one number, without anything after a dot")),
        Figure::Counter(_) => {
            return Err(refuse(
                "it is a count, which grows with the run; name a time, a rate or a share",
            ));
        }
    };
    let aggregate = if aggregate.is_empty() { String::new() } else { format!(".{aggregate}") };
    let tag = tag.map(|tag| format!("{{{}", tag.trim())).unwrap_or_default();
    Ok((Subject::Figure(figure, parsed, scope), format!("{name}{aggregate}{tag}")))
}

/// `p50`, `p99.9`, `mean`, `min`, `max`, `med`.
fn time_aggregate(text: &str) -> Option<Aggregate> {
    Some(match text.trim() {
        "mean" | "avg" => Aggregate::Mean,
        "med" => Aggregate::Quantile(0.5),
        "min" => Aggregate::Min,
        "max" => Aggregate::Max,
        percentile => {
            let percent = number(&percentile.strip_prefix('p')?.replace('_', "."))?;
            Aggregate::Quantile(Some(percent / 100.0).filter(|q| *q > 0.0 && *q < 1.0)?)
        }
    })
}

fn parse_margin(
    text: &str,
    unit: Unit,
    refuse: &dyn Fn(&str) -> MetricsError,
) -> Result<Margin, MetricsError> {
    let positive = |text: &str| number(text).filter(|number| *number > 0.0).map(|n| n / 100.0);
    if let Some(points) = text.strip_suffix("pp") {
        if unit != Unit::Share {
            return Err(refuse("its margin is relative: percent, not percentage points"));
        }
        return positive(points)
            .map(Margin::Points)
            .ok_or_else(|| refuse("its margin is no number"));
    }
    let Some(percent) = text.strip_suffix('%') else {
        return Err(refuse("its margin has no unit"));
    };
    if unit == Unit::Share {
        return Err(refuse("it is a share, and may be 0: its margin is in percentage points"));
    }
    let share = positive(percent).ok_or_else(|| refuse("its margin is no number above 0"))?;
    if share >= 1.0 {
        return Err(refuse("its margin is 100 % or more"));
    }
    Ok(Margin::Relative(share))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_named_in_full() {
        use Margin::{Points, Relative};
        use Worse::{Higher, Lower};
        for (figure, margin, name, parsed, worse) in [
            ("ttft.p50", "3%", "ttft.p50", Relative(0.03), Higher),
            (" response.p99 ", " 10 % ", "response_time.p99", Relative(0.1), Higher),
            ("service.mean", "2.5%", "service_time.mean", Relative(0.025), Higher),
            ("itl.p99.9", "20%", "itl.p99.9", Relative(0.2), Higher),
            ("throughput", "2%", "throughput", Relative(0.02), Lower),
            ("errors", "0.1pp", "error_rate", Points(0.001), Higher),
            ("success_rate", "1pp", "success_rate", Points(0.01), Lower),
            ("cpu", "3%", "cpu", Relative(0.03), Higher),
            ("cpu{process:gw}", "3%", "cpu{process:gw}", Relative(0.03), Higher),
            ("ttft.p50{stage:@9:1s}", "3%", "ttft.p50{stage:@9:1s}", Relative(0.03), Higher),
        ] {
            let gate = Gate::parse(figure, margin).unwrap();
            assert_eq!((gate.name(), gate.worse()), (name, worse), "{figure}: {margin}");
            let (Relative(found) | Points(found)) = gate.margin();
            let (Relative(wanted) | Points(wanted)) = parsed;
            assert!((found - wanted).abs() < 1e-12, "{figure}: {margin}");
            assert_eq!(
                matches!(gate.margin(), Relative(_)),
                matches!(parsed, Relative(_)),
                "{figure}: {margin}"
            );
        }
    }

    #[test]
    fn a_wrong_gate_is_refused_with_the_fix() {
        for (figure, margin, says) in [
            ("tftt.p50", "3%", "did you mean `ttft`?"),
            ("ttft", "3%", "which value of the distribution"),
            ("ttft.p100", "3%", "which value of the distribution"),
            ("ttft.p50", "3", "no unit"),
            ("ttft.p50", "3ms", "no unit"),
            ("ttft.p50", "0%", "no number above 0"),
            ("ttft.p50", "-3%", "no number above 0"),
            ("ttft.p50", "100%", "100 % or more"),
            ("ttft.p50", "0.1pp", "percent, not percentage points"),
            ("error_rate", "3%", "percentage points"),
            ("throughput.p50", "3%", "one number"),
            ("completed", "3%", "grows with the run"),
            ("ttft.p50{tenant:a}", "3%", "is not a scope"),
            ("cpu{stage:a}", "3%", "a watched process"),
        ] {
            let error = Gate::parse(figure, margin).unwrap_err().to_string();
            assert!(error.contains(says), "{figure}: {margin}: {error}");
        }
    }
}
