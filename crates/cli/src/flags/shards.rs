//! Flags that divide a run among processes and hosts.

use std::collections::BTreeMap;
use std::env;
use std::time::UNIX_EPOCH;

use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_measure::{Nanos, Stripe};
use plimsoll_profile::Overrides;
use plimsoll_runner::{CommonStart, StartAt};

use super::{ExportFlags, ProgressFlags, RunFlags, parse_share, parse_time};
use crate::exit::UsageError;
use crate::processes::ChildOrder;
use crate::session::{Launch, Session};

/// How the parts of a run are started.
#[derive(Args, Debug)]
#[command(next_help_heading = "Several processes")]
pub(crate) struct StartFlags {
    /// Divide the run among N processes of this host, which start together, and merge their
    /// results; the open-file limit applies to each process separately
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1024))]
    #[arg(conflicts_with_all = ["shard", "start_at", "launch"])]
    pub(crate) processes: Option<u64>,
    /// Start at this time instead of as soon as possible: `2026-11-21T01:23:45Z`, seconds since
    /// 1970, `+5s` from now, or `ready`: 2 s after all shards of a common folder are ready
    /// (`ready+10s`: 10 s). A late shard sends nothing and exits with 3
    #[arg(long, value_name = "TIME", value_parser = parse_start)]
    start_at: Option<StartAt>,
    /// Maximum wait for the common start
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    start_timeout: Nanos,
    /// When a shard ends early: continue or stop the others
    #[arg(long, value_name = "ACTION", value_enum, default_value = "go-on")]
    on_loss: OnLoss,
    /// With --processes: judge the result although processes were lost, up to this share of the
    /// load, like `1%`
    #[arg(long, value_name = "SHARE", value_parser = parse_share, requires = "processes")]
    lost_at_most: Option<f64>,
    /// Name this launch in the shard's files; `merge --launch ID` then ignores other launches
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    launch: Option<String>,
}

/// The flags of every command that measures a load.
#[derive(Args, Debug)]
pub(crate) struct SessionFlags {
    #[command(flatten)]
    pub(crate) start: StartFlags,
    #[command(flatten)]
    pub(crate) run: RunFlags,
    #[command(flatten)]
    pub(crate) export: ExportFlags,
    #[command(flatten)]
    pub(crate) progress: ProgressFlags,
}

impl SessionFlags {
    /// Opens the session, whose results are pushed where the flags say.
    pub(crate) fn open(&self) -> Session {
        let mut session = Session::open(self.progress.ui());
        session.push_to(self.export.push.push_metrics.as_ref());
        session
    }
}

/// Reaction of a shard when another one ends early.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnLoss {
    GoOn,
    Stop,
}

/// The part of a run that this process executes, and its start time.
#[derive(Debug, Default)]
pub(crate) struct Part {
    shard: Option<String>,
    /// The launch, and its start time.
    pub(crate) launch: Launch,
    /// The order, if another Plimsoll process started this one.
    pub(crate) order: Option<ChildOrder>,
}

impl StartFlags {
    /// The part that flags and the environment say.
    ///
    /// # Errors
    /// `auto` finds no part, or contradictory values.
    pub(crate) fn part(&self, shard: Option<&str>) -> Result<Part> {
        if let Some(order) = ChildOrder::from_environment()? {
            let shard = Some(order.shard());
            return Ok(Part { shard, order: Some(order), ..Part::default() });
        }
        let shard = match shard {
            Some("auto") => Some(auto(&env::vars().collect()).map_err(UsageError)?),
            shard => shard.map(str::to_owned),
        };
        if matches!(self.start_at, Some(StartAt::AllReady(_))) && shard.is_none() {
            let why = "--start-at ready waits for the other shards of a run: give --shard, too";
            return Err(UsageError(why.to_owned()).into());
        }
        let start = self.start_at.map(|at| CommonStart { at, limit: self.start_timeout });
        let id = self.launch.clone().unwrap_or_default();
        let launch = Launch {
            id,
            start,
            processes: self.processes,
            stop_on_loss: matches!(self.on_loss, OnLoss::Stop),
            lost_at_most: self.lost_at_most.unwrap_or(0.0),
        };
        Ok(Part { shard, launch, order: None })
    }
}

