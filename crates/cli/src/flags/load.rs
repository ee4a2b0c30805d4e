//! Flags of the load: the same in every command that makes one.

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll_import::{Options, formats};
use plimsoll_measure::Nanos;
use plimsoll_profile::Overrides;
use plimsoll_schedule::{Load, StageSpec, Stages};
use serde_json::{Map, Value, json};

use super::{parse_rate, parse_time};
use crate::exit::UsageError;

/// The load, level by level.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadFlags {
    /// Requests in flight: each user waits for the response before the next request. A list makes
    /// one level each
    #[arg(short, long, alias = "connections", value_name = "N,...", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) concurrency: Vec<u32>,
    /// Requests per second on schedule, however slow the target is; -c then limits the requests in
    /// flight. A list makes one level each
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = parse_rate)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) rate: Vec<f64>,
    /// Measurement time of each level, excluding warm-up
    #[arg(short, long, alias = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Nanos>,
    /// Warm-up before the first level; 0 for none
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) warmup: Option<Nanos>,
}

/// Parses a duration. Users of oha, hey or curl may pass a body here.
fn parse_duration(text: &str) -> Result<Nanos, String> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    let hint = if is_number { "" } else { "; `-d` is a duration here, and a body is --body TEXT" };
    parse_time(text).map_err(|error| format!("{error}{hint}"))
}

impl LoadFlags {
    /// Overrides with the stages of these flags, if any was given. `stages` comes from --stages,
    /// and `usual` returns the profile's stages.
    pub(crate) fn add_to(
        &self,
        overrides: Overrides,
        stages: Option<&str>,
        usual: impl FnOnce(&Overrides) -> Result<Stages>,
    ) -> Result<Overrides> {
        let Self { concurrency, rate, duration, warmup } = self;
        if concurrency.is_empty() && rate.is_empty() && duration.or(*warmup).is_none() {
            return Ok(overrides);
        }
        if stages.is_some() {
            let why = "--stages is the whole load: leave out -c, --rate, -d and --warmup";
            return Err(UsageError(why.to_owned()).into());
        }
        let usual = match (self.loads()?.is_empty(), duration) {
            (false, Some(_)) => Stages::default(),
            _ => usual(&overrides)?,
        };
        let overrides = overrides.with("stages", "stages", self.stages(&usual)?.to_string());
        Ok(match self.most_in_flight() {
            Some(most) => overrides.with("concurrency", "max_in_flight", most.to_string()),
            None => overrides,
        })
    }

    /// The stages, with the given values in place of the `usual` ones.
    pub(crate) fn stages(&self, usual: &Stages) -> Result<Stages, UsageError> {
        let (mut stages, measured): (Vec<_>, Vec<_>) =
            usual.0.iter().partition(|stage| stage.warmup);
        let usual_time = measured.first().and_then(|stage: &StageSpec| stage.duration);
        let loads = self.loads()?;
        let is_new = !loads.is_empty();
        let mut levels: Vec<_> = loads
            .into_iter()
            .map(|load| StageSpec { load, duration: usual_time, warmup: false })
            .collect();
        if !is_new {
            levels = measured;
        }
        for level in &mut levels {
            level.duration = self.duration.or(level.duration);
        }
        if is_new || self.warmup.is_some() {
            let usual = stages.iter().filter_map(|stage| stage.duration).sum();
            let time = Some(self.warmup.unwrap_or(usual)).filter(|time| *time > Nanos::ZERO);
            let first = levels.first().filter(|_| time.is_some());
            stages = first
                .map(|first| StageSpec { duration: time, warmup: true, ..*first })
                .into_iter()
                .collect();
        }
        stages.extend(levels);
        Ok(Stages(stages))
    }

    /// The limit of requests in flight of --rate.
    pub(crate) fn most_in_flight(&self) -> Option<u32> {
        self.concurrency.first().copied().filter(|_| !self.rate.is_empty())
    }

    fn loads(&self) -> Result<Vec<Load>, UsageError> {
        let Self { concurrency, rate, .. } = self;
        if !rate.is_empty() && concurrency.len() > 1 {
            let why = "only one of -c and --rate can be a list: beside --rate, -c limits the requests in flight";
            return Err(UsageError(why.to_owned()));
        }
        let open = rate.iter().map(|rate| Load::Open { from: *rate, to: *rate });
        let closed = concurrency.iter().map(|users| Load::Closed { from: *users, to: *users });
        Ok(if rate.is_empty() { closed.collect() } else { open.collect() })
    }
}

// Flags for recorded traffic.

/// How recorded traffic is read.
#[derive(Args, Debug)]
pub(crate) struct ReadFlags {
    /// Format of the recorded traffic [default: recognised]
    #[arg(long = "as", value_name = "FORMAT", help_heading = HEADING)]
    #[arg(value_parser = PossibleValuesParser::new(formats().map(|(name, _)| name)))]
    format: Option<String>,
    /// Skip and count broken rows instead of rejecting the file
    #[arg(long, help_heading = HEADING)]
    skip_broken: bool,
}

