//! Flags for recorded traffic.

use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll_import::{Options, formats};
use serde_json::{Map, Value, json};

use crate::exit::UsageError;

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