impl Part {
    /// These overrides, combined with the part.
    pub(crate) fn of(&self, overrides: Overrides) -> Overrides {
        let run_id = self.order.as_ref().map(|order| order.run_id.clone());
        let run_id = run_id.or_else(|| overrides.run_id.clone());
        Overrides { shard: self.shard.clone(), run_id, ..overrides }
    }

    /// Whether the process executes only a part of a run.
    pub(crate) const fn is_shard(&self) -> bool {
        self.shard.is_some()
    }
}

/// Variables of launchers with the index and the count of a process.
const SOURCES: [(&str, &str); 5] = [
    ("PLIMSOLL_SHARD_INDEX", "PLIMSOLL_SHARD_COUNT"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("JOB_COMPLETION_INDEX", "PLIMSOLL_SHARD_COUNT"),
];

/// The part that the environment names, `k/n`. Sources that disagree are refused: n processes that
/// each send the whole load must not happen.
fn auto(variables: &BTreeMap<String, String>) -> Result<String, String> {
    let get = |name: &str| variables.get(name).map(|text| text.trim()).filter(|t| !t.is_empty());
    let mut found: Option<([&str; 2], Stripe)> = None;
    let refuse = |why: String| Err(format!("--shard auto: {why}, or give --shard K/N"));
    // The count of a Kubernetes job has no name of its own: alone it is not half of a pair.
    let is_job = get("JOB_COMPLETION_INDEX").is_some();
    for (index, count) in SOURCES {
        let is_shared = count == "PLIMSOLL_SHARD_COUNT" && (is_job || index.starts_with("JOB"));
        let (k, n) = match (get(index), get(count)) {
            (Some(k), Some(n)) => (k, n),
            (None, Some(_)) if is_shared => continue,
            (None, None) => continue,
            (Some(_), None) => {
                return refuse(format!("{index} is set and {count} is not; set both"));
            }
            (None, _) => return refuse(format!("{count} is set and {index} is not; set both")),
        };
        let numbers = k.parse().ok().zip(n.parse().ok());
        let Some(part) = numbers.and_then(|(k, n)| Stripe::new(k, n)) else {
            return refuse(format!(
                "{index} is `{k}` and {count} is `{n}`, but the index must be a whole number from 0 to below the count; correct the variables"
            ));
        };
        let ([other_index, other_count], other) = *found.get_or_insert(([index, count], part));
        if other != part {
            return refuse(format!(
                "{other_index} and {other_count} say {}/{}, but {index} and {count} say {k}/{n}; unset those that do not belong to this run",
                other.index(),
                other.count()
            ));
        }
    }
    if let Some((_, part)) = found {
        return Ok(format!("{}/{}", part.index(), part.count()));
    }
    let pairs = SOURCES.map(|(index, count)| format!("{index} and {count}")).join("; ");
    refuse(format!(
        "the environment has no shard index and count (looked for {pairs}); set PLIMSOLL_SHARD_INDEX and PLIMSOLL_SHARD_COUNT"
    ))
}

/// The time that `ready` alone leaves.
const READY_LEAD: Nanos = Nanos::from_secs(2);

fn parse_start(text: &str) -> Result<StartAt, String> {
    let fix = "write a time like 2026-11-21T01:23:45Z, seconds since 1970, +5s, ready or ready+5s";
    let lead = |text: &str| parse_time(text).map_err(|error| format!("{error}; {fix}"));
    if let Some(after) = text.strip_prefix("ready") {
        return match after.strip_prefix('+') {
            None if after.is_empty() => Ok(StartAt::AllReady(READY_LEAD)),
            None => Err(fix.to_owned()),
            Some(after) => lead(after).map(StartAt::AllReady),
        };
    }
    if let Some(after) = text.strip_prefix('+') {
        return lead(after).map(StartAt::After);
    }
    if let Some(seconds) = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0) {
        return Ok(StartAt::Unix(Nanos::from_secs_f64(seconds).as_u64()));
    }
    let time = humantime::parse_rfc3339_weak(text).map_err(|error| format!("{error}; {fix}"))?;
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| fix.to_owned())?;
    Ok(StartAt::Unix(Nanos::from(since).as_u64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto_of(variables: &[(&str, &str)]) -> Result<String, String> {
        auto(&variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn the_environment_of_each_engine_names_the_part() {
        for [index, count] in [
            ["PLIMSOLL_SHARD_INDEX", "PLIMSOLL_SHARD_COUNT"],
            ["SLURM_PROCID", "SLURM_NTASKS"],
            ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
            ["PMI_RANK", "PMI_SIZE"],
            ["JOB_COMPLETION_INDEX", "PLIMSOLL_SHARD_COUNT"],
        ] {
            assert_eq!(auto_of(&[(index, "2"), (count, "3")]).as_deref(), Ok("2/3"), "{index}");
            let beyond = auto_of(&[(index, "3"), (count, "3")]).unwrap_err();
            assert!(beyond.contains(index) && beyond.contains(count), "{beyond}");
            let half = auto_of(&[(index, "0")]).unwrap_err();
            assert!(half.contains(index) && half.contains(count), "{half}");
            let text = auto_of(&[(index, "x"), (count, "3")]).unwrap_err();
            assert!(text.contains(index) && text.contains("`x`"), "{text}");
        }
    }

    #[test]
    fn nothing_half_a_pair_or_a_contradiction_is_an_error_that_names_the_variables() {
        let none = auto_of(&[("HOME", "/root"), ("SLURM_PROCID", " ")]).unwrap_err();
        assert!(none.contains("JOB_COMPLETION_INDEX") && none.contains("PMI_SIZE"), "{none}");
        let half = auto_of(&[("PLIMSOLL_SHARD_COUNT", "4")]).unwrap_err();
        assert!(half.contains("PLIMSOLL_SHARD_INDEX is not"), "{half}");
        let both = |procid| {
            auto_of(&[
                ("SLURM_PROCID", procid),
                ("SLURM_NTASKS", "4"),
                ("PMI_RANK", "1"),
                ("PMI_SIZE", "4"),
            ])
        };
        assert_eq!(both("1").as_deref(), Ok("1/4"));
        let two = both("2").unwrap_err();
        assert!(two.contains("SLURM_PROCID") && two.contains("PMI_RANK") && two.contains("1/4"));
        // A pair that another engine left half set is not passed over either.
        let half = auto_of(&[("PMI_RANK", "1"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "4")]);
        assert!(half.unwrap_err().contains("PMI_SIZE is not"));
    }

    #[test]
    fn a_start_is_a_time_a_length_or_the_readiness_of_all() {
        let second = |s: u64| Nanos::from_secs(s);
        for (text, start) in [
            ("1970-01-01T00:01:00Z", StartAt::Unix(60_000_000_000)),
            ("1970-01-01 00:01:00.5", StartAt::Unix(60_500_000_000)),
            ("60.5", StartAt::Unix(60_500_000_000)),
            ("+5s", StartAt::After(second(5))),
            ("+5", StartAt::After(second(5))),
            ("ready", StartAt::AllReady(second(2))),
            ("ready+10s", StartAt::AllReady(second(10))),
        ] {
            assert_eq!(parse_start(text), Ok(start), "{text}");
        }
        for text in
            ["", "soon", "+", "+x", "ready5", "ready+", "-5s", "2026-13-01T00:00:00Z", "nan"]
        {
            assert!(parse_start(text).is_err(), "{text}");
        }
    }
}
