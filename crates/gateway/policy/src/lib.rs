#![doc = include_str!("../README.md")]

mod action;
mod category;
pub mod corpus;
mod error;
mod load;
mod marks;
mod normalise;
mod policy;
mod prefilter;
mod rule;
mod rule_set;
mod scrubber;
mod sieve;
mod spec;
mod validator;
mod verdict;

pub use action::{Action, Actions};
pub use category::{Category, Context, Reading};
pub use error::{PolicyError, Problem};
pub use policy::{Evaluated, Evasion, Policy};
pub use scrubber::{Scrubber, TextScrubber};
pub use verdict::{MASK, Match, PolicyDecision};
