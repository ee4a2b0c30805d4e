#![doc = include_str!("../README.md")]

mod action;
mod category;
mod compile;
mod decision;
mod error;
mod normalise;
mod policy;
mod prefilter;
mod rule;
mod scrubber;
mod spec;
mod validator;

pub use action::{Action, Actions};
pub use category::{Category, Context, InputKind};
pub use decision::{MASK, Match, PolicyDecision};
pub use error::{PolicyError, RuleProblem};
pub use policy::{EvaluatedChecks, Policy};
pub use scrubber::{Redaction, Scrubber, TextScanner};
