//! The bottleneck of a run: generator, gateway, upstream, store, host or network, or unknown.
//!
//! ```text
//! RunSummary -> deciding stage -> evidence of each process -> Why -> text, JSON
//! Join (with the gateway's log) -------> split by Little's law ---'
//! ```
//!
//! - [`why()`]: the whole analysis; [`why_with`] also takes a join with the gateway's log
//! - [`Why`]: the answer with its evidence, stored as `why.json`; [`text()`]: the answer as text
//! - [`Why::bottleneck`]: the line in every report
//!
//! A part is named only if it alone is at its own limit, by its own CPU time and waits, while the
//! load was at its limit too: rules 501 to 507.

mod answer;
mod cpu;
mod result;
mod split;
mod text;

pub use answer::{why, why_with};
pub use result::{
    Answer, Load, NamedTime, NoSplit, Observed, Part, SCHEMA, Split, State, Suspect, TtfbParts, Why,
};
pub use text::text;
