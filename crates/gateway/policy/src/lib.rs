#![doc = include_str!("../README.md")]

mod action;
mod byte_classes;
mod category;
mod compile;
pub mod corpus;
mod decision;
mod error;
mod ngram_filter;
mod normalise;
mod policy;
mod prefilter;
mod rule;
mod rule_bitset;
mod scrubber;
mod spec;
mod validator;

pub use action::{Action, Actions};
pub use category::{Category, Context, InputKind};
pub use decision::{MASK, Match, PolicyDecision};
pub use error::{PolicyError, RuleProblem};
pub use policy::{EvaluatedChecks, Evasion, Policy};
pub use scrubber::{Redaction, Scrubber, TextScanner};