const HEADING: &str = "Recorded traffic";

impl ReadFlags {
    pub(crate) const fn names_format(&self) -> bool {
        self.format.is_some()
    }

    /// How the importer reads the file.
    pub(crate) fn options(&self) -> Options {
        let (format, skip_broken) = (self.format.clone(), self.skip_broken);
        Options { format, skip_broken, ..Options::default() }
    }
}

/// How recorded traffic is read and played.
#[derive(Args, Debug)]
#[command(next_help_heading = HEADING)]
pub(crate) struct TrafficFlags {
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    /// Play recorded times and waits N times as fast
    #[arg(long, value_name = "N")]
    speed: Option<f64>,
    /// Replies that later requests of a recorded conversation repeat [default: live]
    #[arg(long, value_name = "SOURCE", value_parser = ["live", "recorded"])]
    replies: Option<String>,
    /// Put a unique marker in front of recorded prompts, so that caches cannot answer them
    #[arg(long)]
    bust: bool,
}

impl TrafficFlags {
    /// Rejects the flags for a command that sends no recorded traffic.
    pub(crate) fn reject_without_file(&self, fix: &str) -> Result<(), UsageError> {
        let Self { read, speed, replies, bust } = self;
        let read = read.format.is_some() || read.skip_broken;
        if read || speed.is_some() || replies.is_some() || *bust {
            let flags = "--as, --speed, --replies, --skip-broken and --bust";
            return Err(UsageError(format!("{flags} are for recorded traffic: {fix}")));
        }
        Ok(())
    }

    /// Keys beside the file, in a profile's `trace` or `content`.
    pub(crate) fn keys(&self) -> Map<String, Value> {
        let Self { read: ReadFlags { format, skip_broken }, speed, replies, .. } = self;
        let keys = [
            ("format", json!(format)),
            ("time_scale", json!(speed)),
            ("replies", json!(replies)),
            ("skip_broken", json!(skip_broken)),
        ];
        let given = keys.into_iter().filter(|(_, value)| !value.is_null());
        given.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The cache mode that the user asked for.
    pub(crate) const fn cache_mode(&self) -> &'static str {
        if self.bust { "bust" } else { "auto" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(users: &[u32], rates: &[f64], times: [Option<u64>; 2]) -> LoadFlags {
        let [duration, warmup] = times.map(|time| time.map(Nanos::from_secs));
        LoadFlags { concurrency: users.to_vec(), rate: rates.to_vec(), duration, warmup }
    }

    #[test]
    fn the_flags_mean_the_same_over_every_usual_load() {
        let (none, long) = ([None; 2], [Some(60), None]);
        for (usual, users, rates, times, expected) in [
            ("w64:2s,64:10s", &[8][..], &[][..], none, "w8:2s,8:10s"),
            ("w1:5s,1:30s,2:30s", &[], &[], long, "w1:5s,1:60s,2:60s"),
            ("w1:5s,1:30s,2:30s", &[], &[], [None, Some(0)], "1:30s,2:30s"),
            ("w1:5s,1:30s,2:30s", &[], &[0.5, 2.0], none, "w@0.5:5s,@0.5:30s,@2:30s"),
            ("@5..50:1m", &[4], &[20.0], [Some(9), Some(3)], "w@20:3s,@20:9s"),
            ("w@5:3s,@5..50:1m", &[], &[], long, "w@5:3s,@5..50:60s"),
            ("64:10s", &[3, 5], &[], [None, Some(1)], "w3:1s,3:10s,5:10s"),
        ] {
            let flags = flags(users, rates, times);
            let stages = flags.stages(&usual.parse().unwrap()).unwrap();
            let expected: Stages = expected.parse().unwrap();
            assert_eq!(stages, expected, "{usual} {flags:?}");
        }
        assert_eq!(flags(&[4], &[20.0], none).most_in_flight(), Some(4));
        assert_eq!(flags(&[4], &[], none).most_in_flight(), None);
        assert!(flags(&[4, 8], &[20.0], none).stages(&Stages::default()).is_err());
    }

    #[test]
    fn stages_leave_nothing_to_the_other_flags() {
        let usual = |_: &Overrides| Ok("1:1s".parse()?);
        let add = |flags: LoadFlags, stages| flags.add_to(Overrides::default(), stages, usual);
        assert!(add(flags(&[4], &[], [None; 2]), Some("1:1s")).is_err());
        let same = add(LoadFlags::default(), Some("1:1s")).unwrap();
        assert_eq!(same.get("stages"), None);
        let capped = add(flags(&[4], &[9.0], [None; 2]), None).unwrap();
        assert_eq!((capped.get("stages"), capped.get("max_in_flight")), (Some("@9:1s"), Some("4")));
    }
}
