//! Intent: parse, merge (file < environment < flags), validate, resolve to an immutable [`Plan`].
//!
//! ```text
//! bytes --tree--> values --draft--> values of file, environment and flags, each with its source
//!       --shape (the JSON Schema)--> well-formed values --spec--> ProfileFile
//!       --check--> sensible values --resolve--> Plan
//! ```
//!
//! - [`Profile`]: a profile's text, from a file or built in ([`builtin_names`])
//! - [`load`]: all of the above; every problem comes at once, with its source, its place and its mend
//! - [`schema`](fn@schema): the JSON Schema of [`ProfileFile`], for editors
//! - [`Plan::read_trace`]: the trace that a plan names, from a file or built in
//!
//! No sockets, no results and no terminal here.

mod builtin;
mod check;
mod document;
mod draft;
mod environment;
mod error;
mod overrides;
mod place;
mod plan;
mod resolve;
mod schema;
mod secret;
mod shape;
mod size;
mod spec;
mod suggest;
mod tree;
mod url;

pub use builtin::{names as builtin_names, profile as builtin};
pub use document::Profile;
pub use environment::Environment;
pub use error::{Fault, Problem, Problems, Source};
pub use overrides::Overrides;
pub use place::{ConfigPath, Step};
pub use plan::{
    ConnectionLifetime, HttpPlan, HttpVersion, Instrument, Limits, Overflow, Plan, Target, TlsPlan,
};
pub use resolve::{Purpose, load, parse};
pub use schema::schema;
pub use secret::{HeaderValue, REDACTED, Secret, is_sensitive};
pub use size::{ByteSize, ParseSizeError};
pub use spec::{Behaviour, ProfileFile, ScenarioFile};
pub use url::{Scheme, TargetUrl, UrlFault};
