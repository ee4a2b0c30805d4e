//! What limited the load of a run: the generator, the gateway, the provider, a store, or nothing
//! that can be seen.
//!
//! ```text
//! RunSummary -> stage that decides -> a finding for each suspect -> Why -> text, JSON
//! Join (with the gateway's log) ------------> split by Little's law ---'
//! ```
//!
//! - [`why()`]: all of it; [`why_with`] also takes a join with the gateway's log
//! - [`Why`]: the answer with its evidence, as `why.json` holds it; [`text()`]: for people
//! - [`Why::bottleneck`]: the line in every report
//!
//! A suspect is named only where it is at a limit of its own, and the load at its limit too. Where
//! two are, or where nobody watched the one that could be, the answer is unknown.

mod answer;
mod generator;
mod growth;
mod load;
mod own_word;
mod process;
mod result;
mod role;
mod split;
mod text;

pub use answer::{why, why_with};
pub use result::{
    Answer, Finding, Load, NamedTime, OwnWord, Part, SCHEMA, Split, State, Suspect, Why,
};
pub use text::text;
