//! Flags for recorded traffic.

use clap::{Args, ValueEnum};
use plimsoll_import::formats;
use serde_json::{Map, Value};

/// How recorded traffic is read and played.
#[derive(Args, Debug)]
#[command(next_help_heading = "Recorded traffic")]
pub(crate) struct TrafficFlags {
    /// Format of recorded traffic [default: recognised]
    #[arg(
        long = "as",
        value_name = "FORMAT",
        value_parser = clap::builder::PossibleValuesParser::new(formats().map(|(name, _)| name))
    )]
    format: Option<String>,
    /// Play recorded times and waits N times as fast
    #[arg(long, value_name = "N")]
    speed: Option<f64>,
    /// The replies that later requests of a recorded conversation repeat [default: live]
    #[arg(long, value_name = "SOURCE")]
    replies: Option<ReplyFlag>,
    /// Skip broken rows and count them, instead of refusing the file
    #[arg(long)]
    skip_broken: bool,
    /// Put a unique marker in front of recorded prompts, so that no cache can answer them
    #[arg(long)]
    bust: bool,
}

/// A source of replies.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReplyFlag {
    Live,
    Recorded,
}

impl TrafficFlags {
    /// Whether none was given.
    pub(crate) const fn is_empty(&self) -> bool {
        let Self { format, speed, replies, skip_broken, bust } = self;
        let any = format.is_some() || speed.is_some() || replies.is_some();
        !(any || *skip_broken || *bust)
    }

    /// Whether the format was named.
    pub(crate) const fn has_format(&self) -> bool {
        self.format.is_some()
    }

    /// The format, and whether broken rows are skipped.
    pub(crate) fn reading(&self) -> (Option<String>, bool) {
        (self.format.clone(), self.skip_broken)
    }

    /// Keys beside the file, in a profile's `trace` or `content`.
    pub(crate) fn keys(&self) -> Map<String, Value> {
        let mut keys = Map::new();
        let replies = self.replies.map(|replies| match replies {
            ReplyFlag::Live => "live",
            ReplyFlag::Recorded => "recorded",
        });
        keys.extend(self.format.as_ref().map(|name| ("format".to_owned(), name.clone().into())));
        keys.extend(self.speed.map(|speed| ("time_scale".to_owned(), speed.into())));
        keys.extend(replies.map(|replies| ("replies".to_owned(), replies.into())));
        keys.insert("skip_broken".to_owned(), self.skip_broken.into());
        keys
    }

    /// The cache mode that the user asked for.
    pub(crate) const fn cache_mode(&self) -> &'static str {
        if self.bust { "bust" } else { "auto" }
    }
}
